//! Provides the compiled kernels: `OUT_DIR/modules.rs` names them and includes them, compressed.
//!
//! The modules in `kernels-gpu/ptx` begin with the hash of the sources that they were made from. Where that is the hash
//! of the sources at hand they are used as they are, and no kernel compiler is needed. Where the sources have changed
//! since, the kernels are compiled afresh; without a compiler the build fails, because a library with kernels of other
//! sources than its own may launch them with the wrong arguments.
//!
//! `CUDA_BUILDER_PTX_DIR=folder` compiles in any case and writes the modules to that folder.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "gpu")]
    kernels::provide();
}

#[cfg(feature = "gpu")]
mod kernels {
    use cuda_builder::{
        Compiler, CudaBuilder, CudaBuilderError, Modules, NvvmArch, SourceHash, current_modules, split_modules,
        write_modules,
    };
    use miniz_oxide::deflate::compress_to_vec;
    use std::env;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::exit;

    /// What the kernels are made from, relative to the workspace's root.
    const SOURCES: [&str; 7] = [
        "kernels-gpu/Cargo.toml",
        "kernels-gpu/src",
        "rust-cuda/cuda_builder/src",
        "rust-cuda/cuda_std/Cargo.toml",
        "rust-cuda/cuda_std/src",
        "rust-cuda/cuda_std_macros/src",
        "merge-host/build.rs",
    ];
    /// Sources under those that the GPU does not see.
    const SKIPPED: [&str; 1] = ["rust-cuda/cuda_std/src/emulator"];

    /// The compiler unrolls loops over register arrays only up to a size, which tiles exceed; an array in a loop that
    /// is left would be in memory.
    const BUILD_ARGS: [&str; 2] = ["-Cllvm-args=-unroll-threshold=60000", "-Cllvm-args=-unroll-full-max-count=1024"];

    /// The level of DEFLATE's compression: higher ones take longer and save little.
    const COMPRESSION: u8 = 6;

    pub fn provide() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a workspace").to_owned();
        for source in SOURCES {
            println!("cargo:rerun-if-changed={}", root.join(source).display());
        }
        println!("cargo:rerun-if-changed={}", root.join("kernels-gpu/ptx").display());
        for variable in ["CUDA_BUILDER_RUSTC", "CUDA_BUILDER_PTX_DIR"] {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        let modules = modules(&root).unwrap_or_else(|error| {
            eprintln!("kernels-gpu: {error}");
            exit(1)
        });
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let mut list = String::from("[\n");
        for (name, text) in &modules {
            // Compressed, PTX takes a tenth of its bytes.
            let path = out.join(format!("{name}.ptx.deflate"));
            fs::write(&path, compress_to_vec(text.as_bytes(), COMPRESSION)).expect("OUT_DIR is writable");
            list.push_str(&format!("    ({name:?}, include_bytes!({path:?})),\n"));
        }
        list.push_str("]\n");
        fs::write(out.join("modules.rs"), list).expect("OUT_DIR is writable");
    }

    fn modules(root: &Path) -> Result<Modules, CudaBuilderError> {
        let hash = SourceHash::of(root, &SOURCES, &SKIPPED)?;
        if let Some(folder) = env::var_os("CUDA_BUILDER_PTX_DIR") {
            let modules = compile(root, &hash)?;
            write_modules(&modules, Path::new(&folder))?;
            return Ok(modules);
        }
        current_modules(&root.join("kernels-gpu/ptx"), &hash, || compile(root, &hash))
    }

    fn compile(root: &Path, hash: &SourceHash) -> Result<Modules, CudaBuilderError> {
        let compiler = Compiler::find()?;
        let path =
            CudaBuilder::new(root.join("kernels-gpu")).arch(NvvmArch::Compute80).build_args(&BUILD_ARGS).build()?;
        let ptx = fs::read_to_string(&path).expect("the builder has just written it");
        let mut modules = split_modules(&ptx, |entry| {
            let (kernel, key) = entry.rsplit_once('_')?;
            Some(format!("{}_{key}", kernels_gpu::modules::family(kernel)?))
        })?;
        let header = hash.header(compiler.version());
        modules.values_mut().for_each(|text| text.insert_str(0, &header));
        Ok(modules)
    }
}
