//! Signals: the old file stays or there is none, no temporary file remains, and the exit code is the shell's for the
//! signal.

use crate::common::{Folder, GMERGE, Run, cannot_run, spawn, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

fn start(folder: &Folder, arguments: &str) -> Child {
    let mut command = folder.command(GMERGE);
    command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command.stdin(Stdio::piped()))
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The exit code of a program that has been sent a signal. `None` if the default action of the signal ended it.
fn exit_code(child: Child) -> Option<i32> {
    Run::until_end("gmerge".to_owned(), child).code()
}

const SIGNALS: [Signal; 13] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TERM,
    Signal::STKFLT,
    Signal::XCPU,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::POWER,
];

#[test]
fn while_writing_a_file() {
    for signal in SIGNALS {
        for old in [true, false] {
            let folder = Folder::new();
            if old {
                folder.write("out.u64", &[7u64]);
            }
            let before = folder.files();
            // This run takes several seconds.
            let child = start(&folder, "gen -n 1000000000 -o out.u64");
            wait_until("there is a temporary file", || has_temporary_file(&folder, &child));
            send(&child, signal);
            assert_eq!(exit_code(child), Some(128 + signal.as_raw()), "{signal:?}");
            assert_eq!(folder.files(), before);
            if old {
                assert_eq!(folder.read::<u64>("out.u64"), [7]);
            }
        }
    }
}

#[test]
#[ignore = "needs the right to mount"]
fn a_temporary_file_with_a_name_is_removed() {
    let folder = Folder::new();
    // Without /proc, an unnamed file cannot get a name later.
    let script = format!("mount -t tmpfs none /proc && exec {GMERGE} gen -n 1000000000 -o out.u64");
    let mut command = folder.command("unshare");
    command.args(["--mount", "sh", "-c", &script]).stderr(Stdio::piped());
    let child = spawn(&mut command);
    let named = || folder.files().iter().any(|name| name.starts_with(".gmerge-") && name.ends_with(".tmp"));
    wait_until("there is a temporary file or an error", || named() || has_ended(&child));
    if !named() {
        cannot_run(format_args!("unshare(1) cannot hide /proc: {}", Run::until_end(script, child).stderr()));
    }
    send(&child, Signal::TERM);
    assert_eq!(exit_code(child), Some(143));
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn a_kill_that_cannot_be_handled_leaves_nothing_behind() {
    for old in [true, false] {
        let folder = Folder::new();
        if old {
            folder.write("out.u64", &[7u64]);
        }
        let before = folder.files();
        let child = start(&folder, "gen -n 1000000000 -o out.u64");
        wait_until("there is a temporary file", || has_temporary_file(&folder, &child));
        let has_name = folder.files() != before;
        send(&child, Signal::KILL);
        assert_eq!(exit_code(child), None);
        if has_name && !supports_unnamed_files(&folder) {
            assert_eq!(folder.files().len(), before.len() + 1);
            continue;
        }
        assert_eq!(folder.files(), before);
    }
}

#[test]
fn while_reading_a_pipe_that_never_ends() {
    for signal in SIGNALS {
        let folder = Folder::new();
        folder.write("out.u64", &[7u64]);
        let mut child = start(&folder, "sort - -o out.u64");
        // Waiting for a child closes its standard input, which would end the pipe.
        let pipe = child.stdin.take();
        wait_until("signals are handled", || handles(&child, signal));
        send(&child, signal);
        assert_eq!(exit_code(child), Some(128 + signal.as_raw()), "{signal:?}");
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
        let child = start(&folder, "sort in.u64 -o in.u64 --engine cpu");
        wait_until("signals are handled", || handles(&child, Signal::TERM));
        std::thread::sleep(Duration::from_millis(i * i));
        send(&child, Signal::TERM);
        let code = exit_code(child);
        assert_eq!(folder.files(), ["in.u64"]);
        let found = folder.read::<u64>("in.u64");
        match code {
            Some(143) => {
                // The signal may also arrive after the file has been replaced and before the program has ended.
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
        let child = start(&folder, arguments);
        wait_until("signals are handled", || handles(&child, Signal::TERM));
        // Half of the signals are sent when there are temporary files, or as soon as both outputs exist.
        if i % 2 == 0 {
            wait_until("there is a temporary file or both outputs", || {
                has_temporary_file(&folder, &child) || folder.read::<u32>("out.rows") != old
            });
        }
        std::thread::sleep(Duration::from_millis(i * i / 4));
        send(&child, Signal::TERM);
        let code = exit_code(child);
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
fn ignored_signals_stay_ignored() {
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
    ] {
        let folder = Folder::new();
        let script = format!("trap '' {name}; exec {GMERGE} sort - -o out.u32");
        let mut command = folder.command("sh");
        let mut child = spawn(command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut pipe = child.stdin.take().unwrap();
        // By then, sh has become gmerge.
        wait_until("signals are handled", || handles(&child, Signal::USR2));
        send(&child, signal);
        std::thread::sleep(Duration::from_millis(50));
        pipe.write_all(&[1, 0, 0, 0]).unwrap();
        drop(pipe);
        assert_eq!(exit_code(child), Some(0), "{name}");
        assert_eq!((folder.files(), folder.read::<u32>("out.u32")), (vec!["out.u32".to_owned()], vec![1]));
    }
}

/// Whether the program handles a signal. Before that, a signal has its default action.
fn handles(child: &Child, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
    u64::from_str_radix(&caught, 16).unwrap_or(0) >> (signal.as_raw() - 1) & 1 == 1
}

/// Whether the program has a named or unnamed temporary file open in `folder`.
fn has_temporary_file(folder: &Folder, child: &Child) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
    let folder = folder.path("").canonicalize().unwrap();
    open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == Some(&*folder) && (name.ends_with(" (deleted)") || name.starts_with(".gmerge-"))
    })
}

fn supports_unnamed_files(folder: &Folder) -> bool {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(folder.path(""), OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR).is_ok()
}

fn has_ended(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    status.rsplit(')').next().unwrap().trim_start().starts_with('Z')
}
