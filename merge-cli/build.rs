//! Makes the program smaller, and its start faster in tests, by arguments for the linker. They are given only where the
//! toolchain brings LLD, because other linkers may not know them.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Leaves out the tables for unwinding, because a panic ends the program without (`merge_cli::end_at_panic`). The loops
/// of vector instructions, in functions `compiled`, begin at cache lines: at other addresses, sorts take 7 % longer.
const LAYOUT: &str = "SECTIONS {
    .text.vector : SUBALIGN(64) { *(.text.*8compiled17h*) }
    /DISCARD/ : { *(.eh_frame .gcc_except_table .gcc_except_table.*) }
} INSERT AFTER .text;
";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if !links_by_own_lld() {
        return;
    }
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        // Tests start the program thousands of times. At a fixed address, it needs no relocations. Otherwise it would
        // have 110,000 of them, which take a quarter of the time of a start.
        println!("cargo:rustc-link-arg-bins=-no-pie");
    } else {
        // One of several functions with the same machine code, such as those of a sort for two types of one size.
        link("--icf=all");
        if loads_packed_relocations() {
            link("-z,pack-relative-relocs");
        }
        let script = format!("{}/layout.ld", env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
        fs::write(&script, LAYOUT).expect("OUT_DIR is writable");
        link(&format!("--no-eh-frame-hdr,--script={script}"));
    }
}

fn link(argument: &str) {
    println!("cargo:rustc-link-arg-bins=-Wl,{argument}");
}

/// Whether the C library is glibc 2.36 or later. Earlier ones refuse to load a program with packed relocations.
fn loads_packed_relocations() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    version.is_some_and(|minor| minor >= 36)
}

/// Whether the compiler links by the LLD in its own folders, as toolchains of the Rust project do for this target.
fn links_by_own_lld() -> bool {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let is_target = ["TARGET", "HOST"].into_iter().all(|name| env::var(name).is_ok_and(|target| target == TARGET));
    // Either may name another linker.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_default = env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link");
    let Some(rustc) = env::var_os("RUSTC").filter(|_| is_target && is_default) else { return false };
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let Ok(sysroot) = String::from_utf8(output.stdout) else { return false };
    Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld").exists()
}
