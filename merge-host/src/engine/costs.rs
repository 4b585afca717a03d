//! The cost of work on the CPU and on a GPU. `Engine::auto` compares both.
//!
//! ```text
//!   CPU   bytes × (thread / threads + shared + file)
//!   GPU   start + call + bytes / GPUs × (up + compute + exchange × (1 - 1 / GPUs) + down + file)
//! ```
//!
//! Once a GPU is running, the start is left out. Bytes count keys and values. What a thread computes is divided by the
//! number of threads; the memory's speed is shared by them.

use crate::Error;
use std::env;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

macro_rules! cost_model {
    ($($(#[$doc:meta])* $field:ident = $value:literal,)*) => {
        /// The constants of the cost model of [`Engine::auto`](crate::Engine::auto), which chooses between the CPU and
        /// a GPU.
        ///
        /// The default is measured on two machines of 16 cores of an Intel Xeon, with an H200, and for segments, set
        /// operations and selections with an H100. The script `scripts/measure-costs` measures it on another one and
        /// prints it in the form that [`FromStr`] reads, for the environment variable [`COSTS`]: `name=value`,
        /// separated by commas, where a name that is left out keeps its default.
        ///
        /// ```
        /// use merge_host::CostModel;
        ///
        /// let costs: CostModel = "gpu_start_ms=900,gpu_up=0.2".parse()?;
        /// assert_eq!((costs.gpu_start_ms, costs.gpu_down), (900.0, CostModel::default().gpu_down));
        /// # Ok::<(), merge_host::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct CostModel {
            $($(#[$doc])* pub $field: f64,)*
        }

        impl Default for CostModel {
            fn default() -> Self {
                Self { $($field: $value,)* }
            }
        }

        impl CostModel {
            /// The constant of that name.
            fn named(&mut self, name: &str) -> Option<&mut f64> {
                match name {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for CostModel {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let all = [$((stringify!($field), self.$field)),*];
                all.iter().enumerate().try_for_each(|(i, (name, value))| {
                    write!(f, "{}{name}={value}", if i == 0 { "" } else { "," })
                })
            }
        }
    };
}

cost_model! {
    /// Sorts of keys of 4 bytes, without values: one thread's work, in ns a byte.
    sort4_thread = 1.4,
    /// The same, of what threads share.
    sort4_shared = 0.1,
    /// Sorts of keys of 8 bytes, without values: as for `sort4_thread`.
    sort8_thread = 0.8,
    /// As for `sort4_shared`.
    sort8_shared = 0.115,
    /// Sorts of keys with values, and of indices: as for `sort4_thread`.
    sort_pairs_thread = 1.6,
    /// As for `sort4_shared`.
    sort_pairs_shared = 0.1,
    /// Merges: as for `sort4_thread`.
    merge_thread = 0.16,
    /// As for `sort4_shared`.
    merge_shared = 0.015,
    /// Sorts of short segments, without values: as for `sort4_thread`. Long segments are sorted as whole arrays are.
    segments_thread = 0.46,
    /// As for `sort4_shared`.
    segments_shared = 0.044,
    /// Set operations on sorted keys, and groups of equal keys: as for `sort4_thread`.
    set_thread = 1.3,
    /// As for `sort4_shared`.
    set_shared = 0.019,
    /// Selections of the first keys of the order: as for `sort4_thread`.
    top_k_thread = 0.6,
    /// As for `sort4_shared`.
    top_k_shared = 0.082,
    /// What reading the keys of a file and writing them to another one adds to a sort on the CPU, in ns a byte.
    cpu_file = 0.12,
    /// What it adds to a sort on the GPU, where it goes on beside the copies, in ns a byte.
    gpu_file = 0.035,
    /// Starting the GPU and loading kernels, in ms.
    gpu_start_ms = 340.0,
    /// A call with few keys, in ms.
    gpu_call_ms = 0.2,
    /// Bytes to the GPU's memory, from memory or a file, in ns a byte.
    gpu_up = 0.022,
    /// Bytes from the GPU's memory, in ns a byte.
    gpu_down = 0.022,
    /// Sorting on the GPU, in ns a byte.
    gpu_sort = 0.003,
    /// Merging on the GPU, in ns a byte.
    gpu_merge = 0.001,
    /// Exchanging between GPUs and merging there, in ns a byte that goes to another GPU.
    gpu_exchange = 0.003,
}

/// The environment variable with the constants of [`CostModel`] that [`Engine::auto`](crate::Engine::auto) uses in
/// place of the defaults.
pub const COSTS: &str = "MERGE_HOST_COSTS";

impl FromStr for CostModel {
    type Err = Error;

    /// # Errors
    /// [`Error::Costs`] for a name that no constant has, and for a value that is no number of at least 0.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut costs = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let error = |expected: &'static str| Error::Costs { part: part.to_owned(), expected };
            let (name, value) = part.split_once('=').ok_or_else(|| error("name=value"))?;
            let constant = costs.named(name.trim()).ok_or_else(|| error("the name of a constant"))?;
            let value: f64 = value.trim().parse().map_err(|_| error("a number"))?;
            if !(value >= 0.0 && value.is_finite()) {
                return Err(error("a number of at least 0"));
            }
            *constant = value;
        }
        Ok(costs)
    }
}

/// Work that an engine may do: the operation, and the number and the sizes of keys and values.
///
/// ```
/// use merge_host::Work;
///
/// let sort = Work::sort::<u32>(1_000_000).with_values(8).from_files();
/// assert_eq!(sort.bytes(), 12_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    task: Task,
    keys: usize,
    key_bytes: usize,
    value_bytes: usize,
    from_files: bool,
    /// Whether one GPU does it, however many there are.
    on_one_gpu: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Sort,
    /// A number of segments, each on its own.
    SortSegments(usize),
    Merge,
    Set,
    TopK,
}

/// The least number of keys of a segment that costs as much as a separate array.
const LONG_SEGMENT: usize = 1 << 14;

impl Work {
    /// A sort of this number of keys.
    pub fn sort<K>(keys: usize) -> Self {
        Self { task: Task::Sort, keys, key_bytes: size_of::<K>(), value_bytes: 0, from_files: false, on_one_gpu: false }
    }

    /// A sort of `segments` segments, which have `keys` keys together.
    pub fn sort_segments<K>(keys: usize, segments: usize) -> Self {
        let is_long = keys / segments.max(1) >= LONG_SEGMENT;
        Self { task: if is_long { Task::Sort } else { Task::SortSegments(segments) }, ..Self::sort::<K>(keys) }
    }

    /// A set operation on sorted arrays that have `keys` keys together, or an operation on groups of equal keys among
    /// `keys` sorted ones.
    pub fn set_operation<K>(keys: usize) -> Self {
        Self { task: Task::Set, ..Self::sort::<K>(keys) }
    }

    /// A selection of a few of `keys` keys, the first ones.
    pub fn top_k<K>(keys: usize) -> Self {
        Self { task: Task::TopK, ..Self::sort::<K>(keys) }
    }

    /// A merge of runs with this total number of keys.
    pub fn merge<K>(keys: usize) -> Self {
        Self { task: Task::Merge, ..Self::sort::<K>(keys) }
    }

    /// The same with values of this number of bytes each, or with indices.
    #[must_use]
    pub fn with_values(self, bytes: usize) -> Self {
        Self { value_bytes: bytes, ..self }
    }

    /// The same with callbacks that read the keys of a file and write them to another one.
    #[must_use]
    pub fn from_files(self) -> Self {
        Self { from_files: true, ..self }
    }

    /// The same where one GPU does all of it.
    pub(super) fn on_one_gpu(self) -> Self {
        Self { on_one_gpu: true, ..self }
    }

    /// Whether it is a sort of an array, or of segments that cost as much.
    pub(super) fn is_sort(&self) -> bool {
        self.task == Task::Sort
    }

    /// Whether one GPU does all of it.
    pub(super) fn is_of_one_gpu(&self) -> bool {
        // The GPUs of a group exchange keys of 4 and 8 bytes.
        self.on_one_gpu || self.task == Task::Sort && !matches!(self.key_bytes, 4 | 8)
    }

    /// The bytes of a GPU's memory that the work needs.
    #[cfg(feature = "gpu")]
    pub(super) fn device_bytes(&self) -> f64 {
        let each = match self.task {
            Task::Sort => sort_bytes_on_gpu(self.key_bytes, self.value_bytes),
            // Keys and values, and as much again. Keys of 1 and 2 bytes are widened to 4 bytes.
            _ if self.key_bytes < 4 => self.value_bytes.saturating_add(self.key_bytes + 4).saturating_mul(2),
            _ => self.key_bytes.saturating_add(self.value_bytes).saturating_mul(2),
        };
        self.keys as f64 * each as f64 * (1.0 + MORE_ON_GPU)
    }

    /// The bytes of keys and values; `usize::MAX` if the number is greater.
    pub fn bytes(&self) -> usize {
        self.keys.saturating_mul(self.key_bytes.saturating_add(self.value_bytes))
    }

    /// The number of keys.
    pub fn keys(&self) -> usize {
        self.keys
    }
}

/// Part of the memory of a GPU's sort that splits and counters take, at most.
#[cfg(feature = "gpu")]
const MORE_ON_GPU: f64 = 0.025;

/// The bytes of a GPU's memory that a sort needs for each key with a value of `value_bytes` bytes: the elements, and
/// its workspace without splits and counters.
#[cfg(any(feature = "gpu", feature = "external"))]
pub(crate) const fn sort_bytes_on_gpu(key_bytes: usize, value_bytes: usize) -> usize {
    match (key_bytes, value_bytes) {
        // Sorted by counting, in place.
        (1 | 2, 0) => key_bytes,
        // Widened to 4 bytes.
        (1 | 2, _) => key_bytes.saturating_add(8).saturating_add(value_bytes.saturating_mul(2)),
        // Words of 8 bytes, twice, and indices, if there are values.
        (16, 0) => 48,
        (16, _) => value_bytes.saturating_add(48),
        _ => key_bytes.saturating_add(value_bytes).saturating_mul(2),
    }
}

impl CostModel {
    /// The constants that the environment variable [`COSTS`] gives, or the default ones if it is not set.
    ///
    /// # Errors
    /// [`Error::Costs`] if they cannot be read.
    pub fn of_environment() -> Result<Self, Error> {
        env::var_os(COSTS).map_or_else(|| Ok(Self::default()), |text| text.to_string_lossy().parse())
    }

    /// How long `work` takes on `threads` threads of the CPU.
    pub fn on_cpu(&self, work: &Work, threads: usize) -> Duration {
        let (thread, mut shared) = match (work.task, work.value_bytes) {
            (Task::Sort, 0) if work.key_bytes == 8 => (self.sort8_thread, self.sort8_shared),
            // The counting sort of keys of 1 and 2 bytes reads and writes as a merge does.
            (Task::Sort, 0) if work.key_bytes < 4 => (self.merge_thread, self.merge_shared),
            (Task::Sort, 0) => (self.sort4_thread, self.sort4_shared),
            (Task::SortSegments(_), 0) => (self.segments_thread, self.segments_shared),
            (Task::Sort | Task::SortSegments(_), _) => (self.sort_pairs_thread, self.sort_pairs_shared),
            (Task::Merge, _) => (self.merge_thread, self.merge_shared),
            (Task::Set, _) => (self.set_thread, self.set_shared),
            (Task::TopK, _) => (self.top_k_thread, self.top_k_shared),
        };
        if work.from_files {
            shared += self.cpu_file;
        }
        nanoseconds(work.bytes() as f64 * (thread / threads.max(1) as f64 + shared))
    }

    /// A number of bytes that any work on one thread of the CPU takes less time for than a call of a GPU.
    #[cfg(feature = "gpu")]
    pub(super) fn few_bytes(&self) -> usize {
        let each = [
            self.sort4_thread + self.sort4_shared,
            self.sort8_thread + self.sort8_shared,
            self.sort_pairs_thread + self.sort_pairs_shared,
            self.merge_thread + self.merge_shared,
            self.segments_thread + self.segments_shared,
            self.set_thread + self.set_shared,
            self.top_k_thread + self.top_k_shared,
        ];
        // A conversion to an integer rounds down, and has bounds.
        (self.gpu_call_ms * 1e6 / (each.into_iter().fold(0.0, f64::max) + self.cpu_file)) as usize
    }

    /// How long `work` takes on a GPU that is running, or has yet to be started.
    pub fn on_gpu(&self, work: &Work, is_running: bool) -> Duration {
        self.on_gpus(work, 1, is_running)
    }

    /// The same on several GPUs. Each GPU does its part over its own bus. In a sort, the GPUs also exchange keys.
    pub fn on_gpus(&self, work: &Work, gpus: usize, is_running: bool) -> Duration {
        let gpus = if work.is_of_one_gpu() { 1.0 } else { gpus.max(1) as f64 };
        // The results of a selection are few.
        let (compute, down) = match work.task {
            Task::Sort | Task::SortSegments(_) => (self.gpu_sort, self.gpu_down),
            Task::Merge | Task::Set => (self.gpu_merge, self.gpu_down),
            Task::TopK => (self.gpu_merge, 0.0),
        };
        let offsets = if let Task::SortSegments(segments) = work.task { segments.saturating_mul(8) } else { 0 };
        let file = if work.from_files { self.gpu_file } else { 0.0 };
        let once = self.gpu_call_ms + if is_running { 0.0 } else { self.gpu_start_ms };
        let exchange = if work.task == Task::Sort { self.gpu_exchange * (1.0 - 1.0 / gpus) } else { 0.0 };
        let each = self.gpu_up + compute + exchange + down + file;
        nanoseconds(once * 1e6 + (work.bytes() as f64 * each + offsets as f64 * self.gpu_up) / gpus)
    }
}

fn nanoseconds(ns: f64) -> Duration {
    Duration::try_from_secs_f64(ns * 1e-9).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_as_they_are_printed() {
        let costs = CostModel { gpu_start_ms: 12.5, merge_shared: 0.0, ..CostModel::default() };
        assert_eq!(costs.to_string().parse(), Ok(costs));
        assert_eq!("".parse(), Ok(CostModel::default()));
        assert_eq!(" gpu_up = 2 , ".parse(), Ok(CostModel { gpu_up: 2.0, ..CostModel::default() }));
    }

    #[test]
    fn what_is_no_constant_is_refused() {
        for (text, expected) in [
            ("gpu_up", "name=value"),
            ("gpu=1", "the name of a constant"),
            ("gpu_up=fast", "a number"),
            ("gpu_up=-1", "a number of at least 0"),
            ("gpu_up=inf", "a number of at least 0"),
            ("gpu_up=NaN", "a number of at least 0"),
        ] {
            let found = format!("gpu_down=1,{text}").parse::<CostModel>();
            assert_eq!(found, Err(Error::Costs { part: text.to_owned(), expected }));
        }
    }

    #[test]
    fn times_are_those_of_the_model() {
        let costs: CostModel =
            "sort4_thread=2,sort4_shared=1,cpu_file=3,gpu_file=2,gpu_start_ms=5,gpu_call_ms=1,gpu_up=3,\
                                gpu_down=4,gpu_sort=1,gpu_merge=0,merge_thread=1,merge_shared=0"
                .parse()
                .unwrap();
        let sort = Work::sort::<u32>(250_000);
        let ms = Duration::from_millis;
        assert_eq!((costs.on_cpu(&sort, 1), costs.on_cpu(&sort, 2)), (ms(3), ms(2)));
        assert_eq!(costs.on_cpu(&sort.from_files(), 2), ms(5));
        assert_eq!((costs.on_gpu(&sort, true), costs.on_gpu(&sort, false)), (ms(9), ms(14)));
        assert_eq!(costs.on_gpu(&sort.from_files(), true), ms(11));
        let merge = Work::merge::<u32>(250_000).with_values(4);
        assert_eq!((costs.on_cpu(&merge, 1), costs.on_gpu(&merge, true)), (ms(2), ms(15)));
        let costs: CostModel = format!(
            "{costs},segments_thread=4,segments_shared=0,set_thread=2,set_shared=0,top_k_thread=1,top_k_shared=0"
        )
        .parse()
        .unwrap();
        let segments = Work::sort_segments::<u32>(250_000, 125_000);
        // With a million bytes of offsets. Longer segments cost what a sort does.
        assert_eq!((costs.on_cpu(&segments, 2), costs.on_gpu(&segments, true)), (ms(2), ms(12)));
        assert_eq!(Work::sort_segments::<u32>(250_000, 2), sort);
        assert_eq!(Work::sort_segments::<u32>(0, 0).bytes(), 0);
        let set = Work::set_operation::<u32>(250_000);
        assert_eq!((costs.on_cpu(&set, 2), costs.on_gpu(&set, true)), (ms(1), ms(8)));
        let top_k = Work::top_k::<u32>(250_000);
        assert_eq!((costs.on_cpu(&top_k, 2), costs.on_gpu(&top_k, true)), (Duration::from_micros(500), ms(4)));
        let costs = CostModel { gpu_exchange: 2.0, ..costs };
        assert_eq!(
            (costs.on_gpus(&sort, 2, true), costs.on_gpus(&merge, 2, true)),
            (Duration::from_micros(5500), ms(8))
        );
        // Numbers that no machine has do not panic.
        let most = Work::sort::<u64>(usize::MAX);
        assert!(costs.on_cpu(&most, 0) > ms(1) && costs.on_gpu(&most, true) > ms(1));
    }
}
