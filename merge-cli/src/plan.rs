//! How a job fits the machine: in memory, in chunks that are spilled as sorted runs, or merged while inputs are read.
//!
//! | plan | when | memory |
//! | --- | --- | --- |
//! | in memory | keys, payload and scratch fit the budget, and a GPU's memory if it sorts | [`Shape::in_memory`] |
//! | in chunks | a sort that does not fit | the budget, and a temporary file |
//! | streamed | sorted files that do not fit, large ones, and pipes | some blocks of each file |
//!
//! Outputs and temporary files in memory (on a tmpfs such as /dev/shm) use the same memory as keys.

use crate::file::Output;
use crate::job::Resources;
use crate::os::disk::{self, TemporaryFolder, free_in, is_in_memory};
use crate::os::memory;
use crate::records::Records;
use crate::say::error::{Failure, Result, name};
use crate::say::report;
use crate::spec::EngineChoice;
use merge_host::external::{self, Options, Shape, Ties};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes that are free on every GPU that the kernels support. Smaller jobs are sorted without a query of the free
/// memory.
const EVERY_GPU: u128 = 4 << 30;
/// From this many bytes of keys on, a streamed merge is faster. It uses memory again for the next block, and reading,
/// merging and writing overlap.
const STREAMED_IS_FASTER: u128 = 64 << 20;
/// Bytes of memory that suffice for a streamed merge, in all and for each of many files.
const STREAMED_MEMORY: u64 = 512 << 20;
const STREAMED_MEMORY_PER_FILE: u64 = 2 << 20;
/// Files in memory may take too much of the memory. Then 1 / `SORTED_PARTS` of it is left for keys of a sort, and 1 /
/// `STREAMED_PARTS` for keys of a streamed merge.
const SORTED_PARTS: u64 = 2;
const STREAMED_PARTS: u64 = 8;

/// The files that a job writes, and their sizes.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The folders of new files.
    folders: [Option<&'a Path>; 2],
    /// The least bytes of each file.
    least: [u128; 2],
    /// The most bytes of each file, if known.
    most: Option<[u128; 2]>,
}

impl<'a> Destination<'a> {
    /// The outputs of keys and of values, with the bytes of each.
    pub fn new(keys: &'a Output, values: Option<&'a Output>, bytes: [u128; 2]) -> Self {
        Self::of_keys(keys.folder(), bytes[0]).with_values(values.and_then(Output::folder), bytes[1])
    }

    /// A file of `bytes` bytes in `folder`. `None` as the folder means an output that is written to directly.
    pub fn of_keys(folder: Option<&'a Path>, bytes: u128) -> Self {
        Self { folders: [folder, None], least: [bytes, 0], most: Some([bytes, 0]) }
    }

    fn with_values(self, folder: Option<&'a Path>, bytes: u128) -> Self {
        let bytes = [self.least[0], bytes];
        Self { folders: [self.folders[0], folder], least: bytes, most: Some(bytes) }
    }

    /// This destination with an upper bound of bytes: `most`, if known. The present bytes are the least bytes.
    pub fn or_up_to(self, most: Option<[u128; 2]>) -> Self {
        Self { most, ..self }
    }

    /// The sum of `bytes` over the files that have a folder for which `is_counted` is true.
    fn bytes_where(&self, bytes: [u128; 2], is_counted: impl Fn(&Path) -> bool) -> u128 {
        let counted = self.folders.iter().zip(bytes);
        counted.filter(|(folder, _)| folder.is_some_and(&is_counted)).map(|(_, bytes)| bytes).sum()
    }

    /// Bytes that a sort leaves for files in memory.
    pub fn in_memory(&self) -> u64 {
        self.in_memory_beside(SORTED_PARTS)
    }

    /// Bytes to leave for files in memory. If they may take too much, 1 / `parts` of the available memory is left for
    /// keys.
    fn in_memory_beside(&self, parts: u64) -> u64 {
        // The sum of both files stays below 2^64 bytes.
        let most = self.most.unwrap_or([u128::from(u64::MAX / 2); 2]);
        let [least, most] = [self.least, most].map(|bytes| self.bytes_where(bytes, is_in_memory));
        let [least, most] = [least, most].map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
        memory::for_files(least, most, parts)
    }
}

/// The plan of a sort.
#[derive(Clone, Debug)]
pub struct SortPlan {
    /// Whether all keys are sorted at once. `None` if only reading shows how many keys there are.
    pub in_memory: Option<bool>,
    /// Bytes that keys, payloads and scratch memory may take.
    pub memory: u64,
    /// The folders for spilled runs.
    pub folders: Vec<PathBuf>,
}

impl SortPlan {
    /// The plan for `count` keys, if known. `device` returns the free bytes of the GPU, if a GPU sorts, and is called
    /// only if keys may not fit. `path` is the path of the input.
    pub fn new(
        shape: Shape,
        count: Option<u64>,
        destination: Destination,
        resources: &Resources,
        device: &mut dyn FnMut() -> Result<Option<u64>>,
        path: &Path,
    ) -> Result<Self> {
        let Some(count) = count else {
            let memory = memory::budget(resources.memory, destination.in_memory())?;
            report::verbose(format_args!(
                "plan: up to {} keys in memory, more in chunks",
                shape.most_in_memory(memory)
            ));
            return Ok(Self { in_memory: None, memory, folders: folders_if_any(resources)? });
        };
        let budget = memory::budget(resources.memory, 0)?;
        let (needed, files) = (shape.in_memory(count), destination.in_memory());
        if needed + u128::from(files) <= budget.into() && Self::fits_device(shape, count, device)? {
            report::verbose(format_args!("plan: in memory, of which {budget} bytes may be used"));
            if !resources.folders.is_empty() {
                // The run does not need the folders, but an unusable folder is a mistake that the user should know now.
                disk::temporary_folders(&resources.folders)?;
            }
            return Ok(Self { in_memory: Some(true), memory: budget, folders: Vec::new() });
        }
        Self::in_chunks(shape, count, destination, resources, path)
    }

    /// Whether `count` keys fit the memory of the GPU, if a GPU sorts them.
    pub fn fits_device(shape: Shape, count: u64, device: &mut dyn FnMut() -> Result<Option<u64>>) -> Result<bool> {
        Ok(count <= most_on_device(shape, count, device)?)
    }

    /// The plan for keys that exceed the memory of the machine or of the GPU.
    pub fn in_chunks(
        shape: Shape,
        count: u64,
        destination: Destination,
        resources: &Resources,
        path: &Path,
    ) -> Result<Self> {
        let files = destination.in_memory();
        let folders = paths(disk::temporary_folders(&resources.folders)?);
        let spilled = shape.spilled(count);
        check_spill_space(&folders, spilled, destination, path)?;
        let held = folders.iter().filter(|folder| is_in_memory(folder)).count();
        // Each folder gets about the same number of runs.
        let in_memory = u64::try_from(spilled * held as u128 / folders.len() as u128).unwrap_or(u64::MAX);
        let memory = memory::budget(resources.memory, files.saturating_add(in_memory))?;
        report::verbose(format_args!("plan: in chunks, with {memory} bytes of memory"));
        Ok(Self { in_memory: Some(false), memory, folders })
    }

    /// The options of the library's external sort.
    pub fn options(self, width: usize, unique: bool, resources: &Resources) -> Options {
        let Self { in_memory: _, memory, folders } = self;
        Options { memory, folders, fan_in: resources.fan_in, unique, width, kernel: resources.sort_kernel }
    }
}

/// The most keys that the GPU sorts at once, or `u64::MAX` if no GPU sorts or every GPU has memory for `count` keys.
/// `device` returns the free bytes of the GPU, if a GPU sorts, and is called only if they may be too few.
pub fn most_on_device(shape: Shape, count: u64, device: &mut dyn FnMut() -> Result<Option<u64>>) -> Result<u64> {
    let bytes = if shape.in_memory(count) > EVERY_GPU { device()? } else { None };
    Ok(bytes.map_or(u64::MAX, |bytes| shape.most_on_gpu(bytes)))
}

/// An error unless memory has the `needed` bytes to sort the file at `path` in place.
pub fn in_place(needed: u128, resources: &Resources, path: &Path) -> Result<()> {
    let budget = memory::budget(resources.memory, 0)?;
    if needed > budget.into() {
        let message = format!(
            "--in-place sorts in memory, which takes {needed} bytes, of {budget} that --memory allows or that are \
             available"
        );
        return Err(Failure::file(path, message));
    }
    report::verbose(format_args!("plan: in memory, of which {budget} bytes may be used"));
    Ok(())
}

/// The facts about a merge of files that decide its plan.
#[derive(Clone, Copy, Debug)]
pub struct MergeFacts<'a> {
    pub shape: Shape,
    /// The number of files.
    pub files: usize,
    /// The number of keys in all files, if known.
    pub count: Option<u64>,
    /// Whether an output needs the number of its keys before they are merged, and the number is unknown.
    pub needs_count: bool,
    /// Whether the merge may write keys before it finds that a file is not sorted.
    pub may_fail_late: bool,
    /// The kernel of a merge in memory, if the user chose one.
    pub kernel: Option<&'a str>,
    /// The layout and key, if the files hold records. These are merged while they are read in any case.
    pub records: Option<&'a Records>,
    pub destination: Destination<'a>,
    /// The first file.
    pub path: &'a Path,
}

/// The plan of a merge of files: the options of a streamed merge, or `None` for a merge in memory.
pub fn merge(facts: MergeFacts, resources: &Resources, max_open: usize) -> Result<Option<Options>> {
    let MergeFacts { shape, files, count, needs_count, may_fail_late, kernel, records, destination, path } = facts;
    let Resources { processors, sort_kernel: _, memory: asked, folders, fan_in, threads: _ } = resources;
    let budget = memory::budget(*asked, destination.in_memory_beside(STREAMED_PARTS))?;
    let memory = budget.min(STREAMED_MEMORY.max(STREAMED_MEMORY_PER_FILE.saturating_mul(files as u64)));
    let limit = fan_in.unwrap_or(usize::MAX).min(max_open.max(2));
    let mut options = Options { fan_in: Some(limit), width: shape.width, ..Options::new(memory) };
    let at_once = || Ok::<_, Failure>(files <= most_at_once(shape, records, &options)?);
    if records.is_some() {
        report::verbose(format_args!("plan: merged by the CPU while read, with {memory} bytes of memory"));
        if let Some(count) = count.filter(|_| files > 2)
            && !at_once()?
        {
            check_spill_space(&paths(disk::temporary_folders(folders)?), shape.spilled(count), destination, path)?;
        }
        return Ok(Some(Options { folders: folders_if_any(resources)?, ..options }));
    }
    let Some(count) = count else {
        let in_memory = processors.engine == EngineChoice::Gpu || needs_count || kernel.is_some() || !at_once()?;
        if !in_memory {
            report::verbose(format_args!("plan: merged by the CPU while read, as pipes do not tell how long they are"));
        }
        return Ok((!in_memory).then_some(options));
    };
    let needed = shape.in_memory(count);
    if needed <= budget.into() {
        let bytes = u128::from(count) * shape.key as u128;
        let is_faster = shape.width == 0
            && !needs_count
            && processors.engine != EngineChoice::Gpu
            && bytes >= STREAMED_IS_FASTER
            && may_fail_late;
        if kernel.is_some() || !is_faster || !at_once()? {
            report::verbose(format_args!("plan: in memory, of which {budget} bytes may be used"));
            return Ok(None);
        }
    }
    if let Some(kernel) = kernel {
        return Err(Failure::new(format!(
            "--kernel {kernel}: merges in memory, and these files take {needed} bytes, of {budget} that --memory \
             allows or that are available; --kernel auto merges them while they are read"
        )));
    }
    if processors.engine == EngineChoice::Gpu {
        return Err(too_large_for_gpu("merges", needed, budget));
    }
    report::verbose(format_args!("plan: merged by the CPU while read, with {memory} bytes of memory"));
    if !at_once()? {
        options.folders = paths(disk::temporary_folders(folders)?);
        check_spill_space(&options.folders, shape.spilled(count), destination, path)?;
    }
    Ok(Some(options))
}

/// The most files that a merge with `options` merges at once.
fn most_at_once(shape: Shape, records: Option<&Records>, options: &Options) -> Result<usize> {
    let Some(Records { key, .. }) = records else {
        return shape.fan_in(options.memory, options.fan_in).map_err(|error| external::Error::from(error).into());
    };
    let of_merge = Ties::<u128, Failure>::sort_options(key, options);
    let most = shape.fan_in(of_merge.memory, of_merge.fan_in);
    most.map_err(|error| Ties::<u128, Failure>::sort_error(key, options, error.into()).into())
}

/// The folders for spilled runs, for a run that may not need one.
fn folders_if_any(resources: &Resources) -> Result<Vec<PathBuf>> {
    match disk::temporary_folders(&resources.folders) {
        Ok(folders) => Ok(paths(folders)),
        Err(failure) if !resources.folders.is_empty() => Err(failure),
        Err(_) => Ok(Vec::new()),
    }
}

/// The plan of a set operation on records with payloads of `width` bytes: always streamed.
pub fn set_of_records(width: usize, destination: Destination, resources: &Resources) -> Result<Options> {
    let memory = memory::budget(resources.memory, destination.in_memory_beside(STREAMED_PARTS))?;
    let memory = memory.min(STREAMED_MEMORY);
    report::verbose(format_args!("plan: merged by the CPU while read, with {memory} bytes of memory"));
    Ok(Options { width, folders: folders_if_any(resources)?, ..Options::new(memory) })
}

/// The plan of a set operation on files of `bytes` bytes: the options of a streamed operation, or `None` for one in
/// memory.
pub fn set(
    shape: Shape,
    bytes: Option<u64>,
    destination: Destination,
    resources: &Resources,
) -> Result<Option<Options>> {
    let memory = memory::budget(resources.memory, destination.in_memory_beside(STREAMED_PARTS))?;
    // The output may have as much data as the inputs.
    let needed = bytes.map(|bytes| 2 * u128::from(bytes)).filter(|needed| *needed > memory.into());
    let Some(needed) = needed else { return Ok(None) };
    if resources.processors.engine == EngineChoice::Gpu {
        return Err(too_large_for_gpu("does set operations", needed, memory));
    }
    report::verbose(format_args!("plan: merged by the CPU while read, with {memory} bytes of memory"));
    Ok(Some(Options { width: shape.width, ..Options::new(memory) }))
}

/// The error for an operation that a GPU `does` only in memory, if the files need more memory than there is.
fn too_large_for_gpu(does: &str, needed: u128, memory: u64) -> Failure {
    Failure::new(format!(
        "--engine gpu: {does} in memory, and these files take {needed} bytes, of {memory} that --memory allows or that \
         are available; --engine auto merges them on the CPU while they are read"
    ))
}

/// The paths of these folders.
fn paths(folders: Vec<TemporaryFolder>) -> Vec<PathBuf> {
    folders.into_iter().map(|folder| folder.path).collect()
}

/// An error if `folders` together certainly have too little space for `spilled` bytes of runs. The files of
/// `destination` may be on the same devices.
fn check_spill_space(folders: &[PathBuf], spilled: u128, destination: Destination, path: &Path) -> Result<()> {
    let device = |folder: &Path| folder.metadata().ok().map(|metadata| metadata.dev());
    let free_by_device = folders.iter().map(|folder| Some((device(folder)?, free_in(folder)?)));
    let Some(free_by_device) = free_by_device.collect::<Option<BTreeMap<u64, u128>>>() else { return Ok(()) };
    let is_shared = |other: &Path| device(other).is_some_and(|device| free_by_device.contains_key(&device));
    let output = destination.bytes_where(destination.least, is_shared);
    let free: u128 = free_by_device.values().sum();
    if spilled + output <= free {
        return Ok(());
    }
    let also = if output > 0 { format!(" and {output} for the output") } else { String::new() };
    let names = folders.iter().map(|folder| name(folder)).collect::<Vec<_>>().join(", ");
    Err(Failure::file(
        path,
        format!(
            "does not fit in memory, and its runs take {spilled} bytes in folder {names}{also}, where {free} are \
             free: name another with --tmp-dir, or allow more --memory"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MemorySize;
    use merge_host::SortKernel;

    fn plan(shape: Shape, count: Option<u64>, memory: u64, device: Option<u64>) -> SortPlan {
        let resources = Resources {
            processors: EngineChoice::Auto.into(),
            sort_kernel: SortKernel::Auto,
            threads: None,
            memory: Some(MemorySize::Bytes(memory)),
            folders: Vec::new(),
            fan_in: None,
        };
        let destination = Destination::of_keys(None, 0);
        SortPlan::new(shape, count, destination, &resources, &mut || Ok(device), Path::new("in")).unwrap()
    }

    #[test]
    fn keys_that_fit_are_sorted_in_memory() {
        let shape = Shape { key: 4, width: 0 };
        let in_memory = |count, memory| plan(shape, count, memory, None).in_memory;
        assert_eq!(in_memory(Some(0), 1 << 20), Some(true));
        assert_eq!(in_memory(Some(1 << 17), 1 << 20), Some(true));
        assert_eq!(in_memory(Some((1 << 17) + 1), 1 << 20), Some(false));
        assert_eq!(in_memory(None, 1 << 20), None);
    }

    #[test]
    fn a_gpu_with_too_little_memory_sorts_chunks() {
        let (shape, count) = (Shape { key: 8, width: 0 }, (1 << 28) + 1);
        if memory::budget(None, 0).unwrap() < 5 << 30 {
            return eprintln!("not run: too little memory for a plan of 4 GiB");
        }
        let needed = 2 * 8 * count;
        let in_memory = |device| plan(shape, Some(count), needed, Some(device)).in_memory;
        // A GPU needs 1/40 more memory.
        let on_device = (needed + needed / 40)..=(needed + needed / 40 + 100);
        assert_eq!((in_memory(*on_device.end()), in_memory(on_device.start() - 1)), (Some(true), Some(false)));
    }

    #[test]
    fn an_output_in_memory_takes_of_the_budget() {
        let shape = Shape { key: 4, width: 0 };
        let shm = Some(Path::new("/dev/shm"));
        let resources = Resources {
            processors: EngineChoice::Cpu.into(),
            sort_kernel: SortKernel::Auto,
            threads: None,
            memory: Some(MemorySize::Bytes(12 << 20)),
            folders: vec!["/var/tmp".into()],
            fan_in: None,
        };
        let plan = |count: u64, destination| {
            SortPlan::new(shape, Some(count), destination, &resources, &mut || Ok(None), Path::new("in"))
                .unwrap()
                .in_memory
        };
        let in_memory = |count: u64, folder| plan(count, Destination::of_keys(folder, 4 * u128::from(count)));
        assert_eq!((in_memory(1 << 20, shm), in_memory((1 << 20) + 1, shm)), (Some(true), Some(false)));
        assert_eq!((in_memory(3 << 19, None), in_memory((3 << 19) + 1, None)), (Some(true), Some(false)));
        // All keys may be different.
        let unique = |count: u64, folder| {
            plan(count, Destination::of_keys(folder, 0).or_up_to(Some([4 * u128::from(count), 0])))
        };
        assert_eq!((unique(1 << 20, shm), unique((1 << 20) + 1, shm)), (Some(true), Some(false)));
        assert_eq!((unique(3 << 19, None), unique((3 << 19) + 1, None)), (Some(true), Some(false)));
        // The number of bytes is unknown.
        assert!(Destination::of_keys(shm, 0).or_up_to(None).in_memory() > 0);
        assert_eq!(Destination::of_keys(None, 0).or_up_to(None).in_memory(), 0);
    }
}
