//! The compiled modules and their launches.

use super::failure::OrFailure;
use crate::Error;
use cust::error::CudaError;
use cust::module::{Module, ModuleJitOption};
use cust::stream::Stream;
use cust_raw::CUfunction;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;

/// Each module's name, `family_type`, and its PTX.
static MODULES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// The names of the compiled kernel modules in this build, such as "sort_u32"; each is loaded when it is first used.
pub fn kernel_modules() -> Vec<&'static str> {
    MODULES.iter().map(|(name, _)| *name).collect()
}

/// The kernels that have been loaded into one context.
#[derive(Default)]
pub(crate) struct Kernels {
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    functions: HashMap<(&'static str, &'static str), Function>,
    /// Never dropped before the functions that they hold.
    modules: HashMap<String, Module>,
}

/// A kernel that is ready to be launched.
#[derive(Clone, Copy)]
pub(crate) struct Function(CUfunction);

// SAFETY: a function handle is a value that the driver looks up; it may be used from any thread while its module is
// loaded.
unsafe impl Send for Function {}

/// The shape of a launch: blocks, threads of a block, and bytes of dynamic shared memory of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) blocks: usize,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
}

impl Kernels {
    /// The kernel of that name for keys of that type, loading its module if this is the first use.
    ///
    /// The context that these kernels belong to has to be current.
    pub(crate) fn function(&self, kernel: &'static str, key: &'static str) -> Result<Function, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Loaded { functions, modules } = &mut *loaded;
        if let Some(function) = functions.get(&(kernel, key)) {
            return Ok(*function);
        }
        let missing = || Error::Device {
            call: format!("looking for kernel {kernel}_{key}"),
            reason: "this build does not have it".to_owned(),
        };
        let name = format!("{}_{key}", kernels_gpu::modules::family(kernel).ok_or_else(missing)?);
        if !modules.contains_key(&name) {
            let (_, ptx) = MODULES.iter().find(|(module, _)| *module == name).ok_or_else(missing)?;
            let module = Module::from_ptx(ptx, &[ModuleJitOption::GenerateDebugInfo(false)])
                .or_failure(&format!("cuModuleLoadData of {name}"))?;
            modules.insert(name.clone(), module);
        }
        let entry = format!("{kernel}_{key}");
        let function =
            modules[&name].get_function(&entry).or_failure(&format!("cuModuleGetFunction of {entry}"))?.to_raw();
        functions.insert((kernel, key), Function(function));
        Ok(Function(function))
    }
}

impl Function {
    /// Puts a launch on the stream. Nothing is launched for a shape of no blocks.
    ///
    /// # Safety
    /// `arguments` point to the kernel's arguments, in number and types, and these are what the kernel's documentation
    /// asks for until the launch has ended. The function's module is loaded.
    pub(crate) unsafe fn launch(self, shape: Shape, arguments: &[*mut c_void], stream: &Stream) -> Result<(), Error> {
        if shape.blocks == 0 {
            return Ok(());
        }
        let blocks = u32::try_from(shape.blocks).map_err(|_| CudaError::InvalidValue).or_failure("cuLaunchKernel")?;
        // SAFETY: the caller's promise.
        let code = unsafe {
            cust_raw::cuLaunchKernel(
                self.0,
                blocks,
                1,
                1,
                shape.threads,
                1,
                1,
                shape.shared_bytes,
                stream.as_inner(),
                arguments.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        };
        cust::error::ToResult::to_result(code).or_failure("cuLaunchKernel")
    }
}

/// Pointers to the arguments of a launch.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => {
        [$((&raw const $argument).cast_mut().cast::<std::ffi::c_void>()),*]
    };
}
pub(crate) use arguments;
