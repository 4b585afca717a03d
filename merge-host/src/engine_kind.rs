//! The kinds of engines.

use crate::names::names;

/// The kind of processor that does the work of a call of an [`Engine`](crate::Engine).
///
/// ```
/// use merge_host::{Engine, EngineKind};
///
/// assert_eq!(Engine::cpu().sort(&mut [2, 1])?.engine, EngineKind::Cpu);
/// assert_eq!("gpu".parse(), Ok(EngineKind::Gpu));
/// assert_eq!(EngineKind::Gpu.to_string(), "gpu");
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineKind {
    /// The cores of the CPU.
    #[default]
    Cpu,
    /// NVIDIA GPUs: one, or several together.
    Gpu,
}

names! {
    EngineKind, "engine":
    Cpu = "cpu",
    Gpu = "gpu",
}
