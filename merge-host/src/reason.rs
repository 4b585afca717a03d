//! Why a processor did the work of a call.

use crate::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Why the CPU or GPUs did the work of a call: a part of [`Timing`](crate::Timing). `Display` writes a clause such as
/// "12.1 ms on the CPU and 331.2 ms on the GPU are estimated".
///
/// ```
/// use merge_host::{Engine, Reason};
///
/// let timing = Engine::cpu_with_threads(2)?.sort(&mut [3, 1, 2])?;
/// assert_eq!(timing.reason, Reason::Threads(2));
/// assert_eq!(timing.reason.to_string(), "2 threads of the CPU were asked for");
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing was left to do for an engine.
    #[default]
    Nothing,
    /// [`Engine::cpu`](crate::Engine::cpu) made the engine.
    Cpu,
    /// [`Engine::cpu_with_threads`](crate::Engine::cpu_with_threads) made the engine, for this number of threads.
    Threads(usize),
    /// The engine was made for the GPUs with these ordinals.
    Gpus(&'static [usize]),
    /// Every engine leaves this operation to the CPU.
    CpuOnly,
    /// The engine may choose, and there are no kernels for keys of this type.
    NoKernels {
        /// The name of the type.
        key: &'static str,
    },
    /// The engine may choose, and the CPU does any work with so few bytes in less time than a call of a GPU takes.
    FewBytes,
    /// The engine may choose, and this is how long the work is estimated to take.
    Estimate {
        /// The time on the CPU.
        cpu: Duration,
        /// The time on the GPUs.
        gpu: Duration,
        /// The number of GPUs.
        gpus: usize,
    },
    /// The engine may choose, and the work does not fit the GPUs' memory.
    DeviceMemory {
        /// Bytes of keys and values.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The engine may choose, and its GPUs cannot be used because of this error.
    NoGpu(&'static Error),
}

impl Reason {
    /// [`Gpus`](Self::Gpus) with these ordinals.
    #[cfg(feature = "gpu")]
    pub(crate) fn gpus(ordinals: Vec<usize>) -> Self {
        static ALL: Mutex<Vec<&[usize]>> = Mutex::new(vec![]);
        Self::Gpus(kept(&ALL, ordinals))
    }

    /// [`NoGpu`](Self::NoGpu) with this error.
    pub(crate) fn no_gpu(error: Error) -> Self {
        static ALL: Mutex<Vec<&Error>> = Mutex::new(vec![]);
        Self::NoGpu(kept(&ALL, error))
    }
}

/// A value that lives as long as the process: the same one for equal values, of which there are few.
///
/// References to such values need no destructor. A destructor of [`Timing`](crate::Timing) would take longer than the
/// sort of ten keys, even in a program that ignores the result.
fn kept<T: PartialEq + ?Sized>(all: &Mutex<Vec<&'static T>>, value: impl Into<Box<T>>) -> &'static T {
    let value = value.into();
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = all.iter().find(|kept| ***kept == *value) {
        return same;
    }
    let kept = Box::leak(value);
    all.push(kept);
    kept
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there was nothing to do"),
            Self::Cpu => f.write_str("the CPU was asked for"),
            Self::Threads(1) => f.write_str("1 thread of the CPU was asked for"),
            Self::Threads(threads) => write!(f, "{threads} threads of the CPU were asked for"),
            Self::Gpus(ordinals) => match **ordinals {
                [ordinal] => write!(f, "GPU {ordinal} was asked for"),
                _ => {
                    f.write_str("GPUs ")?;
                    for (i, ordinal) in ordinals.iter().enumerate() {
                        write!(f, "{}{ordinal}", if i == 0 { "" } else { ", " })?;
                    }
                    f.write_str(" were asked for")
                }
            },
            Self::CpuOnly => f.write_str("only the CPU does this"),
            Self::NoKernels { key } => write!(f, "GPUs have no kernels for {key} keys"),
            Self::FewBytes => f.write_str("a call of a GPU takes longer than any work with so few bytes"),
            Self::Estimate { cpu, gpu, gpus } => {
                write!(f, "{} on the CPU and {} on ", shown(*cpu), shown(*gpu))?;
                if *gpus > 1 {
                    write!(f, "{gpus} GPUs")?
                } else {
                    f.write_str("the GPU")?
                }
                f.write_str(" are estimated")
            }
            Self::DeviceMemory { needed, free } => {
                write!(f, "{needed} bytes do not fit the GPU's memory, of which {free} are free")
            }
            Self::NoGpu(error) => write!(f, "the GPU cannot be used: {error}"),
        }
    }
}

/// A time with two or three digits.
fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_written_as_sentences() {
        let ms = Duration::from_millis;
        for (reason, text) in [
            (Reason::Threads(1), "1 thread of the CPU was asked for"),
            (Reason::Gpus(&[1]), "GPU 1 was asked for"),
            (Reason::Gpus(&[0, 2]), "GPUs 0, 2 were asked for"),
            (Reason::NoKernels { key: "u8" }, "GPUs have no kernels for u8 keys"),
            (
                Reason::Estimate { cpu: ms(12), gpu: ms(1331), gpus: 1 },
                "12.0 ms on the CPU and 1.33 s on the GPU are estimated",
            ),
            (
                Reason::Estimate { cpu: Duration::from_micros(7), gpu: ms(1), gpus: 2 },
                "7 µs on the CPU and 1.0 ms on 2 GPUs are estimated",
            ),
            (Reason::DeviceMemory { needed: 9, free: 8 }, "9 bytes do not fit the GPU's memory, of which 8 are free"),
            (Reason::no_gpu(Error::NoGpuSupport), &*format!("the GPU cannot be used: {}", Error::NoGpuSupport)),
        ] {
            assert_eq!(reason.to_string(), text);
        }
    }
}
