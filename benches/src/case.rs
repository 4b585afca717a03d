//! What is measured: the list of cases.

use crate::input::Distribution;
use merge_host::{BatchKernel, MergeKernel};
use std::fmt;

/// A type of keys or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Type {
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl Type {
    /// Its name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Type::U32 => "u32",
            Type::I32 => "i32",
            Type::F32 => "f32",
            Type::U64 => "u64",
            Type::I64 => "i64",
            Type::F64 => "f64",
        }
    }

    /// Its size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Type::U32 | Type::I32 | Type::F32 => 4,
            Type::U64 | Type::I64 | Type::F64 => 8,
        }
    }
}

/// Calls a function that is generic over the types of keys and values with those of a case.
macro_rules! with_types {
    ($case:expr, $function:ident $arguments:tt) => {
        match $case.key {
            $crate::Type::U32 => with_types!(@value $case, u32, $function $arguments),
            $crate::Type::I32 => with_types!(@value $case, i32, $function $arguments),
            $crate::Type::F32 => with_types!(@value $case, f32, $function $arguments),
            $crate::Type::U64 => with_types!(@value $case, u64, $function $arguments),
            $crate::Type::I64 => with_types!(@value $case, i64, $function $arguments),
            $crate::Type::F64 => with_types!(@value $case, f64, $function $arguments),
        }
    };
    (@value $case:expr, $key:ty, $function:ident $arguments:tt) => {
        // What type the values have does not matter where there are none.
        if $case.value.is_some_and(|value| value.bytes() == 8) {
            $function::<$key, u64> $arguments
        } else {
            $function::<$key, u32> $arguments
        }
    };
}
pub(crate) use with_types;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Two arrays into one.
    Merge(MergeKernel),
    /// Many pairs of runs into runs of `d` keys, half of them from each side.
    Batch {
        /// Which kernel.
        kernel: BatchKernel,
        /// Keys of a pair.
        d: usize,
    },
    /// Many pairs of runs of 0 to 100 keys.
    Ragged,
    /// One array.
    Sort,
}

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is done.
    pub op: Op,
    /// With keys of this type.
    pub key: Type,
    /// With a value of this type, `u32` or `u64`, for each key.
    pub value: Option<Type>,
    /// With so many keys in the output.
    pub n: usize,
    /// How the keys lie to each other.
    pub distribution: Distribution,
}

impl Case {
    fn new(op: Op, key: Type, n: usize) -> Self {
        Self { op, key, value: None, n, distribution: Distribution::Uniform }
    }

    fn with_values(self, value: Type) -> Self {
        Self { value: Some(value), ..self }
    }

    fn of(self, distribution: Distribution) -> Self {
        Self { distribution, ..self }
    }

    /// The name of what is done.
    pub fn op_name(&self) -> &'static str {
        match (self.op, self.value.is_some()) {
            (Op::Merge(_), false) => "merge",
            (Op::Merge(_), true) => "merge_pairs",
            (Op::Batch { .. }, false) => "batch",
            (Op::Batch { .. }, true) => "batch_pairs",
            (Op::Ragged, false) => "ragged",
            (Op::Ragged, true) => "ragged_pairs",
            (Op::Sort, _) => "sort",
        }
    }

    /// The name of the kernel.
    pub fn kernel_name(&self) -> &'static str {
        match self.op {
            Op::Merge(kernel) => kernel.name(),
            Op::Batch { kernel: BatchKernel::Small, .. } => "small",
            _ => "auto",
        }
    }

    /// The name of the type: that of the keys, or `keys+values`.
    pub fn type_name(&self) -> String {
        match self.value {
            None => self.key.name().to_owned(),
            Some(value) => format!("{}+{}", self.key.name(), value.name()),
        }
    }

    /// Keys of a pair, for a batch.
    pub fn d(&self) -> Option<usize> {
        match self.op {
            Op::Batch { d, .. } => Some(d),
            _ => None,
        }
    }

    /// The size, as a parameter of the sweep: the number of keys, or the length of a batch's pairs.
    pub fn parameter(&self) -> String {
        match self.d() {
            Some(d) => format!("d{d}"),
            None if self.n.is_power_of_two() => format!("2^{}", self.n.ilog2()),
            None => self.n.to_string(),
        }
    }

    /// Bytes of the input and of the output.
    pub fn bytes(&self) -> usize {
        2 * self.n * (self.key.bytes() + self.value.map_or(0, Type::bytes))
    }
}

/// The case in words, which is also what filters look at: `merge u32 2^20 uniform auto`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, kernel) = (self.op_name(), self.kernel_name());
        write!(f, "{op} {} {} {} {kernel}", self.type_name(), self.parameter(), self.distribution.name())
    }
}

/// Which sizes to sweep, as binary logarithms.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Every size, for what is looked at most.
    all: Vec<u32>,
    /// For the other kernels, 64-bit keys and values.
    wide: Vec<u32>,
    /// For the other types of keys.
    few: Vec<u32>,
    /// For what is measured at one size.
    one: u32,
    /// Whether there is more than one kernel for batches, as on a GPU.
    batch_kernels: bool,
}

impl Scale {
    fn sizes(most: u32) -> Vec<u32> {
        (10..=most.max(10)).step_by(2).collect()
    }

    /// A GPU takes milliseconds for what takes a CPU seconds, so that everything is measured at most sizes.
    pub fn gpu(most: u32) -> Self {
        let all = Self::sizes(most);
        let one = most.clamp(10, 28);
        let few = [20, 24, 28].into_iter().filter(|&lg| lg <= most).collect();
        Self { wide: all.clone(), few, one, all, batch_kernels: true }
    }

    /// As little as shows how a CPU compares.
    pub fn cpu(most: u32) -> Self {
        let one = most.clamp(10, 22);
        Self { all: Self::sizes(most), wide: vec![one], few: vec![one], one, batch_kernels: false }
    }
}

/// The cases of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Two arrays, by size, type, distribution and kernel.
    Merge,
    /// Many pairs, by their length.
    Batch,
    /// Sort, by size and type.
    Sort,
}

/// Types of keys that have a twin of the same size among the ones looked at most.
const OTHERS: [Type; 4] = [Type::I32, Type::F32, Type::I64, Type::F64];

/// Lengths of pairs: powers of two, and some that are none.
const LENGTHS: [usize; 12] = [4, 8, 16, 30, 32, 64, 100, 128, 256, 512, 1000, 1024];

impl Group {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Merge, Self::Batch, Self::Sort];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Merge => "merge",
            Group::Batch => "batch",
            Group::Sort => "sort",
        }
    }

    /// Its cases. Those that have the same input follow one another, so that it is made once.
    pub fn cases(self, scale: &Scale) -> Vec<Case> {
        match self {
            Group::Merge => merge(scale),
            Group::Batch => batch(scale),
            Group::Sort => sort(scale),
        }
    }
}

fn merge(scale: &Scale) -> Vec<Case> {
    let auto = Op::Merge(MergeKernel::Auto);
    let mut cases = Vec::new();
    for &lg in &scale.all {
        let (narrow, wide) = (Case::new(auto, Type::U32, 1 << lg), Case::new(auto, Type::U64, 1 << lg));
        cases.push(narrow);
        if scale.wide.contains(&lg) {
            // The first of them is auto, which is there already.
            cases.extend(MergeKernel::ALL[1..].iter().map(|&kernel| Case { op: Op::Merge(kernel), ..narrow }));
            cases.extend([narrow.with_values(Type::U32), wide]);
            cases.extend([wide.with_values(Type::U32), wide.with_values(Type::U64)]);
        }
        if scale.few.contains(&lg) {
            cases.extend(OTHERS.map(|key| Case::new(auto, key, 1 << lg)));
        }
    }
    let one = Case::new(auto, Type::U32, 1 << scale.one);
    cases.extend(Distribution::OF_MERGES[1..].iter().map(|&distribution| one.of(distribution)));
    cases
}

fn batch(scale: &Scale) -> Vec<Case> {
    let n = 1usize << scale.one;
    let mut cases = Vec::new();
    for d in LENGTHS {
        let case = |kernel, key| Case::new(Op::Batch { kernel, d }, key, n / d * d);
        let auto = case(BatchKernel::Auto, Type::U32);
        cases.push(auto);
        if scale.batch_kernels {
            cases.push(case(BatchKernel::Small, Type::U32));
        }
        cases.extend([auto.with_values(Type::U32), case(BatchKernel::Auto, Type::U64)]);
    }
    for key in [Type::U32, Type::U64] {
        let ragged = Case::new(Op::Ragged, key, n);
        cases.extend([ragged, ragged.with_values(Type::U32)]);
    }
    cases
}

fn sort(scale: &Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    for &lg in &scale.all {
        cases.push(Case::new(Op::Sort, Type::U32, 1 << lg));
        if scale.wide.contains(&lg) {
            cases.push(Case::new(Op::Sort, Type::U64, 1 << lg));
        }
        if scale.few.contains(&lg) {
            cases.extend(OTHERS.map(|key| Case::new(Op::Sort, key, 1 << lg)));
        }
    }
    let one = Case::new(Op::Sort, Type::U32, 1 << scale.one);
    cases.extend([one.of(Distribution::Dups16), one.of(Distribution::Sorted)]);
    cases
}
