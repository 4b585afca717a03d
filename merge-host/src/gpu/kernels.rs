//! The compiled modules and their launches.

use super::failure::{OrFailure, succeeded};
use crate::{Cause, Error};
use cuda_std::launch::Arguments;
use cust::context::CurrentContext;
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::function::Function;
use cust::module::Module;
use cust::stream::Stream;
use cust::sys;
use miniz_oxide::inflate::decompress_to_vec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::{Mutex, PoisonError};

/// A module as this build has it.
struct Compiled {
    /// `family_type`.
    name: &'static str,
    /// Its PTX, compressed by DEFLATE.
    ptx: &'static [u8],
    /// Compute capabilities, as `10 * major + minor`, and machine code for each, compressed in the same way.
    code: &'static [(u32, &'static [u8])],
}

static MODULES: &[Compiled] = &include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// The names of the compiled kernel modules in this build, such as "sort_u32"; each is loaded when it is first used.
pub fn kernel_modules() -> Vec<&'static str> {
    MODULES.iter().map(|module| module.name).collect()
}

/// The module that has `kernel` for keys of type `key`, if this build has one.
fn module_of(kernel: &str, key: &str) -> Option<&'static Compiled> {
    let name = format!("{}_{key}", kernels_gpu::modules::family(kernel)?);
    MODULES.iter().find(|module| module.name == name)
}

impl Compiled {
    /// Loads it into the current context: as machine code, where this build has some for the GPU and the driver takes
    /// it, and otherwise as PTX, which the driver compiles.
    fn load(&self) -> Result<Module, Error> {
        if let Some(code) = self.code_for(capability()?)
            && let Ok(module) = Module::from_cubin(decompress(code)?, &[])
        {
            return Ok(module);
        }
        Module::from_ptx(self.ptx()?, &[]).or_failure(&format!("cuModuleLoadData of {}", self.name))
    }

    /// The machine code for a GPU of that compute capability: that of the same generation, and no later one.
    fn code_for(&self, capability: u32) -> Option<&'static [u8]> {
        let fits = |of: u32| of / 10 == capability / 10 && of <= capability;
        self.code.iter().filter(|(of, _)| fits(*of)).max_by_key(|(of, _)| *of).map(|(_, code)| *code)
    }

    fn ptx(&self) -> Result<String, Error> {
        String::from_utf8(decompress(self.ptx)?).map_err(damaged)
    }
}

fn decompress(compressed: &[u8]) -> Result<Vec<u8>, Error> {
    decompress_to_vec(compressed).map_err(damaged)
}

fn damaged(cause: impl Into<Cause>) -> Error {
    let cause = cause.into();
    Error::Device {
        call: "decompressing a module".to_owned(),
        reason: cause.to_string(),
        code: None,
        cause: Some(cause),
    }
}

/// The compute capability of the current context's GPU, as `10 * major + minor`.
fn capability() -> Result<u32, Error> {
    let device = CurrentContext::get_device().or_failure("cuCtxGetDevice")?;
    let number = |of| device.get_attribute(of).or_failure("cuDeviceGetAttribute");
    let (major, minor) = (DeviceAttribute::ComputeCapabilityMajor, DeviceAttribute::ComputeCapabilityMinor);
    Ok((10 * number(major)? + number(minor)?) as u32)
}

/// Whether this build has `kernel` for keys of type `key`.
#[cfg(test)]
pub(super) fn exists(kernel: &str, key: &str) -> bool {
    module_of(kernel, key).is_some_and(|module| module.ptx().unwrap().contains(&format!(".entry {kernel}_{key}(")))
}

/// The kernels that have been loaded into one context.
#[derive(Default)]
pub(crate) struct Kernels(Mutex<Loaded>);

#[derive(Default)]
struct Loaded {
    /// By entry point, those that have been launched: to ask the driver again takes as long as a launch.
    functions: HashMap<String, Kernel>,
    /// By name.
    modules: HashMap<&'static str, Module>,
    /// Those of users.
    own: Vec<Module>,
}

/// A function of a module, and how much dynamic shared memory its blocks may have.
struct Kernel {
    function: Function<'static>,
    shared_bytes: u32,
}

impl Loaded {
    /// `kernel` for keys of type `key`.
    fn kernel(&mut self, kernel: &str, key: &str) -> Result<&mut Kernel, Error> {
        let vacant = match self.functions.entry(format!("{kernel}_{key}")) {
            Entry::Occupied(kernel) => return Ok(kernel.into_mut()),
            Entry::Vacant(vacant) => vacant,
        };
        let entry = vacant.key();
        let function = if let Some(compiled) = module_of(kernel, key) {
            let module = match self.modules.entry(compiled.name) {
                Entry::Occupied(loaded) => loaded.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(compiled.load()?),
            };
            module.get_function(entry).or_failure(&format!("cuModuleGetFunction of {entry}"))?
        } else {
            // Another module of a user's may have it.
            self.own.iter().find_map(|module| module.get_function(entry).ok()).ok_or_else(|| missing(entry))?
        };
        // SAFETY: the module is not unloaded before `self` is dropped, and with it this function.
        let function = unsafe { mem::transmute::<Function<'_>, Function<'static>>(function) };
        Ok(vacant.insert(Kernel { function, shared_bytes: SHARED_BYTES_UNASKED }))
    }
}

/// That there is no entry point of that name and with such arguments.
fn missing(entry: &str) -> Error {
    Error::Device {
        call: format!("loading kernel {entry}"),
        reason: "neither this build nor a module that was given to it has it".to_owned(),
        code: None,
        cause: None,
    }
}

/// The shape of a launch: blocks, threads of a block, and bytes of dynamic shared memory of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) blocks: usize,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
}

impl Kernels {
    /// Loads a module of a user's into the current context.
    pub(crate) fn add(&self, ptx: &str) -> Result<(), Error> {
        let module = Module::from_ptx(ptx, &[]).or_failure("cuModuleLoadData of a user's module")?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).own.push(module);
        Ok(())
    }

    /// Loads a kernel and its module, if no call has done so yet. Where there is no machine code for the GPU, the
    /// driver then compiles the module, which takes a while.
    ///
    /// The context that these kernels belong to has to be current, here and at launches.
    pub(crate) fn load(&self, kernel: &str, key: &str) -> Result<(), Error> {
        self.with(kernel, key, |_| Ok(()))
    }

    /// Puts a launch of the kernel's instance `key` on the stream. Nothing is launched for a shape of no blocks.
    ///
    /// # Errors
    /// [`Error::Device`] where there is no such instance, or none that takes these arguments, and where the driver
    /// fails.
    ///
    /// # Safety
    /// The arguments are what the kernel's documentation asks for until the launch has ended.
    pub(crate) unsafe fn launch<A: Arguments>(
        &self,
        key: &str,
        shape: Shape,
        arguments: &A,
        stream: &Stream,
    ) -> Result<(), Error> {
        let kernel = A::KERNEL.name;
        if A::instance(key).is_none() {
            return Err(missing(&format!("{kernel}_{key}")));
        }
        if shape.blocks == 0 {
            return Ok(());
        }
        let blocks = u32::try_from(shape.blocks).map_err(|_| CudaError::InvalidValue).or_failure("cuLaunchKernel")?;
        self.with(kernel, key, |Kernel { function, shared_bytes }| {
            if shape.shared_bytes > *shared_bytes {
                allow_shared_bytes(function, shape.shared_bytes)?;
                *shared_bytes = shape.shared_bytes;
            }
            // SAFETY: the instance takes these arguments, to which the pointers are good during the call; the caller's
            // promise for what they say.
            unsafe {
                let pointers = arguments.pointers();
                stream.launch(function, blocks, shape.threads, shape.shared_bytes, pointers.as_ref())
            }
            .or_failure("cuLaunchKernel")
        })
    }

    fn with(&self, kernel: &str, key: &str, work: impl FnOnce(&mut Kernel) -> Result<(), Error>) -> Result<(), Error> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(loaded.kernel(kernel, key)?)
    }
}

/// Dynamic shared memory of a block that needs no permission.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;

/// Lets blocks of `function` have so much dynamic shared memory; `cust` has no call for it.
fn allow_shared_bytes(function: &Function<'_>, bytes: u32) -> Result<(), Error> {
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: the function is loaded.
    succeeded("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(function.to_raw(), attribute, bytes as i32) })
}
