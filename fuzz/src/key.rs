//! Any text as the `--key` of any records: the program ends with 0 or 2, and what it has sorted is sorted by that key.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::PathBuf;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    size: u8,
    is_big: bool,
    is_unique: bool,
    key: &'a str,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input| {
    let folder = PathBuf::from(format!("/dev/shm/gmerge-fuzz-key-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [from, to] = ["in", "out"].map(|name| folder.join(name).display().to_string());
    fs::write(&from, input.bytes).unwrap();
    let size = input.size.to_string();
    let endian = if input.is_big { "big" } else { "little" };
    let run = |arguments: &[&str]| {
        let key = format!("--key={}", input.key);
        let records = ["--record-size", &size, "--endian", endian, &key];
        merge_cli::run(["gmerge"].iter().chain(arguments).chain(&records).map(Into::into))
    };
    let unique: &[&str] = if input.is_unique { &["-u"] } else { &[] };
    match run(&[&["sort", &from, "-o", &to, "--engine", "cpu"], unique].concat()) {
        0 => assert_eq!(run(&["check", &to]), 0),
        code => {
            assert_eq!(code, 2);
            assert!(!folder.join("out").exists());
        }
    }
    assert_eq!(fs::read(&from).unwrap(), input.bytes);
    fs::remove_dir_all(&folder).unwrap();
});
