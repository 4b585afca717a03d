//! Commands that arrange the keys of files: the output is a permutation of all keys, which the standard library's
//! stable sort gives. Keys and values of any width are compared with it.

use crate::common::{Folder, TestKey, assert_same, gathered, sorted_places, values};
use std::fs;

/// The keys of files `0.TYPE`, `1.TYPE` and so on, and values of `width` bytes in `0.rows`, `1.rows` and so on.
pub struct Files<K> {
    pub folder: Folder,
    /// The keys of all files.
    pub keys: Vec<K>,
    inputs: String,
    rows: String,
    width: usize,
}

impl<K: TestKey> Files<K> {
    pub fn new(files: &[Vec<K>], width: usize) -> Self {
        let (folder, mut begin) = (Folder::new(), 0);
        let (mut inputs, mut rows) = (String::new(), String::new());
        for (i, keys) in files.iter().enumerate() {
            folder.write(&format!("{i}.{}", K::NAME), keys);
            folder.write(&format!("{i}.rows"), &values(begin..begin + keys.len(), width));
            begin += keys.len();
            inputs += &format!(" {i}.{}", K::NAME);
            rows += &format!(" {i}.rows");
        }
        Self { folder, keys: files.concat(), inputs, rows, width }
    }

    /// The permutation of a stable sort of all keys.
    pub fn sorted(&self, reverse: bool) -> Vec<usize> {
        sorted_places(&self.keys, reverse)
    }

    /// The permutation of a stable sort of each group of keys, one after the other.
    pub fn sorted_groups(&self, groups: impl IntoIterator<Item = Vec<usize>>, reverse: bool) -> Vec<usize> {
        let sorted = |group: Vec<usize>| {
            let places = sorted_places(&gathered(&self.keys, &group), reverse);
            gathered(&group, &places)
        };
        groups.into_iter().flat_map(sorted).collect()
    }

    /// Checks that `command` on these files writes the keys at `places`. Unless the width of values is 0, checks that
    /// their values go along, too. The inputs do not change, and no temporary file remains.
    #[track_caller]
    pub fn check(&self, command: &str, places: &[usize]) {
        let Self { folder, keys, inputs, rows, width } = self;
        let (output, expected) = (format!("out.{}", K::NAME), gathered(keys, places));
        let with_values = format!("--values{rows} --values-out out.rows");
        let flags = ["", &with_values];
        for flags in &flags[..if *width > 0 { 2 } else { 1 }] {
            let run = format!("{command}{inputs} -o {output} {flags}");
            folder.run(&run).succeeds();
            assert_same(&folder.read::<K>(&output), &expected, &run);
            fs::remove_file(folder.path(&output)).unwrap();
        }
        if *width > 0 {
            let expected = values(places.iter().copied(), *width);
            assert!(folder.read::<u8>("out.rows") == expected, "values of {width} bytes: {command}");
            fs::remove_file(folder.path("out.rows")).unwrap();
        }
        let found: Vec<K> = inputs.split_whitespace().flat_map(|name| folder.read::<K>(name)).collect();
        assert_same(&found, keys, "the inputs");
        assert!(folder.files().iter().all(|name| !name.starts_with('.')), "{:?}", folder.files());
    }

    /// Checks that `command` on these files writes the indices `places`.
    #[track_caller]
    pub fn check_indices(&self, command: &str, places: &[usize]) {
        let run = format!("{command}{} --argsort -o indices", self.inputs);
        self.folder.run(&run).succeeds();
        assert!(self.folder.read::<u64>("indices").into_iter().eq(places.iter().map(|&place| place as u64)), "{run}");
    }
}
