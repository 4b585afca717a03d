//! The compiled modules and their launches.

use super::failure::OrFailure;
use super::launch::Launch;
use crate::{Cause, Error};
use cust::context::CurrentContext;
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::function::Function;
use cust::module::Module;
use cust::stream::Stream;
use ruzstd::decoding::StreamingDecoder;
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A compiled module of this build.
struct Compiled {
    /// `family_type`.
    name: &'static str,
    /// The names of its kernels' entry points: `kernel_type`.
    entries: &'static [&'static str],
    ptx: Part,
    /// Compute capabilities, as `10 * major + minor`, each with machine code.
    code: &'static [(u32, Part)],
}

/// Some of the bytes of the modules of a family.
#[derive(Clone, Copy)]
struct Part {
    /// All of them, compressed by Zstandard.
    family: &'static [u8],
    begin: u64,
    length: usize,
}

static MODULES: &[Compiled] = &include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// The names of the compiled kernel modules in this build, such as "sort_u32". A module is loaded at its first use.
pub fn kernel_modules() -> Vec<&'static str> {
    MODULES.iter().map(|module| module.name).collect()
}

/// The index of the module that has the entry point `entry`, if this build has one.
fn module_of(entry: &str) -> Option<usize> {
    MODULES.iter().position(|module| module.entries.contains(&entry))
}

impl Compiled {
    /// Loads the module into the current context. Takes machine code if this build has some for the GPU and the driver
    /// accepts it. Otherwise the driver compiles the PTX.
    fn load(&self) -> Result<Module, Error> {
        if let Some(code) = self.code_for(capability()?) {
            let code = code.decompressed()?;
            // SAFETY: `code` is a file from NVIDIA's assembler, which the build script has compressed.
            if let Ok(module) = unsafe { Module::from_cubin(&code) } {
                return Ok(module);
            }
        }
        Module::from_ptx(&self.ptx()?).or_failure(&format!("cuModuleLoadData of {}", self.name))
    }

    /// The machine code for a GPU of this compute capability: the latest of the same generation that is not later than
    /// the GPU.
    fn code_for(&self, capability: u32) -> Option<Part> {
        let fits = |of: u32| of / 10 == capability / 10 && of <= capability;
        self.code.iter().filter(|(of, _)| fits(*of)).max_by_key(|(of, _)| *of).map(|(_, code)| *code)
    }

    fn ptx(&self) -> Result<String, Error> {
        String::from_utf8(self.ptx.decompressed()?).map_err(damaged)
    }
}

impl Part {
    fn decompressed(self) -> Result<Vec<u8>, Error> {
        let mut family = StreamingDecoder::new(self.family).map_err(damaged)?;
        io::copy(&mut family.by_ref().take(self.begin), &mut io::sink()).map_err(damaged)?;
        let mut bytes = vec![0; self.length];
        family.read_exact(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    }
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

/// The name of the module that has `kernel` for keys of type `key`, if this build has one.
#[cfg(test)]
pub(super) fn module_name(kernel: &str, key: &str) -> Option<&'static str> {
    module_of(&format!("{kernel}_{key}")).map(|i| MODULES[i].name)
}

/// The kernels that have been loaded into one context. No lock is held while the driver compiles, so a launch waits
/// only for the module that it needs.
pub(crate) struct Kernels {
    /// Launched functions by entry point. They are cached because asking the driver again takes as long as a launch.
    functions: Mutex<HashMap<String, Kernel>>,
    /// In the order of [`MODULES`].
    modules: Box<[OnceLock<Result<Module, Error>>]>,
    /// Modules of users.
    own: Mutex<Vec<Module>>,
}

impl Default for Kernels {
    fn default() -> Self {
        let modules = MODULES.iter().map(|_| OnceLock::new()).collect();
        Self { functions: Mutex::default(), modules, own: Mutex::default() }
    }
}

/// A function of a module, and the bytes of dynamic shared memory that its blocks may have.
#[derive(Clone, Copy)]
struct Kernel {
    function: Function,
    shared_bytes: u32,
}

impl Kernels {
    /// Finds the function of `entry`. Loads its module if no call has done so.
    fn find(&self, entry: &str) -> Result<Kernel, Error> {
        let function = match module_of(entry) {
            Some(i) => {
                let module = self.modules[i].get_or_init(|| MODULES[i].load()).as_ref().map_err(Clone::clone)?;
                module.get_function(entry).or_failure(&format!("cuModuleGetFunction of {entry}"))?
            }
            // A user's module may have it.
            None => {
                let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
                let found = own.iter().find_map(|module| module.get_function(entry).ok());
                found.ok_or_else(|| missing(entry))?
            }
        };
        Ok(Kernel { function, shared_bytes: SHARED_BYTES_UNASKED })
    }

    /// The function of `kernel` for keys of type `key`, which may use `shared_bytes` of dynamic shared memory.
    fn kernel(&self, kernel: &str, key: &str, shared_bytes: u32) -> Result<Function, Error> {
        let entry = format!("{kernel}_{key}");
        let known = |functions: &Mutex<HashMap<String, Kernel>>| {
            functions.lock().unwrap_or_else(PoisonError::into_inner).get(&entry).copied()
        };
        let mut found = match known(&self.functions) {
            Some(found) if found.shared_bytes >= shared_bytes => return Ok(found.function),
            Some(found) => found,
            None => self.find(&entry)?,
        };
        if shared_bytes > found.shared_bytes {
            // SAFETY: the function belongs to a module that `self` keeps loaded.
            unsafe { found.function.set_max_dynamic_shared_bytes(shared_bytes) }.or_failure("cuFuncSetAttribute")?;
            found.shared_bytes = shared_bytes;
        }
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).insert(entry, found);
        Ok(found.function)
    }
}

/// The error for an entry point that does not exist, or that takes other arguments.
fn missing(entry: &str) -> Error {
    Error::Device {
        call: format!("loading kernel {entry}"),
        reason: "neither this build nor a module that was given to it has it".to_owned(),
        code: None,
        cause: None,
    }
}

/// The shape of a launch: blocks, threads per block, and bytes of dynamic shared memory per block.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub blocks: usize,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl Shape {
    /// Blocks of `threads` threads, one thread for each of `n` elements, without dynamic shared memory.
    pub const fn a_thread_each(n: usize, threads: u32) -> Self {
        Self { blocks: n.div_ceil(threads as usize), threads, shared_bytes: 0 }
    }
}

impl Kernels {
    /// Loads a user's module into the current context.
    pub(crate) fn add(&self, ptx: &str) -> Result<(), Error> {
        let module = Module::from_ptx(ptx).or_failure("cuModuleLoadData of a user's module")?;
        self.own.lock().unwrap_or_else(PoisonError::into_inner).push(module);
        Ok(())
    }

    /// Loads a kernel and its module, if no call has done so yet. Without machine code for the GPU the driver compiles
    /// the module, which takes a while.
    ///
    /// The context of the kernels has to be current, here and at launches.
    pub(crate) fn load(&self, kernel: &str, key: &str) -> Result<(), Error> {
        self.kernel(kernel, key, 0).map(|_| ())
    }

    /// Puts a launch on the stream. Launches nothing if the shape has no blocks.
    ///
    /// # Errors
    /// [`Error::Device`] if the instance does not exist or takes other arguments, and where the driver fails.
    ///
    /// # Safety
    /// The arguments meet the requirements of the kernel's documentation until the launch has ended.
    pub(crate) unsafe fn launch(&self, launch: &Launch<'_>, stream: &Stream) -> Result<(), Error> {
        let Launch { kernel, suffix, exists, pointers, .. } = *launch;
        if !exists {
            return Err(missing(&format!("{kernel}_{suffix}")));
        }
        let Shape { blocks, threads, shared_bytes } = launch.shape;
        if blocks == 0 {
            return Ok(());
        }
        let blocks = u32::try_from(blocks).map_err(|_| CudaError::INVALID_VALUE).or_failure("cuLaunchKernel")?;
        let function = self.kernel(kernel, suffix, shared_bytes)?;
        // SAFETY: the instance `exists`, so the function takes these arguments, at which `pointers` point while there
        // is a `Launch`. `# Safety` covers the memory that the arguments name. The module of the function stays loaded
        // while the GPU's context is used.
        unsafe { function.launch(blocks, threads, shared_bytes, stream, pointers) }.or_failure("cuLaunchKernel")
    }
}

/// Bytes of dynamic shared memory that a block may have without permission.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;
