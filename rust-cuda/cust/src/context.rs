//! Contexts: the state of a program on a GPU.

use crate::device::Device;
use crate::error::CudaResult;
use crate::sys::{self, CUcontext};

/// The primary context of a GPU, which CUDA's runtime and most libraries use. The driver keeps it while values of this
/// type for the GPU exist.
#[derive(Debug)]
pub struct Context {
    handle: ContextHandle,
    device: Device,
}

impl Context {
    /// Retains the primary context of `device`. It does not become current.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(device: Device) -> CudaResult<Self> {
        let mut context = CUcontext::NULL;
        // SAFETY: the driver writes one handle, to `context`.
        unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device.0) }.to_result()?;
        Ok(Self { handle: ContextHandle(context), device })
    }

    /// The handle of the context.
    pub fn handle(&self) -> ContextHandle {
        self.handle
    }

    /// The GPU of the context.
    pub fn device(&self) -> Device {
        self.device
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: `new` has retained the context once, and this is the one release for it.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device.0) }.to_result();
    }
}

/// A context that the driver has named: a [`Context`] of this program, one of another library, or none. The handle does
/// not keep the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextHandle(CUcontext);

impl ContextHandle {
    /// The driver's handle.
    pub fn as_raw(self) -> CUcontext {
        self.0
    }
}

/// The context that is current on the calling thread.
#[derive(Debug)]
pub struct CurrentContext;

impl CurrentContext {
    /// The current context, which may be none.
    ///
    /// # Errors
    /// The driver's.
    pub fn get_current() -> CudaResult<ContextHandle> {
        let mut context = CUcontext::NULL;
        // SAFETY: the driver writes one handle, to `context`.
        unsafe { sys::cuCtxGetCurrent(&mut context) }.to_result()?;
        Ok(ContextHandle(context))
    }

    /// Makes a context current.
    ///
    /// # Errors
    /// The driver's, if the context does not exist any more.
    pub fn set_current(context: ContextHandle) -> CudaResult<()> {
        // SAFETY: the driver has named the handle. It returns an error if the context has been destroyed meanwhile.
        unsafe { sys::cuCtxSetCurrent(context.0) }.to_result()
    }

    /// The GPU of the current context.
    ///
    /// # Errors
    /// The driver's, if no context is current.
    pub fn get_device() -> CudaResult<Device> {
        let mut device = 0;
        // SAFETY: the driver writes one number, to `device`.
        unsafe { sys::cuCtxGetDevice(&mut device) }.to_result()?;
        Ok(Device(device))
    }

    /// Lets the current context access the memory of `peer`, a context of another GPU.
    ///
    /// # Errors
    /// [`CudaError::PEER_ACCESS_ALREADY_ENABLED`](crate::error::CudaError::PEER_ACCESS_ALREADY_ENABLED) if it can
    /// already, [`CudaError::TOO_MANY_PEERS`](crate::error::CudaError::TOO_MANY_PEERS) if the GPU has no room for a
    /// further peer, and other errors of the driver.
    pub fn enable_peer_access(peer: &Context) -> CudaResult<()> {
        // SAFETY: `peer` keeps its context during the call. The function defines no flags.
        unsafe { sys::cuCtxEnablePeerAccess(peer.handle.0, 0) }.to_result()
    }
}
