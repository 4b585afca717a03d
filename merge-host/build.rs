//! Provides the compiled kernels: `OUT_DIR/modules.rs` names them and includes their texts.
//!
//! The modules in `kernels-gpu/ptx` begin with the hash of the sources that they were made from. Where that is the hash
//! of the sources at hand they are used as they are, and no kernel compiler is needed. Where the sources have changed
//! since, the kernels are compiled afresh; without a compiler, the modules at hand are used all the same, with a warning.
//!
//! `CUDA_BUILDER_PTX_DIR=folder` compiles in any case and writes the modules to that folder.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "gpu")]
    kernels::provide();
}

#[cfg(feature = "gpu")]
mod kernels {
    use cuda_builder::{Compiler, CudaBuilder, CudaBuilderError, NvvmArch, SourceHash, split_modules};
    use std::collections::BTreeMap;
    use std::env;
    use std::fs;
    use std::path::{Path, PathBuf};

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

    /// Module names with their PTX.
    type Modules = BTreeMap<String, String>;

    pub fn provide() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a workspace").to_owned();
        for source in SOURCES {
            println!("cargo:rerun-if-changed={}", root.join(source).display());
        }
        println!("cargo:rerun-if-changed={}", root.join("kernels-gpu/ptx").display());
        for variable in ["CUDA_BUILDER_RUSTC", "CUDA_BUILDER_PTX_DIR"] {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        let modules = modules(&root).unwrap_or_else(|error| panic!("kernels-gpu: {error}"));
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let mut list = String::from("[\n");
        for (name, text) in &modules {
            let path = out.join(format!("{name}.ptx"));
            fs::write(&path, text).expect("OUT_DIR is writable");
            list.push_str(&format!("    ({name:?}, include_str!({path:?})),\n"));
        }
        list.push_str("]\n");
        fs::write(out.join("modules.rs"), list).expect("OUT_DIR is writable");
    }

    fn modules(root: &Path) -> Result<Modules, CudaBuilderError> {
        let hash = SourceHash::of(root, &SOURCES, &SKIPPED)?;
        if let Some(folder) = env::var_os("CUDA_BUILDER_PTX_DIR") {
            let modules = compile(root, &hash)?;
            write(&modules, Path::new(&folder)).unwrap_or_else(|error| panic!("CUDA_BUILDER_PTX_DIR: {error}"));
            return Ok(modules);
        }
        let checked_in = read(&root.join("kernels-gpu/ptx"));
        let current = |text: &String| SourceHash::in_ptx(text).as_ref() == Some(&hash);
        if !checked_in.is_empty() && checked_in.values().all(current) {
            return Ok(checked_in);
        }
        match compile(root, &hash) {
            Err(error @ CudaBuilderError::NoCompiler { .. }) => {
                println!("cargo:warning=the kernels in kernels-gpu/ptx are older than their sources: {error}");
                Ok(checked_in)
            }
            compiled => compiled,
        }
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

    fn read(folder: &Path) -> Modules {
        let Ok(entries) = fs::read_dir(folder) else { return Modules::new() };
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
            .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), fs::read_to_string(&path).ok()?)))
            .collect()
    }

    fn write(modules: &Modules, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        // A module that is no more would look current to nobody, and be carried along for ever.
        for old in read(folder).keys().filter(|name| !modules.contains_key(*name)) {
            fs::remove_file(folder.join(format!("{old}.ptx")))?;
        }
        modules.iter().try_for_each(|(name, text)| fs::write(folder.join(format!("{name}.ptx")), text))
    }
}
