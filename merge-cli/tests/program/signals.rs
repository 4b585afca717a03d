//! Signals: the old file or none, no temporary file, and the code that shells know.

use crate::common::{Folder, GMERGE, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Stdio};
use std::time::Duration;

fn start(folder: &Folder, arguments: &str) -> Child {
    let mut command = folder.command(GMERGE);
    command.args(arguments.split_whitespace()).stderr(Stdio::piped()).stdin(Stdio::piped()).spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];

#[test]
fn while_writing_a_file() {
    for (signal, code) in SIGNALS {
        for old in [true, false] {
            let folder = Folder::new();
            if old {
                folder.write("out.u64", &[7u64]);
            }
            let before = folder.files();
            // As much as is written in some seconds, or more.
            let mut child = start(&folder, "gen -n 1000000000 -o out.u64");
            wait_until("there is a temporary file", || folder.files().len() > before.len());
            send(&child, signal);
            assert_eq!(child.wait().unwrap().code(), Some(code));
            assert_eq!(folder.files(), before);
            if old {
                assert_eq!(folder.read::<u64>("out.u64"), [7]);
            }
        }
    }
}

#[test]
fn while_reading_a_pipe_that_never_ends() {
    for (signal, code) in SIGNALS {
        let folder = Folder::new();
        folder.write("out.u64", &[7u64]);
        let mut child = start(&folder, "sort - -o out.u64");
        // To wait for a child closes its standard input, and that would be the end of the pipe.
        let pipe = child.stdin.take();
        wait_until_it_handles_signals(&child);
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        drop(pipe);
        assert_eq!((folder.files(), folder.read::<u64>("out.u64")), (vec!["out.u64".to_owned()], vec![7]));
    }
}

#[test]
fn at_any_moment_of_a_sort() {
    let folder = Folder::new();
    folder.run("gen -n 4000000 --seed 1 -o in.u64").succeeds();
    let keys = folder.read::<u64>("in.u64");
    let mut sorted = keys.clone();
    sorted.sort();
    let mut interrupted = 0;
    for i in 0..24 {
        folder.write("in.u64", &keys);
        let mut child = start(&folder, "sort in.u64 -o in.u64 --engine cpu");
        wait_until_it_handles_signals(&child);
        std::thread::sleep(Duration::from_millis(i * i));
        send(&child, Signal::TERM);
        let code = child.wait().unwrap().code();
        assert_eq!(folder.files(), ["in.u64"]);
        let found = folder.read::<u64>("in.u64");
        match code {
            Some(143) => {
                // The signal may also come after the file is in its place and before the program has ended.
                assert!(found == keys || found == sorted);
                interrupted += 1;
            }
            Some(0) => assert!(found == sorted),
            _ => panic!("{code:?}"),
        }
    }
    assert!(interrupted > 0);
}

#[test]
fn keys_and_values_are_replaced_both_or_neither() {
    let folder = Folder::new();
    let (keys, values): (Vec<u32>, Vec<u64>) = ((0..2_000_000).collect(), (0..2_000_000).collect());
    let old = [7u32, 8];
    folder.write("in.u32", &keys);
    folder.write("in.rows", &values);
    let arguments = "merge in.u32 in.u32 --values in.rows in.rows -o out.u32 --values-out out.rows --engine cpu";
    let mut interrupted = 0;
    for i in 0..24 {
        folder.write("out.u32", &old);
        folder.write("out.rows", &old);
        let mut child = start(&folder, arguments);
        wait_until_it_handles_signals(&child);
        // Half of the signals come when there are temporary files, or as soon as they are gone.
        if i % 2 == 0 {
            wait_until("there is a temporary file or both outputs", || {
                folder.files().len() > 4 || folder.read::<u32>("out.rows") != old
            });
        }
        std::thread::sleep(Duration::from_millis(i * i / 4));
        send(&child, Signal::TERM);
        let code = child.wait().unwrap().code();
        assert_eq!(folder.files(), ["in.rows", "in.u32", "out.rows", "out.u32"]);
        let (keys_are_old, values_are_old) =
            (folder.read::<u32>("out.u32") == old, folder.read::<u32>("out.rows") == old);
        assert_eq!(keys_are_old, values_are_old, "{code:?}");
        if !keys_are_old {
            let sizes = ["out.u32", "out.rows"].map(|name| std::fs::metadata(folder.path(name)).unwrap().len());
            assert_eq!(sizes, [4 * 4_000_000, 8 * 4_000_000]);
        }
        match code {
            Some(143) => interrupted += 1,
            Some(0) => assert!(!keys_are_old),
            _ => panic!("{code:?}"),
        }
    }
    assert!(interrupted > 0);
}

#[test]
fn nohup_is_respected() {
    let folder = Folder::new();
    let mut command = folder.command("sh");
    let script = format!("trap '' HUP; exec {GMERGE} sort - -o out.u32");
    let mut child = command.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    wait_until("sh has become gmerge", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
        name.trim() == "gmerge"
    });
    wait_until_it_handles_signals(&child);
    send(&child, Signal::HUP);
    std::thread::sleep(Duration::from_millis(50));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.files(), ["out.u32"]);
}

/// Until then, a signal ends any program in the usual way.
fn wait_until_it_handles_signals(child: &Child) {
    wait_until("signals are handled", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
        u64::from_str_radix(&caught, 16).unwrap_or(0) >> (Signal::TERM.as_raw() - 1) & 1 == 1
    });
}
