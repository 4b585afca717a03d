//! What the hash of a set of sources depends on.

use cuda_builder::{CudaBuilderError, SourceHash};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const PATHS: [&str; 2] = ["Cargo.toml", "src"];
const SKIPPED: [&str; 1] = ["src/host"];

fn sources() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in [
        ("Cargo.toml", "[package]"),
        ("src/lib.rs", "mod deep;"),
        ("src/deep/mod.rs", "fn f() {}"),
        ("src/host/mod.rs", "fn only_on_the_host() {}"),
        ("src/deep/host/mod.rs", "fn another_folder_of_that_name() {}"),
        ("src/notes.txt", "text"),
    ] {
        write(&folder, path, text);
    }
    folder
}

fn write(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn hash(folder: &TempDir) -> SourceHash {
    SourceHash::of(folder.path(), &PATHS, &SKIPPED).unwrap()
}

/// Whether the hash changes when `change` is made to the sources.
fn changes(change: impl Fn(&TempDir)) -> bool {
    let folder = sources();
    let before = hash(&folder);
    change(&folder);
    before != hash(&folder)
}

#[test]
fn it_does_not_depend_on_where_the_sources_are_or_in_which_order_they_are_named() {
    let (one, other) = (sources(), sources());
    assert_eq!(hash(&one), hash(&other));
    assert_eq!(hash(&one), SourceHash::of(one.path(), &["src", "Cargo.toml"], &SKIPPED).unwrap());
}

#[test]
fn it_changes_with_a_file() {
    assert!(changes(|folder| write(folder, "src/lib.rs", "mod deep; ")));
    assert!(changes(|folder| write(folder, "src/deep/mod.rs", "")));
    assert!(changes(|folder| write(folder, "Cargo.toml", "[package]\n")));
    // The same bytes in all, divided differently between two files.
    assert!(changes(|folder| {
        write(folder, "Cargo.toml", "[packag");
        write(folder, "src/lib.rs", "e]mod deep;");
    }));
}

#[test]
fn it_changes_when_a_file_is_added_removed_or_renamed() {
    assert!(changes(|folder| write(folder, "src/new.rs", "")));
    assert!(changes(|folder| fs::remove_file(folder.path().join("src/deep/mod.rs")).unwrap()));
    assert!(changes(|folder| {
        let src = folder.path().join("src");
        fs::rename(src.join("deep/mod.rs"), src.join("deep.rs")).unwrap();
    }));
}

#[test]
fn it_ignores_what_is_skipped_and_what_is_no_source() {
    assert!(!changes(|folder| write(folder, "src/host/mod.rs", "changed")));
    assert!(!changes(|folder| write(folder, "src/host/deeper/new.rs", "new")));
    assert!(!changes(|folder| write(folder, "src/notes.txt", "changed")));
    assert!(!changes(|folder| write(folder, "elsewhere.rs", "not named")));
    // Skipped is a path, not a name.
    assert!(changes(|folder| write(folder, "src/deep/host/mod.rs", "changed")));
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let folder = sources();
    let error = SourceHash::of(folder.path(), &["src", "no-such-file"], &[]).unwrap_err();
    assert!(matches!(error, CudaBuilderError::Io { .. }), "{error}");
    assert!(error.to_string().contains("no-such-file"), "{error}");
}

#[test]
fn a_header_is_read_back() {
    let hash = hash(&sources());
    let header = hash.header("rustc 1.2.3");
    assert!(header.ends_with("\n// compiler: rustc 1.2.3\n"), "{header}");
    let ptx = format!("{header}//\n.version 7.0\n");
    assert_eq!(SourceHash::in_ptx(&ptx), Some(hash));
    assert_eq!(SourceHash::in_ptx(".version 7.0\n.target sm_80\n"), None);
    assert_eq!(SourceHash::in_ptx(""), None);
}

#[test]
fn the_checked_in_kernels_say_what_they_were_made_from() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-gpu/ptx");
    let mut modules = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(SourceHash::in_ptx(&text).is_some(), "{}", path.display());
        modules += 1;
    }
    assert!(modules > 0, "no modules in {}", folder.display());
}
