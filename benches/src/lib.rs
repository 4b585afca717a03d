//! How fast it is: one list of cases, two ways to run them.
//!
//! A [`Case`] is a piece of work: merge, batch merge or sort of so many keys of some type. `cargo bench` takes the cases
//! through Criterion, on the CPU engine and, where there is one, on a GPU. The example `sweep` takes them by itself,
//! compares each result with the CPU engine's first, and needs no cargo, so that it can be carried to another machine.
//!
//! ```text
//! cargo bench                                    all of it, on both engines
//! cargo bench --bench merge -- gpu               those with "gpu" in their name
//! cargo run --release -p benches --example sweep -- --help
//! ```
//!
//! Both add their results to `target/bench-rows.jsonl`, one JSON object a line (see [`Row`]), and so does
//! `benches/peers/run`, which does the same work on the same inputs with the libraries of others. `scripts/plot` draws from
//! that file. Where a row is there several times, the last one counts.
//!
//! On a GPU, data is in its memory before and after, and time is that between two events on the stream around the call: it
//! has the launches in it and no transfer. GB/s counts each byte of input and each byte of output once, whatever a kernel
//! really moves, and is compared with a copy of the same bytes within GPU memory, measured in the same run.
//!
//! | variable | |
//! | --- | --- |
//! | `GMERGE_BENCH_MAX_LG` | the binary logarithm of the most keys; 24 on a CPU and 28 on a GPU where it is not set |
//! | `GMERGE_BENCH_ROWS` | where rows go |

mod case;
mod cpu;
mod gpu;
pub mod input;
mod row;
mod through_criterion;
mod verify;

pub use case::{Case, Group, Op, Scale, Type};
pub use gpu::Device;
pub use row::{Row, Rows, Times};
pub use through_criterion::bench;

use merge_host::Engine;
use std::time::Duration;

/// How many keys a result may have to be compared with the CPU engine's: with more, that takes too long.
const MOST_COMPARED: usize = 1 << 24;

/// Why a case could not be run, or that its result is wrong.
pub type Failure = Box<dyn std::error::Error>;

/// A case with its inputs in place, ready to be timed.
pub trait Work {
    /// Does the work once and says how long it took. What the work changes is restored before, outside the time.
    ///
    /// # Errors
    /// Those of the engine.
    fn time(&mut self) -> Result<Duration, Failure>;

    /// Checks what the last call of [`time`](Self::time) made, and returns a checksum of its keys in any order.
    ///
    /// # Errors
    /// Says what is wrong with the result.
    fn verify(&self) -> Result<u64, Failure>;
}

/// Where cases are run.
pub enum Place {
    /// On the CPU engine.
    Cpu(Engine),
    /// On a GPU.
    Gpu(Box<Device>),
}

impl Place {
    /// All cores of the CPU.
    pub fn cpu() -> Self {
        Place::Cpu(Engine::cpu())
    }

    /// The first GPU.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn gpu() -> Result<Self, Failure> {
        Device::first().map(|device| Place::Gpu(Box::new(device)))
    }

    /// "cpu" or "gpu".
    pub fn name(&self) -> &'static str {
        match self {
            Place::Cpu(_) => "cpu",
            Place::Gpu(_) => "gpu",
        }
    }

    /// What it is: a GPU's name, or a number of cores.
    pub fn device(&self) -> String {
        match self {
            Place::Cpu(_) => format!("{} CPU cores", input::cores()),
            Place::Gpu(device) => device.name().to_owned(),
        }
    }

    /// The sizes to sweep here.
    pub fn scale(&self) -> Scale {
        let most = std::env::var("GMERGE_BENCH_MAX_LG").ok().and_then(|lg| lg.parse().ok());
        self.scale_up_to(most)
    }

    /// The sizes to sweep here, up to the one whose binary logarithm is given.
    pub fn scale_up_to(&self, most: Option<u32>) -> Scale {
        match self {
            Place::Cpu(_) => Scale::cpu(most.unwrap_or(24)),
            Place::Gpu(_) => Scale::gpu(most.unwrap_or(28)),
        }
    }

    /// Makes the inputs of a case and puts them where the work is.
    ///
    /// # Errors
    /// Not enough memory, or the device fails.
    pub fn set_up(&self, case: Case) -> Result<Box<dyn Work + '_>, Failure> {
        match self {
            Place::Cpu(engine) => cpu::set_up(engine, case),
            Place::Gpu(device) => gpu::set_up(device, case),
        }
    }

    /// The row of a case that took so long. On a GPU, a copy that reads and writes as many bytes is measured to compare
    /// with, if none was yet, which is a row of its own before that of the case.
    ///
    /// # Errors
    /// Not enough memory, or the device fails.
    pub fn rows(&self, case: Case, times: Times, sum: Option<u64>) -> Result<Vec<Row>, Failure> {
        let mut row =
            Row { time: Some(times), sum: sum.map(|sum| format!("{sum:016x}")), ..self.row_without_time(case) };
        let Place::Gpu(device) = self else { return Ok(vec![row]) };
        let (copy, is_new) = device.copy(case.bytes())?;
        row.time = Some(Times { of_copy: Some(copy.ms / times.ms), ..times });
        let copy_row = Row::of_copy(case.bytes(), copy, self.device());
        Ok(if is_new { vec![copy_row, row] } else { vec![row] })
    }

    /// The row of a case that could not be measured.
    pub fn failed(&self, case: Case, failure: &str) -> Row {
        Row { error: Some(failure.to_owned()), ..self.row_without_time(case) }
    }

    fn row_without_time(&self, case: Case) -> Row {
        Row {
            op: case.op_name().to_owned(),
            kernel: case.kernel_name().to_owned(),
            engine: self.name().to_owned(),
            key_type: case.type_name(),
            n: case.n,
            dist: case.distribution.name().to_owned(),
            d: case.d(),
            time: None,
            sum: None,
            device: self.device(),
            error: None,
        }
    }
}
