//! Compiles the kernels to PTX, which the program includes.

use cuda_builder::CudaBuilder;
use std::env;
use std::path::PathBuf;
use std::process::exit;

fn main() {
    // The sources of the kernels: the crate that names them, and its dependencies.
    for source in ["kernels", "../../kernels-gpu/src", "../../rust-cuda/cuda_std/src"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if let Err(error) = CudaBuilder::new("kernels").copy_to(out.join("kernels.ptx")).build() {
        eprintln!("{error}");
        exit(1);
    }
}
