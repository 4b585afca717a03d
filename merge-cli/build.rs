//! Makes the program smaller: LLD keeps one of several functions with the same machine code, such as those of a sort
//! for two types of one size. Other linkers may not know the flag, so it is given only where the toolchain brings LLD.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && links_by_own_lld() {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
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
