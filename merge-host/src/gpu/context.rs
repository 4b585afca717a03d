//! The context that is current on a thread while it works on a GPU.

use super::Gpu;
use super::failure::OrFailure;
use crate::Error;
use cust::context::{Context, ContextHandle, CurrentContext};
use std::marker::PhantomData;

/// A context that is current on the calling thread until this value is dropped. The drop restores the previous context:
/// a program that uses another GPU through another library finds its own context current.
pub(super) struct Entered {
    /// The context to restore, if it differs from the entered one.
    before: Option<ContextHandle>,
    /// The current context belongs to a thread, so this value stays on that thread.
    _of_this_thread: PhantomData<*const ()>,
}

impl Entered {
    /// Makes `context` current.
    pub(super) fn new(context: &Context) -> Result<Self, Error> {
        let before = CurrentContext::get_current().or_failure("cuCtxGetCurrent")?;
        // Set even if it is current already: another context with the same handle may have been released and retained
        // meanwhile.
        CurrentContext::set_current(context.handle()).or_failure("cuCtxSetCurrent")?;
        let is_other = before != context.handle();
        Ok(Self { before: is_other.then_some(before), _of_this_thread: PhantomData })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Fails only if that context has been destroyed meanwhile.
            let _ = CurrentContext::set_current(before);
        }
    }
}

impl Gpu {
    /// Makes the GPU's context current for as long as the result lives.
    pub(super) fn enter(&self) -> Result<Entered, Error> {
        Entered::new(&self.shared.context)
    }
}
