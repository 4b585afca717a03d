//! The compiler refuses programs with mistakes. Its errors name the mistake and the remedy.

use std::path::Path;
use std::process::Command;

/// The compiler's errors about a program in `refused/src/bin`, which must not compile.
fn errors_of(program: &str) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--offline",
            "--color=never",
            "--package",
            "own-key-refused",
            "--bin",
            program,
        ])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .output()
        .expect("cargo runs the test");
    let said = String::from_utf8(output.stderr).expect("the compiler writes UTF-8");
    assert!(!output.status.success(), "{program} compiles");
    said
}

#[test]
fn an_order_without_kernels() {
    check(
        "order-without-kernels",
        &[
            "error[E0277]: there are no kernels for the order `ByYear` with values of type `()`",
            "emulated::sort_by::<ByYear, ()>(&mut persons, 1);",
            "no kernels of this order",
            "name them in the kernel crate: `kernels! { a_name: ByYear; }`",
            "error[E0277]: there are no kernels for the order `ByName` with values of type `u64`",
            "or with values `kernels! { a_name: ByName, values u64; }`",
        ],
    );
}

#[test]
fn items_and_values_of_sizes_that_are_not_moved() {
    check(
        "sizes",
        &[
            "error[E0080]: evaluation panicked: an item or a value has a multiple of 4 bytes",
            "of_bytes: OfBytes;",
            "inside `check_size::<[u8; 7]>`",
            "error[E0080]: evaluation panicked: an item or a value has at most 64 bytes: sort the indices of \
             longer ones",
            "by_year: ByYear, values [u32; 17];",
            "inside `check_size::<[u32; 17]>`",
        ],
    );
}

#[test]
fn a_type_that_is_no_order() {
    check(
        "no-order",
        &[
            "error[E0277]: `Point` is no order of a user's own",
            "point: Point;",
            "implement `kernels_gpu::own::Compare` for it, or `kernels_gpu::own::Key` if some bits compare as it does",
        ],
    );
}

#[test]
fn methods_for_the_librarys_own_types_of_keys() {
    check(
        "methods-for-numbers",
        &[
            "error[E0277]: the GPU has no kernels for keys of type `Person`",
            "stream.sort(SortOrder::Ascending, persons, workspace)",
            "structs and other types are sorted and merged on a GPU by `Stream::sort_by` and its like",
        ],
    );
}

/// Checks that the compiler's errors have these lines, in this order, as parts of lines.
fn check(program: &str, lines: &[&str]) {
    let said = errors_of(program);
    let mut left = said.lines();
    for line in lines {
        assert!(left.any(|other| other.contains(line)), "{program}: no line has {line:?} here:\n{said}");
    }
}
