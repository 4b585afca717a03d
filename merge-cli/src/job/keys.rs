//! Opening files of keys and of values, and preparing the outputs.

use super::key_type::{Source, decide};
use super::{Resources, refuse};
use crate::args::{CommonArgs, EngineArgs, MemoryArgs};
use crate::coding::Coding;
use crate::file::values::Values;
use crate::file::{Form, Input, Output, OutputTarget};
use crate::format::{self, Container, Format};
use crate::os::limits;
use crate::say::error::{Failure, Result};
use crate::say::stats::Stats;
use crate::spec::{Devices, Endian, EngineChoice, KeyType, Processors, StatsFormat};
use merge_host::{SortKernel, SortOrder};
use std::path::{Path, PathBuf};

/// The order that `--reverse` or its absence asks for.
pub fn order_of(reverse: bool) -> SortOrder {
    if reverse { SortOrder::Descending } else { SortOrder::Ascending }
}

/// Flags about keys: how they are read and written.
#[derive(Clone, Copy, Debug)]
pub struct KeyFlags {
    pub key_type: Option<KeyType>,
    pub endian: Option<Endian>,
    pub format: Option<Format>,
    pub order: SortOrder,
    /// Whether a flag says what raw files hold: the type of keys, or records.
    pub is_typed: bool,
}

impl KeyFlags {
    /// The format to read the file at `path` in, if its first bytes do not decide. `--format raw` is also about an output, so
    /// that it must not overrule a name such as `keys.npy`, or the header of a stream that has no other type.
    fn input_format(&self, path: &Path) -> Option<Format> {
        let is_untyped_stream = path == Path::new("-") && self.key_type.is_none();
        let is_raw = Format::of_extension(path).is_none() && !is_untyped_stream;
        self.format.filter(|format| *format == Format::Raw && is_raw)
    }

    /// Opens the file at `path` and reads its header.
    pub fn open(&self, path: &Path) -> Result<Input> {
        let mut input = Input::open(path)?;
        input.read_header(self.input_format(path), self.is_typed)?;
        Ok(input)
    }

    /// Opens files of keys and reads their headers.
    pub fn open_all(&self, paths: &[PathBuf]) -> Result<Vec<Input>> {
        // Where not all can be open at once, each is opened again when it is read.
        let all_at_once = limits::open_files(paths.len()) == paths.len();
        let open = |path: &PathBuf| {
            let mut input = self.open(path)?;
            if !all_at_once {
                input.close();
            }
            Ok(input)
        };
        paths.iter().map(open).collect()
    }

    /// Decides the type of the keys of `inputs`, and of `output` if it holds such keys, and has the inputs encode them.
    pub fn decide(&self, inputs: &mut [Input], output: Option<&Path>) -> Result<KeyType> {
        if let Some(input) = inputs.iter().find(|input| input.header_record().is_some()) {
            let what =
                "holds records by its header, expected keys: only `gmerge sort` and `check` handle records, by --key";
            return Err(Failure::file(input.path(), what));
        }
        let sources = inputs.iter().map(|input| match input.header_type() {
            Some((key_type, _)) => Source::header(input.path(), key_type),
            None => Source::extension(input.path()),
        });
        let key_type = decide(self.key_type, &sources.chain(output.map(Source::extension)).collect::<Vec<_>>())?;
        for input in inputs {
            let endian = match input.header_type() {
                Some((_, endian)) => endian,
                None => format::endian_of_raw(input.path(), self.endian),
            };
            input.set_coding(Coding { key_type, endian, order: self.order });
        }
        Ok(key_type)
    }

    /// The output of keys of that type, which come from `inputs`.
    pub fn output(&self, target: OutputTarget, key_type: KeyType, inputs: &[Input]) -> Result<Output> {
        let path = target.path();
        let format = format::of_output(path, self.format)?;
        let first = inputs.first();
        let endian = format::endian_of_output(path, format, self.endian, first.map(|input| input.coding().endian));
        let container = Container::of_keys(path, format, key_type, endian, first.and_then(Input::column))?;
        let coding = Coding { key_type, endian, order: self.order };
        Ok(Output::new(target, Form { container, coding, size: key_type.size() }))
    }

    /// Starts the clock of a command on keys.
    pub fn stats(&self, op: &'static str, key_type: KeyType, format: Option<StatsFormat>) -> Stats {
        Stats::begin(op, key_type.name(), key_type.size(), format)
    }
}

/// How many files of values there have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFiles {
    /// One for all files of keys, or one for each.
    OneOrEach,
    /// One for each, as the command has it.
    Each,
    /// One for each, because of the flag `--merge`.
    EachByMerge,
}

/// Opens the files of the values of the keys of `inputs`, which have `size` bytes each, and prepares the output for them.
/// `keys_output` is where the keys go, and `count` how many files of values there have to be.
pub fn open_values(
    paths: &[PathBuf],
    target: Option<OutputTarget>,
    inputs: &[Input],
    size: usize,
    keys_output: &Output,
    count: ValueFiles,
) -> Result<Option<Values<Vec<Input>>>> {
    // clap asks for both flags or none.
    let (Some(_), Some(target)) = (paths.first(), target) else { return Ok(None) };
    if paths.len() != inputs.len() && !(count == ValueFiles::OneOrEach && paths.len() == 1) {
        let (found, expected) = (paths.len(), inputs.len());
        let by = if count == ValueFiles::EachByMerge { " with --merge" } else { "" };
        return Err(Failure::new(format!(
            "--values names {found} files, expected {expected}{by}, one for each file of keys"
        )));
    }
    let files = inputs.len() + paths.len();
    let all_at_once = limits::open_files(files) == files;
    let open = |path: &PathBuf| {
        let mut input = Input::open(path)?;
        input.read_header_of_values()?;
        if !all_at_once {
            input.close();
        }
        Ok(input)
    };
    let values = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    let width = crate::file::values::known_width(inputs, size, &values)?;
    let form = Form { container: container_of_values(target.path(), &values), ..Form::raw(width.unwrap_or(1)) };
    let output = Output::new(target, form);
    if output.is_same(keys_output) {
        return Err(Failure::file(output.path(), "is where the keys go, expected another file for --values-out"));
    }
    Ok(Some(Values { input: values, output }))
}

/// The container of values in a file at `path`: NumPy's if its name says so, with the dtype of `values` if that is one.
fn container_of_values(path: &Path, values: &[Input]) -> Container {
    if Format::of_extension(path) != Some(Format::Npy) {
        return Container::Raw;
    }
    let first = values.first().and_then(Input::descr);
    match first.filter(|first| values.iter().all(|input| input.descr().as_ref() == Some(first))) {
        Some(descr) => Container::Npy(descr),
        None => Container::Void,
    }
}

/// What a command may use, by its flags.
pub fn resources(processors: impl Into<Processors>, threads: Option<usize>, memory: MemoryArgs) -> Resources {
    let MemoryArgs { memory, tmp_dir, batch_size } = memory;
    Resources {
        processors: processors.into(),
        sort_kernel: SortKernel::Auto,
        threads,
        memory,
        folder: tmp_dir,
        fan_in: batch_size,
    }
}

impl EngineArgs {
    /// Where to compute.
    ///
    /// # Errors
    /// If GPUs are named for the CPU.
    pub fn processors(self) -> Result<Processors> {
        let Self { engine, device } = self;
        let on_cpu = ("--engine cpu", engine == EngineChoice::Cpu);
        refuse::beside(("--device", device.is_some()), &[on_cpu], "the CPU needs no GPU")?;
        let gpus = device.map_or_else(|| Processors::from(engine).gpus, |Devices(gpus)| gpus);
        Ok(Processors { engine, gpus })
    }
}

impl CommonArgs {
    /// The flags about keys among these, with those that stand elsewhere.
    pub fn key_flags(&self, format: Option<Format>, order: SortOrder) -> KeyFlags {
        let Self { key_type, endian, parallel: _, stats: _ } = self;
        KeyFlags { key_type: *key_type, endian: *endian, format, order, is_typed: key_type.is_some() }
    }
}
