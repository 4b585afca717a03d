//! Provides the compiled kernels: `OUT_DIR/modules.rs` names them and includes them, compressed.
//!
//! The package `kernels-gpu` has the compiled modules, and a manifest with the hash of their sources. If it equals the
//! hash of the current sources, the modules are used, and no kernel compiler is needed. If the sources have changed,
//! the kernels are compiled again. Without a compiler the build then fails, because a library with kernels of other
//! sources may launch them with wrong arguments.
//!
//! A package from a registry has no sources of kernels to compare. It takes the modules of the package `kernels-gpu` as
//! they are. Packages do not change, and this one names the version that it takes.
//!
//! In the repository, `CUDA_BUILDER_PTX_DIR=folder` always compiles, and writes the modules to this folder.
//!
//! `CUDA_BUILDER_SM=80,90` adds machine code for GPUs of these compute capabilities. Without it, the driver compiles at
//! the first launch. The variable needs NVIDIA's `ptxas`, on the path or named by `PTXAS`. If the variable is not set,
//! a release build adds machine code for [`CAPABILITIES`] if it finds `ptxas`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "gpu")]
    kernels::provide();
}

#[cfg(feature = "gpu")]
mod kernels {
    use cuda_builder::{
        Assembler, Compiler, CudaBuilder, CudaBuilderError, Modules, NvvmArch, SourceHash, current_modules,
        entry_points, packaged_modules, split_modules, write_modules,
    };
    use std::collections::BTreeMap;
    use std::env;
    use std::fs;
    use std::path::Path;
    use std::process::exit;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    /// The sources of the kernels, relative to the root of the workspace.
    const SOURCES: [&str; 7] = [
        "kernels-gpu/Cargo.toml",
        "kernels-gpu/src",
        "rust-cuda/cuda_builder/src",
        "rust-cuda/cuda_std/Cargo.toml",
        "rust-cuda/cuda_std/src",
        "rust-cuda/cuda_std_macros/src",
        "merge-host/build.rs",
    ];
    /// Folders in the sources that are not compiled for the GPU.
    const SKIPPED: [&str; 1] = ["rust-cuda/cuda_std/src/emulator"];

    /// Families of kernels that are used together, and the names of the kernels in each. A module is one family for one
    /// type, so that a program loads, and the driver compiles, only what it uses.
    const FAMILIES: [(&str, &[&str]); 21] = [
        ("textbook", &["co_rank_splits", "merge_one_thread", "merge_basic", "merge_tiled", "merge_circular"]),
        ("merge", &["merge_small", "path_big", "merge_big", "merge_fused", "count_below"]),
        ("batch", &["merge_small_batch", "merge_batch", "path_ragged", "merge_ragged"]),
        ("sets", &["balance_path", "combine_sets"]),
        ("groups", &["unique", "run_lengths", "reduce_groups"]),
        ("bounds", &["merge_bounds", "search_bounds"]),
        ("many_runs", &["pad_runs", "split_many_runs", "merge_many_runs"]),
        ("sort_small", &["sort_small"]),
        ("sort", &["block_sort", "split_runs", "merge_runs"]),
        (
            "divide",
            &[
                "count_once",
                "divide_once",
                "sort_once",
                "choose_digits",
                "count_twice",
                "count_digits",
                "place_parts",
                "place_buckets",
                "divide",
                "sort_buckets",
                "sort_rest",
            ],
        ),
        ("radix", &["sort_by_radix"]),
        ("windows", &["sort_windows", "merge_windows"]),
        ("top_k", &["take_sample", "gather", "pack", "count_digit", "choose_digit", "count_chunks", "collect"]),
        ("top_k_segments", &["select_segments", "copy_firsts"]),
        (
            "segments",
            &["find_segments", "sort_segments", "merge_segments", "sort_rows", "sort_wide_rows", "sort_short_segments"],
        ),
        ("middle_segments", &["sort_middle_by_bins", "sort_middle_segments"]),
        ("narrow", &["count_keys", "scan_counts", "fill_keys", "widen_keys", "narrow_keys"]),
        ("words", &["split_words", "join_words", "gather_words", "extract_bits"]),
        ("detect", &["detect_runs", "set_indices", "reverse", "copy_runs"]),
        ("pad", &["pad_keys"]),
        ("offsets", &["sum_lengths"]),
    ];

    /// The compression level of Zstandard. Higher levels take longer, and up to 15 they save nothing.
    const COMPRESSION: i32 = 9;

    /// The generations of GPUs that run the kernels: Ampere, Hopper, Blackwell.
    const CAPABILITIES: [u32; 3] = [80, 90, 100];

    pub fn provide() {
        let repository = repository();
        for source in repository.iter().flat_map(|root| SOURCES.map(|source| root.join(source))) {
            println!("cargo:rerun-if-changed={}", source.display());
        }
        let compiled =
            env::var_os("DEP_KERNELS_GPU_PTX").expect("cargo passes on what kernels-gpu's build script says");
        let compiled = Path::new(&compiled);
        println!("cargo:rerun-if-changed={}", compiled.display());
        for variable in ["CUDA_BUILDER_RUSTC", "CUDA_BUILDER_PTX_DIR", "CUDA_BUILDER_SM", "PTXAS"] {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        let modules = modules(repository, compiled).unwrap_or_else(|error| {
            eprintln!("kernels-gpu: {error}");
            exit(1)
        });
        let codes = machine_code(&modules).unwrap_or_else(|error| {
            eprintln!("kernels-gpu: {error}");
            exit(1)
        });
        let mut families = Families::default();
        let mut list = String::new();
        for (name, text) in &modules {
            let of_module = codes.iter().filter(|(module, ..)| module == name);
            let codes: String = of_module
                .map(|(_, capability, code)| {
                    format!("({capability}, {}), ", families.add(name, &format!("SM_{capability}"), code))
                })
                .collect();
            let ptx = families.add(name, "PTX", text.as_bytes());
            let entries = entry_points(text);
            list.push_str(&format!(
                "    Compiled {{ name: {name:?}, entries: &{entries:?}, ptx: {ptx}, code: &[{codes}] }},\n"
            ));
        }
        let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
        let constants = families.write(Path::new(&out));
        fs::write(format!("{out}/modules.rs"), format!("{{\n{constants}[\n{list}]}}\n")).expect("OUT_DIR is writable");
    }

    /// The modules of a family have much in common, so they are compressed together: to an eighth of their bytes, and
    /// not to a fifth. Keys are names of constants.
    #[derive(Default)]
    struct Families(BTreeMap<String, Vec<u8>>);

    impl Families {
        /// Appends a module of some `kind` to those of its family. Returns the expression for it.
        fn add(&mut self, module: &str, kind: &str, bytes: &[u8]) -> String {
            let family = module.rsplit_once('_').map_or(module, |(family, _)| family);
            let name = format!("{}_{kind}", family.to_uppercase());
            let all = self.0.entry(name.clone()).or_default();
            let part = format!("Part {{ family: {name}, begin: {}, length: {} }}", all.len(), bytes.len());
            all.extend_from_slice(bytes);
            part
        }

        /// Compresses all families into files in the folder `out`. Returns the constants with their contents.
        fn write(&self, out: &Path) -> String {
            let constant = |(name, bytes): (&String, &Vec<u8>)| {
                let path = out.join(format!("{name}.zst"));
                let compressed = zstd::bulk::compress(bytes, COMPRESSION).expect("there is memory");
                fs::write(&path, compressed).expect("OUT_DIR is writable");
                format!("const {name}: &[u8] = include_bytes!({path:?});\n")
            };
            self.0.iter().map(constant).collect()
        }
    }

    /// Machine code: the name of a module, a compute capability, and the bytes.
    type Codes = Vec<(String, u32, Vec<u8>)>;

    /// Assembles all modules for the requested compute capabilities, on all cores.
    fn machine_code(modules: &Modules) -> Result<Codes, CudaBuilderError> {
        let wanted: Vec<u32> = match env::var("CUDA_BUILDER_SM") {
            Ok(list) => list.split(',').filter(|word| !word.is_empty()).map(capability).collect(),
            Err(_) if env::var("PROFILE").is_ok_and(|profile| profile == "release") => CAPABILITIES.to_vec(),
            Err(_) => Vec::new(),
        };
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let Some(assembler) = Assembler::find() else {
            assert!(env::var_os("CUDA_BUILDER_SM").is_none(), "CUDA_BUILDER_SM is set, and there is no ptxas");
            return Ok(Vec::new());
        };
        let work: Vec<_> =
            modules.iter().flat_map(|(name, ptx)| wanted.iter().map(move |sm| (name, ptx, *sm))).collect();
        let next = AtomicUsize::new(0);
        let assemble = || {
            let mut codes = Codes::new();
            while let Some((name, ptx, capability)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                codes.push(((*name).clone(), *capability, assembler.assemble(ptx, *capability)?));
            }
            Ok(codes)
        };
        let parts = thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(assemble)).collect();
            threads.into_iter().map(|thread| thread.join().expect("assembling does not panic")).collect::<Vec<_>>()
        });
        Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn capability(word: &str) -> u32 {
        word.trim().parse().unwrap_or_else(|_| panic!("CUDA_BUILDER_SM has {word:?}, expected a number such as 90"))
    }

    /// The root of the repository, unless this is a package outside of it. The folder that is looked for is named after
    /// no package.
    fn repository() -> Option<&'static Path> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        root.join("rust-cuda/cuda_std").is_dir().then_some(root)
    }

    /// The modules of a `repository`'s sources, or those in the folder `compiled`.
    fn modules(repository: Option<&Path>, compiled: &Path) -> Result<Modules, CudaBuilderError> {
        let Some(root) = repository else { return packaged_modules(compiled) };
        let hash = SourceHash::of(root, &SOURCES, &SKIPPED)?;
        if let Some(folder) = env::var_os("CUDA_BUILDER_PTX_DIR") {
            let compiler = Compiler::find()?;
            let modules = compile(root)?;
            write_modules(&modules, &hash, compiler.version(), Path::new(&folder))?;
            return Ok(modules);
        }
        current_modules(compiled, &hash, || compile(root))
    }

    fn compile(root: &Path) -> Result<Modules, CudaBuilderError> {
        let path = CudaBuilder::new(root.join("kernels-gpu")).arch(NvvmArch::Compute80).build()?;
        let ptx = fs::read_to_string(&path).expect("the builder has just written it");
        split_modules(&ptx, |entry| {
            let (kernel, key) = entry.rsplit_once('_')?;
            let (family, _) = FAMILIES.iter().find(|(_, kernels)| kernels.contains(&kernel))?;
            Some(format!("{family}_{key}"))
        })
    }
}
