//! `--progress`, `--quiet` and `--verbose`, and output to a terminal.

use crate::common::{Folder, GMERGE, Run, spawn};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// Reads 2 MB of a stream, waits for 0.7 s, and reads the rest.
const SLOW_READER: &str = "{ head -c 2000000 > /dev/null; sleep 0.7; cat > /dev/null; }";

/// A run that writes 4 MB to [`SLOW_READER`].
fn slow(folder: &Folder, flags: &str) -> Run {
    folder.shell(&format!("gmerge gen -n 1000000 --type u32 -o - {flags} | {SLOW_READER}"))
}

#[test]
fn nothing_is_shown_where_it_is_not_wanted() {
    let folder = Folder::new();
    for flags in ["", "--progress auto", "--progress never", "-q", "--quiet --progress never"] {
        slow(&folder, flags).succeeds();
    }
}

#[test]
fn always_shows_bytes_rate_and_time_left_and_clears_the_line() {
    let folder = Folder::new();
    for flags in ["--progress always", "--progress always -q"] {
        let begin = Instant::now();
        let run = slow(&folder, flags);
        let (time, text) = (begin.elapsed(), run.stderr());
        assert_eq!(run.code(), Some(0), "{text}");
        let frames: Vec<_> = text.split('\r').filter(|frame| frame.contains(" of 4.00 MB, ")).collect();
        assert!(frames.iter().any(|frame| frame.contains("write") && frame.contains("MB/s, ")), "{text:?}");
        assert!(frames.iter().all(|frame| frame.contains(" left")), "{text:?}");
        // Ten frames a second, and some frames at the beginning and the end of the run.
        let most = 10 * (time.as_secs() as usize + 1) + 5;
        assert!(frames.len() > 2 && frames.len() <= most, "{} in {time:?}", frames.len());
        assert!(text.ends_with("\r\x1b[2K\n"), "{text:?}");
    }
}

#[test]
fn without_a_length_there_is_no_time_left() {
    let folder = Folder::new();
    let run = folder.shell(
        "{ gmerge gen -n 250000 --type u32 -o -; sleep 0.5; } | gmerge sort - --type u32 -o out.u32 --progress always",
    );
    assert_eq!(run.code(), Some(0));
    let text = run.stderr();
    assert!(text.contains("read      1.00 MB, ") && text.contains(" so far") && !text.contains(" left"), "{text:?}");
}

#[test]
fn an_error_has_a_line_of_its_own() {
    let folder = Folder::new();
    let run = folder.shell("{ printf abc; sleep 0.4; } | gmerge sort - --type u32 -o out.u32 --progress always");
    let text = run.stderr();
    assert_eq!(run.code(), Some(2), "{text}");
    assert!(text.contains("\x1b[2K\ngmerge: -: length is 3 bytes"), "{text:?}");
    assert_eq!(text.lines().last().map(|line| line.starts_with("gmerge: ")), Some(true), "{text:?}");
}

#[test]
fn statistics_have_lines_of_their_own() {
    let folder = Folder::new();
    for (format, begin) in [("json", "{\"op\":\"gen\","), ("text", "gen: 1000000 u32 keys")] {
        let run = slow(&folder, &format!("--progress always --stats {format}"));
        assert!(run.stderr().lines().any(|line| line.starts_with(begin)), "{:?}", run.stderr());
    }
}

#[test]
fn a_signal_clears_the_line() {
    let folder = Folder::new();
    let sort = format!("{GMERGE} sort - --type u32 -o out.u32 --progress always");
    let run = folder.shell(&format!("sleep 1 | timeout 0.5 {sort}"));
    assert!(run.stderr().contains("read") && run.stderr().ends_with("\r\x1b[2K\n"), "{:?}", run.stderr());
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn verbose_says_what_was_decided() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    let run = folder.run("sort in.u32 -o out.u32 -v --engine cpu --parallel 2");
    assert_eq!(run.code(), Some(0));
    let text = run.stderr();
    for line in [
        "gmerge: keys: u32, by the extension of in.u32",
        "gmerge: in.u32: 12 bytes, read by all threads",
        "gmerge: threads to read, sort and write: 1, as many as have work",
        "gmerge: engine: cpu, because the CPU was asked for",
        "gmerge: out.u32: written to a temporary file that then replaces it",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in {text}");
    }
    assert!(text.lines().all(|line| line.starts_with("gmerge: ")), "{text}");
    folder.write("in.raw", &[3u128, 1]);
    let run = folder.run("--verbose sort in.raw --type u128 -o - ");
    assert!(run.stderr().contains("no kernels for u128 keys") && run.stderr().contains("keys: u128, by --type"));
    assert_eq!(run.stdout().len(), 32);
    folder.run("sort in.u32 -o out.u32 -q").succeeds();
    folder.run("sort in.u32 -o out.u32 -q -v").fails(2, &["--quiet", "--verbose"]);
}

/// A terminal: the end of the test, and the end of the program.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    (File::from(ours), File::options().read(true).write(true).open(path).unwrap())
}

/// Runs a shell script with standard error on a terminal, and returns the text on the terminal.
fn seen(folder: &Folder, script: &str) -> String {
    let (mut ours, theirs) = terminal();
    let mut command = folder.command("sh");
    command.args(["-c", script]).env("GMERGE", GMERGE).env("TERM", "xterm").stderr(theirs);
    let mut child = spawn(&mut command);
    // From here on, only the child has the other end, so that reading ends with the child.
    drop(command);
    let mut seen = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = ours.read(&mut part) {
        seen.extend_from_slice(&part[..count]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(seen).unwrap()
}

#[test]
fn a_terminal_shows_progress_by_itself() {
    let folder = Folder::new();
    let script = |flags| format!("$GMERGE gen -n 1000000 --type u32 -o - {flags} | {SLOW_READER}");
    let text = seen(&folder, &script(""));
    assert!(text.contains(" of 4.00 MB, ") && text.contains(" left"), "{text:?}");
    assert_eq!(seen(&folder, &script("-q")), "");
    assert_eq!(seen(&folder, &script("--progress never")), "");
    assert_eq!(seen(&folder, "$GMERGE gen -n 10 -o new.u32"), "", "what is done at once needs no bar");
}

#[test]
fn no_keys_go_to_a_terminal() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    for name in ["-", "/dev/stdout"] {
        let (_ours, theirs) = terminal();
        let mut command = folder.command(GMERGE);
        command.args(["sort", "in.u32", "-o", name]).stdout(theirs).stderr(std::process::Stdio::piped());
        let output = spawn(&mut command).wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.starts_with(&format!("gmerge: {name}: standard output is a terminal, ")), "{text}");
    }
}
