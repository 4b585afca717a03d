//! `--nan`: where NaNs lie, in every command that orders keys, against the standard library

use crate::common::{Folder, Random, TestKey, assert_same, engine_for, engines, gathered, sorted_places_by, tried};
use crate::reference::Files;
use merge_host::f16;

/// The values of the flag. Without it, NaNs are last.
const FLAGS: [(&str, &str); 4] =
    [("", "last"), ("--nan last", "last"), ("--nan first", "first"), ("--nan total", "total")];
/// Of keys with these many bytes, chunks are spilled.
const SPILLED: &str = "-S 1M --engine cpu";

/// Calls `check` with the flags of each order, their value, and whether the order descends.
fn in_every_order(mut check: impl FnMut(&str, &str, bool)) {
    for (flag, nans) in FLAGS {
        check(flag, nans, false);
        check(&format!("{flag} -r"), nans, true);
    }
}

fn sorts<K: TestKey>(random: &mut Random, engine: &str) {
    let files = Files::new(&[random.keys::<K>(3001), vec![], random.keys(2500)], 3);
    in_every_order(|flags, nans, reverse| {
        let sort = format!("sort --engine {} {flags}", engine_for::<K>(engine));
        let mut places = sorted_places_by(&files.keys, nans, reverse);
        files.check(&format!("{sort} --check"), &places);
        files.check_indices(&sort, &places);
        files.check(&format!("{sort} --segment-len 5501"), &places);
        places.dedup_by(|a, b| files.keys[*a].total_order(&files.keys[*b]).is_eq());
        files.check(&format!("{sort} -u --check"), &places);
    });
}

#[test]
fn sorts_of_all_widths() {
    let mut random = Random::new();
    for engine in engines() {
        sorts::<f16>(&mut random, engine);
        sorts::<f32>(&mut random, engine);
        sorts::<f64>(&mut random, engine);
        sorts::<i32>(&mut random, engine);
    }
}

/// What `sort` writes is sorted for the other commands with the same flags.
fn sorted_files<K: TestKey>(random: &mut Random) {
    let (folder, name) = (Folder::new(), K::NAME);
    let count = (1 << 20) / size_of::<K>() + 7;
    in_every_order(|flags, nans, reverse| {
        let [a, b] = [count, 3000].map(|count| random.keys::<K>(count));
        let all = [&*a, &*b].concat();
        folder.write(&format!("a.{name}"), &a);
        folder.write(&format!("b.{name}"), &b);
        folder.run(&format!("sort a.{name} b.{name} -o all.{name} {flags} {SPILLED}")).succeeds();
        let expected = gathered(&all, &sorted_places_by(&all, nans, reverse));
        assert_same(&folder.read::<K>(&format!("all.{name}")), &expected, &format!("{name} {flags}"));
        folder.run(&format!("check all.{name} {flags}")).succeeds();
        folder.run(&format!("sort all.{name} -c {flags}")).succeeds();
        for file in ["a", "b"] {
            folder.run(&format!("sort {file}.{name} -o {file}.{name} {flags}")).succeeds();
        }
        let expect = |command: &str, expected: &[K]| {
            folder.run(&format!("{command} -o out.{name} {flags}")).succeeds();
            assert_same(&folder.read::<K>(&format!("out.{name}")), expected, &format!("{command} {flags}"));
        };
        expect(&format!("merge a.{name} b.{name}"), &expected);
        expect(&format!("merge a.{name} b.{name} {SPILLED}"), &expected);
        expect(&format!("sort -m b.{name} a.{name}"), &expected);
        expect(&format!("union all.{name} b.{name}"), &expected);
        expect(&format!("difference all.{name} a.{name}"), &folder.read::<K>(&format!("b.{name}")));
        expect(&format!("sort --top 4000 all.{name}"), &expected[..4000]);
        let run = format!("sort - -o - --type {name} {flags}");
        let bytes = folder.run_with_input(&run, bytemuck::cast_slice(&all));
        assert_same(&bytemuck::pod_collect_to_vec::<u8, K>(bytes.stdout()), &expected, &run);
    });
}

#[test]
fn other_commands_have_the_order_of_sorts() {
    let mut random = Random::new();
    let types: [fn(&mut Random); 3] = [sorted_files::<f16>, sorted_files::<f32>, sorted_files::<f64>];
    tried(types).into_iter().for_each(|check| check(&mut random));
}

#[test]
fn batches() {
    let mut random = Random::new();
    for (flag, nans) in FLAGS {
        let runs = |random: &mut Random| {
            let sorted = |keys: Vec<f32>| gathered(&keys, &sorted_places_by(&keys, nans, false));
            (0..50).flat_map(|_| sorted(random.keys(10))).collect::<Vec<f32>>()
        };
        let (folder, a, b) = (Folder::new(), runs(&mut random), runs(&mut random));
        folder.write("a.f32", &a);
        folder.write("b.f32", &b);
        let merged = a.chunks(10).zip(b.chunks(10)).flat_map(|(a, b)| {
            let keys = [a, b].concat();
            gathered(&keys, &sorted_places_by(&keys, nans, false))
        });
        folder.run(&format!("batch a.f32 b.f32 -d 20 -o out.f32 {flag}")).succeeds();
        assert_same(&folder.read::<f32>("out.f32"), &merged.collect::<Vec<_>>(), flag);
    }
}

#[test]
fn messages_name_the_order() {
    let folder = Folder::new();
    folder.write("a.f64", &[-f64::NAN, 1.0]);
    folder.run("check a.f64").fails(1, &["a.f64: disorder at index 1: 1.0 after NaN (0xfff8000000000000)"]);
    folder.run("check a.f64 --nan total").succeeds();
    folder.run("check a.f64 --nan first").succeeds();
    folder.refuses("merge a.f64 a.f64 -o out.f64", &["a.f64: not sorted", "with gmerge sort\n"]);
    folder.write("b.f64", &[f64::NEG_INFINITY, -f64::NAN]);
    folder.refuses("merge b.f64 b.f64 -o out.f64 -r --nan first", &["with gmerge sort --reverse --nan first\n"]);
    folder.refuses("sort a.f64 -o out.f64 --nan middle", &["--nan", "middle", "last, first, total"]);
}
