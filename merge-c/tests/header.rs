//! The header is the one that cbindgen makes.

use std::fs;
use std::path::Path;

/// Compares `include/gmerge.h` with the result of cbindgen, or writes it if the variable `GMERGE_WRITE_HEADER` is set.
#[test]
fn the_header_has_the_functions_of_the_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::generate_with_config(folder, config).unwrap().write(&mut made);
    let path = folder.join("include/gmerge.h");
    if std::env::var_os("GMERGE_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    let hint = "`GMERGE_WRITE_HEADER=1 cargo test -p merge-c --test header` makes it anew";
    assert!(found.as_bytes() == made, "include/gmerge.h is not the header of the sources: {hint}");
}
