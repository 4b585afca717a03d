//! Any bytes as the input of any command: the program ends with 0, 1 or 2, and what it has sorted is sorted. Inputs
//! stay as they are. A sort in place keeps the file's bytes, in another order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::PathBuf;

/// The extensions, which name formats and types of keys.
const EXTENSIONS: [&str; 8] = ["npy", "arrow", "arrows", "u32", "f16", "i64be", "u128", "feather"];

/// The commands. `IN` and `OUT` are files.
const COMMANDS: [&str; 25] = [
    "sort IN -o OUT.npy",
    "sort IN -o OUT.arrow",
    "sort IN -r -u -o OUT.arrows",
    "sort IN --top 3 -o OUT.npy",
    "sort IN --argsort -o OUT.u32",
    "sort IN --segment-len 3 -o OUT.npy",
    "sort IN --values IN -o OUT.npy --values-out OUT.values",
    "sort IN --record-size 5 --key 1:u32,0:u8 -o OUT.records",
    "sort IN --key a -o OUT.records.npy",
    "merge IN IN -o OUT.npy",
    "union IN IN -o OUT.npy",
    "check IN",
    "search IN 0 1",
    "search IN --needles IN -o OUT.u32",
    "search IN --needles IN --right -r -o OUT.npy",
    "search IN 1.5-2j nan",
    "search IN --record-size 5 --key 1:u32,0:u8 7,1",
    "search IN --key a 7",
    "sort IN --axis 0 -o OUT.npy",
    "sort IN --axis -1 -r -o OUT.npy",
    "sort IN --rows -o OUT.npy",
    "check IN --rows",
    "sort --in-place IN",
    "sort --in-place IN --rows -r",
    "sort --in-place IN --record-size 5 --key 1:u32,0:u8",
];

fuzz_target!(|data: &[u8]| {
    let [command, extension, content @ ..] = data else { return };
    let command = COMMANDS[*command as usize % COMMANDS.len()];
    let extension = EXTENSIONS[*extension as usize % EXTENSIONS.len()];
    let folder = PathBuf::from(format!("/dev/shm/gmerge-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let input = folder.join(format!("in.{extension}"));
    fs::write(&input, content).unwrap();
    let out = folder.join("out");
    let code = run(command.replace("IN", input.to_str().unwrap()).replace("OUT", out.to_str().unwrap()));
    assert!(code <= 2, "exit code {code}");
    if code == 0 && command == COMMANDS[0] {
        assert_eq!(run(format!("check {}.npy", out.display())), 0);
    }
    let after = fs::read(&input).unwrap();
    match command.strip_prefix("sort --in-place") {
        Some(flags) if code == 0 => {
            assert_eq!(run(format!("check{}", flags.replace("IN", input.to_str().unwrap()))), 0);
            assert_eq!(sorted(&after), sorted(content));
        }
        _ => assert_eq!(after, content),
    }
    fs::remove_dir_all(&folder).unwrap();
});

fn sorted(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.sort();
    bytes
}

fn run(arguments: String) -> u8 {
    let engine = if arguments.starts_with("check") || arguments.starts_with("search") { "" } else { " --engine cpu" };
    let arguments = format!("gmerge {arguments}{engine}");
    merge_cli::run(arguments.split_whitespace().map(Into::into))
}
