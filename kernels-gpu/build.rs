//! Tells the build scripts of dependents the folder of the compiled modules and their manifest, as
//! `DEP_KERNELS_GPU_PTX`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:ptx={}/ptx", std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets the package's folder"));
}
