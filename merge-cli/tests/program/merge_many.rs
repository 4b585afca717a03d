//! `gmerge merge` of any number of files

use crate::common::{Folder, Random, TestKey, engine_for, engines, for_each_type};
use crate::reference::Files;

/// Merges runs of these lengths, with values of `width` bytes unless it is 0, and checks the output.
pub fn check<K: TestKey>(random: &mut Random, options: &str, lengths: &[usize], width: usize) {
    let files = Files::new(&lengths.iter().map(|&length| random.sorted::<K>(length)).collect::<Vec<_>>(), width);
    files.check(&format!("merge {options}"), &files.sorted(false));
}

#[test]
fn all_types() {
    let mut random = Random::new();
    for engine in engines() {
        for_each_type!(K => {
            check::<K>(&mut random, &format!("--engine {}", engine_for::<K>(engine)), &[1000, 0, 7, 20_011], 0)
        });
    }
}

#[test]
fn any_number_of_files() {
    let mut random = Random::new();
    for engine in engines() {
        let options = format!("--engine {engine}");
        for lengths in [&[0][..], &[1], &[5000], &[0, 0, 0], &[0, 3000, 0], &[1; 33], &[100; 70]] {
            check::<f32>(&mut random, &options, lengths, 0);
            check::<i64>(&mut random, &options, lengths, 8);
        }
        for width in [1, 3, 4, 8, 24] {
            check::<u32>(&mut random, &options, &[1000, 2, 0, 3000, 77], width);
        }
    }
    check::<u16>(&mut random, "--parallel 3", &[300_007; 3], 5);
}

#[test]
fn more_files_than_a_program_may_usually_have_open() {
    let folder = Folder::new();
    let count = 1500;
    let mut arguments = String::new();
    for i in 0..count {
        folder.write(&format!("{i}.u32"), &[i, count, 10_000 - i]);
        arguments += &format!(" {i}.u32");
    }
    let run = folder.shell(&format!("ulimit -S -n 256; gmerge merge {arguments} -o out"));
    run.succeeds();
    let mut want: Vec<u32> = (0..count).flat_map(|i| [i, count, 10_000 - i]).collect();
    want.sort();
    assert_eq!(folder.read::<u32>("out"), want);
}

#[test]
fn of_equal_keys_those_of_an_earlier_file_come_first() {
    let folder = Folder::new();
    folder.write("k.u32", &[5u32; 2]);
    for name in ["ab", "cd", "ef", "gh"] {
        folder.write(name, name.as_bytes());
    }
    let options = "-o out.u32 --values-out out.txt";
    folder.run(&format!("merge k.u32 k.u32 k.u32 k.u32 --values gh ab ef cd {options}")).succeeds();
    assert_eq!((folder.read::<u32>("out.u32"), folder.read::<u8>("out.txt")), (vec![5; 8], b"ghabefcd".to_vec()));
    // The files of keys may come last.
    folder.run(&format!("merge {options} --values ab cd ef k.u32 k.u32 k.u32")).succeeds();
    assert_eq!(folder.read::<u8>("out.txt"), b"abcdef");
}

#[test]
fn an_input_may_be_the_output_or_standard_input() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 5]);
    folder.write("b.u32", &[0u32, 5, 9]);
    let keys = bytemuck::cast_slice::<u32, u8>(&[2, 3]);
    folder.run_with_input("merge a.u32 - b.u32 a.u32 -o a.u32", keys).succeeds();
    assert_eq!(folder.read::<u32>("a.u32"), [0, 1, 1, 2, 3, 5, 5, 5, 9]);
    let run = folder.run("merge b.u32 -o -");
    run.succeeds();
    assert_eq!(run.stdout(), bytemuck::cast_slice::<u32, u8>(&[0, 5, 9]));
}

#[test]
fn what_is_refused() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 2]);
    folder.write("bad.u32", &[1u32, 7, 3]);
    folder.write("c.f32", &[1f32]);
    folder.write("four", b"four");
    folder.write("three", b"abc");
    let refused = |arguments: &str, parts: &[&str]| folder.refuses(&format!("merge {arguments} -o out.u32"), parts);
    refused("a.u32 a.u32 bad.u32", &["bad.u32: not sorted at index 2: 3 after 7"]);
    refused("bad.u32", &["bad.u32: not sorted at index 2"]);
    refused("a.u32 lost.u32 a.u32", &["lost.u32: No such file or directory"]);
    refused("a.u32 a.u32 c.f32", &["c.f32", "f32 keys", "--type"]);
    refused("a.u32 - a.u32 -", &["F2 and F4 are both -"]);
    for kernel in ["basic", "tiled", "circular", "merge-path"] {
        refused(
            &format!("a.u32 a.u32 a.u32 --kernel {kernel}"),
            &[&format!("--kernel {kernel}"), "two files, found 3"],
        );
        refused(&format!("a.u32 --kernel {kernel}"), &["two files, found 1"]);
    }
    let out = "--values-out out.rows";
    refused(&format!("a.u32 a.u32 a.u32 --values four four {out}"), &["--values names 2 files, expected 3"]);
    refused(&format!("a.u32 a.u32 --values four four four {out}"), &["--values names 3 files, expected 2"]);
    refused(
        &format!("a.u32 a.u32 a.u32 --values four four three {out}"),
        &["three: has 3 bytes, expected a multiple of 2, the number of keys of a.u32"],
    );
    refused(
        &format!("a.u32 a.u32 c.f32 --type u32 --values four four three {out}"),
        &["four: has values of 2 bytes (4 bytes for 2 keys), expected values as long as in three: 3 bytes"],
    );
    refused("", &["<FILE>"]);
    refused("a.u32 a.u32 --values four four", &["--values-out"]);
    // Without a check of the order, only the length of the result is specified.
    folder.run("merge a.u32 bad.u32 a.u32 -o out.u32 --assume-sorted").succeeds();
    assert_eq!(folder.read::<u32>("out.u32").len(), 7);
}
