//! The search for a compiler, and the error if there is none.
//!
//! The result depends on the environment, so that each case runs in a process of its own. The process is this test
//! program again, which then runs only [`answers`].

use cuda_builder::Compiler;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use tempfile::TempDir;

/// Set in the process that searches.
const ASKED: &str = "CUDA_BUILDER_TEST_ASKED";

/// Precedes the answer on its line.
const MARK: &str = "answer: ";

/// A program cannot be started while it is open for writing, and a child process that is being created may hold it
/// open. Programs are therefore written and started one at a time.
static PROGRAMS: Mutex<()> = Mutex::new(());

/// Not a test: the code of the process that [`find`] starts.
#[test]
fn answers() {
    if std::env::var_os(ASKED).is_some() {
        match Compiler::find() {
            Ok(found) => println!("{MARK}found {} | {}", found.path().display(), found.version()),
            Err(error) => println!("{MARK}error {error}"),
        }
    }
}

/// The answer of [`Compiler::find`] with these variables set, and without the other variables that it reads.
fn find(variables: &[(&str, &OsStr)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "answers", "--nocapture", "--test-threads=1"]).env(ASKED, "1");
    command.env_remove("CUDA_BUILDER_RUSTC").env_remove("RUSTC").envs(variables.iter().copied());
    let one_at_a_time = PROGRAMS.lock().unwrap();
    let output = command.output().unwrap();
    drop(one_at_a_time);
    let text = String::from_utf8(output.stdout).unwrap();
    // The harness may begin the line with the test's name.
    let answer = text.lines().find_map(|line| Some(line.split_once(MARK)?.1.to_owned()));
    answer.unwrap_or_else(|| panic!("no answer: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// A program that answers like a rustc with the sysroot `folder/sysroot`, with or without the sources of `core`.
fn stub(folder: &TempDir, name: &str, with_core: bool) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let sysroot = folder.path().join(format!("{name}-sysroot"));
    let source = sysroot.join("lib/rustlib/src/rust/library/core/src");
    fs::create_dir_all(if with_core { &source } else { &sysroot }).unwrap();
    if with_core {
        fs::write(source.join("lib.rs"), "").unwrap();
    }
    let program = folder.path().join(name);
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n'--print sysroot') echo '{}' ;;\n\
         --version) echo 'rustc 1.2.3 ({name})' ;;\n*) exit 7 ;;\nesac\n",
        sysroot.display()
    );
    let one_at_a_time = PROGRAMS.lock().unwrap();
    fs::write(&program, script).unwrap();
    drop(one_at_a_time);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// The message must tell the user how to install a compiler.
fn assert_says_how_to_install(answer: &str) {
    for part in ["`rustup component add rust-src`", "`apt-get install rustc-web rust-web-src`", "CUDA_BUILDER_RUSTC"] {
        assert!(answer.contains(part), "no {part} in: {answer}");
    }
}

#[test]
fn the_named_compiler_is_taken() {
    let folder = TempDir::new().unwrap();
    let (named, other) = (stub(&folder, "named", true), stub(&folder, "other", true));
    let answer = find(&[("CUDA_BUILDER_RUSTC", named.as_os_str()), ("RUSTC", other.as_os_str())]);
    assert_eq!(answer, format!("found {} | rustc 1.2.3 (named)", named.display()));
}

#[test]
fn without_a_name_the_workspaces_compiler_is_taken() {
    let folder = TempDir::new().unwrap();
    let own = stub(&folder, "own", true);
    let answer = find(&[("RUSTC", own.as_os_str())]);
    assert_eq!(answer, format!("found {} | rustc 1.2.3 (own)", own.display()));
}

#[test]
fn the_distributions_compiler_is_the_last_resort() {
    let folder = TempDir::new().unwrap();
    let own = stub(&folder, "own", false);
    let answer = find(&[("RUSTC", own.as_os_str())]);
    // The machine may or may not have the distribution's compiler; the search must include it.
    if !answer.starts_with("found /usr/bin/rustc | rustc ") {
        assert!(
            answer.contains("(the workspace's toolchain, ") && answer.contains("; the distribution's, /usr/bin/rustc")
        );
        assert_says_how_to_install(&answer);
    }
}

#[test]
fn a_named_program_that_is_missing_is_an_error_and_no_other_is_tried() {
    let folder = TempDir::new().unwrap();
    let (missing, other) = (folder.path().join("no-such-rustc"), stub(&folder, "other", true));
    let answer = find(&[("CUDA_BUILDER_RUSTC", missing.as_os_str()), ("RUSTC", other.as_os_str())]);
    let expected = format!("(CUDA_BUILDER_RUSTC, {}: cannot be run: ", missing.display());
    assert!(answer.starts_with("error no rustc with the sources of `core` was found"), "{answer}");
    assert!(answer.contains(&expected), "{answer}");
    assert!(!answer.contains("the workspace's toolchain") && !answer.contains("the distribution's"), "{answer}");
    assert_says_how_to_install(&answer);
}

#[test]
fn a_compiler_without_the_sources_of_core_is_an_error_that_names_the_missing_file() {
    let folder = TempDir::new().unwrap();
    let named = stub(&folder, "named", false);
    let answer = find(&[("CUDA_BUILDER_RUSTC", named.as_os_str())]);
    let file = folder.path().join("named-sysroot/lib/rustlib/src/rust/library/core/src/lib.rs");
    assert!(
        answer.contains(&format!("CUDA_BUILDER_RUSTC, {}: has no {}", named.display(), file.display())),
        "{answer}"
    );
    assert_says_how_to_install(&answer);
}

#[test]
fn a_program_that_is_no_compiler_is_an_error_that_says_how_it_ended() {
    let answer = find(&[("CUDA_BUILDER_RUSTC", OsStr::new("false"))]);
    assert!(answer.contains("CUDA_BUILDER_RUSTC, false: `--print sysroot` ended with exit status: 1"), "{answer}");
}
