//! The kinds of engines.

use crate::names::names;

/// The kind of processor that an [`Engine`](crate::Engine) uses.
///
/// ```
/// use merge_host::{Engine, EngineKind};
///
/// assert_eq!(Engine::cpu().kind(), EngineKind::Cpu);
/// assert_eq!("gpu".parse(), Ok(EngineKind::Gpu));
/// assert_eq!(EngineKind::Gpu.to_string(), "gpu");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineKind {
    /// The cores of the CPU.
    Cpu,
    /// One NVIDIA GPU.
    Gpu,
}

names! {
    EngineKind, "engine":
    Cpu = "cpu",
    Gpu = "gpu",
}
