//! The properties of a set of sources that its hash depends on.

use cuda_builder::{CudaBuilderError, SourceHash};
use std::fs;
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

/// Whether `change` to the sources changes the hash.
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
    assert!(changes(|folder| write(folder, "src/lib.rs", "mod deep; mod deeper;")));
    assert!(changes(|folder| write(folder, "src/deep/mod.rs", "")));
    assert!(changes(|folder| write(folder, "Cargo.toml", "[package]\n")));
    // The same tokens in total, divided differently between two files.
    assert!(changes(|folder| {
        write(folder, "src/lib.rs", "mod deep; fn f()");
        write(folder, "src/deep/mod.rs", "{}");
    }));
    // Text that is not Rust is hashed as it is.
    assert!(changes(|folder| write(folder, "src/lib.rs", "mod deep; }")));
}

#[test]
fn it_does_not_change_with_what_the_compiler_does_not_see() {
    assert!(!changes(|folder| write(folder, "src/lib.rs", "//! Documentation.\n\nmod  deep ; // A comment.\n")));
    assert!(!changes(|folder| write(
        folder,
        "src/deep/mod.rs",
        "/// Of `f`.\n#[doc = \"more\"]\nfn f() { /* nothing */ }"
    )));
    // Other attributes and strings that look like comments count.
    assert!(changes(|folder| write(folder, "src/deep/mod.rs", "#[inline]\nfn f() {}")));
    assert!(changes(|folder| write(folder, "src/deep/mod.rs", "#[doc(hidden)]\nfn f() {}")));
    let text = |text: &'static str| move |folder: &TempDir| write(folder, "src/deep/mod.rs", text);
    let folder = sources();
    text("const S: &str = \"// one\";")(&folder);
    let one = hash(&folder);
    text("const S: &str = \"// two\";")(&folder);
    assert_ne!(one, hash(&folder));
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
    // `skip` has paths, not names.
    assert!(changes(|folder| write(folder, "src/deep/host/mod.rs", "changed")));
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let folder = sources();
    let error = SourceHash::of(folder.path(), &["src", "no-such-file"], &[]).unwrap_err();
    assert!(matches!(error, CudaBuilderError::Io { .. }), "{error}");
    assert!(error.to_string().contains("no-such-file"), "{error}");
}
