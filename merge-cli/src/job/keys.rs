//! Opening files of keys and of values, and preparing the outputs.

use super::key_type::{Source, decide};
use super::{Keep, Resources, numbers, refuse};
use crate::args::{CommonArgs, EngineArgs, MemoryArgs, OrderArgs, RecordArgs, UniqueArgs};
use crate::coding::{Coding, KeyOrder};
use crate::file::{Form, Input, Output, Outputs, Target};
use crate::format::arrow::Column;
use crate::format::npy::Rows;
use crate::format::{self, Axis, Container, Content, Format};
use crate::os::limits;
use crate::say::error::{Failure, Result, name};
use crate::spec::{Devices, Endian, EngineChoice, KeyType, Processors};
use clap::ValueEnum;
use merge_host::{SortKernel, SortOrder};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// The order by `--reverse` and `--nan`.
pub fn order_of(reverse: bool, OrderArgs { nans }: OrderArgs) -> KeyOrder {
    let direction = if reverse { SortOrder::Descending } else { SortOrder::Ascending };
    KeyOrder { direction, nans: nans.into() }
}

/// The flags about reading and writing keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyFlags {
    pub key_type: Option<KeyType>,
    pub endian: Option<Endian>,
    pub format: Option<Format>,
    pub order: KeyOrder,
    /// Whether a flag gives the content of raw files: the type of keys, or records.
    pub is_typed: bool,
    /// The axis of arrays along which keys lie.
    pub axis: Axis,
    /// A flag that was given for keys, and that records do not have.
    pub keys_only: Option<&'static str>,
    /// Bytes of a value, if given.
    pub value_size: Option<usize>,
}

impl KeyFlags {
    /// These flags beside the flags about records.
    pub fn beside(self, records: &RecordArgs) -> Self {
        let axis = if records.rows { Axis::Last } else { self.axis };
        Self { is_typed: self.is_typed || records.record_size.is_some(), axis, ..self }
    }

    /// These flags beside flags that records do not have. A file may hold records by its header alone.
    pub fn beside_keys_only(self, flags: &[refuse::Flag]) -> Self {
        Self { keys_only: self.keys_only.or(refuse::first(flags)), ..self }
    }

    /// The forced format of the input at `path`, if any. `--format raw` also concerns the output. So it must not
    /// overrule a name such as `keys.npy`, or the header of standard input if no flag gives its content.
    fn input_format(&self, path: &Path) -> Option<Format> {
        let is_untyped_stream = path == Path::new("-") && !self.is_typed;
        let is_raw = Format::of_extension(path).is_none() && !is_untyped_stream;
        self.format.filter(|format| *format == Format::Raw && is_raw)
    }

    fn content(&self) -> Content {
        Content::Keys { is_typed: self.is_typed, axis: self.axis }
    }

    /// Opens the file of keys at `path` and reads its header.
    pub fn open_keys(&self, path: &Path) -> Result<Input> {
        self.open(path, self.content())
    }

    fn open(&self, path: &Path, content: Content) -> Result<Input> {
        let mut input = Input::open(path)?;
        input.read_header(self.input_format(path), content)?;
        Ok(input)
    }

    /// Opens files of keys and reads their headers.
    pub fn open_all(&self, paths: &[PathBuf]) -> Result<Vec<Input>> {
        self.open_beside(0, paths, self.content())
    }

    /// Opens files in addition to `others` files, and reads their headers.
    fn open_beside(&self, others: usize, paths: &[PathBuf], content: Content) -> Result<Vec<Input>> {
        // If not all files can be open at once, each is opened again when it is read.
        let files = others + paths.len();
        let all_at_once = limits::open_files(files) == files;
        let open = |path: &PathBuf| {
            let mut input = self.open(path, content)?;
            if !all_at_once {
                input.close();
            }
            Ok(input)
        };
        paths.iter().map(open).collect()
    }

    /// Decides the type of the keys of `inputs`, and of `output` if it holds these keys. Sets the coding of the inputs.
    pub fn decide(&self, inputs: &mut [Input], output: Option<&Path>) -> Result<KeyType> {
        if let Some(input) = inputs.iter().find(|input| input.header_record().is_some()) {
            let what = "holds records by its header, expected keys: `gmerge batch` merges runs of keys";
            return Err(Failure::file(input.path(), what));
        }
        inputs.iter().try_for_each(Input::check_is_no_table)?;
        let sources = inputs.iter().map(|input| match input.header_type() {
            Some((key_type, _)) => Source::header(input.path(), key_type),
            None => Source::extension(input.path()),
        });
        let shape = |input: &Input| Some(input.rows()?.shape).filter(|shape| !shape.is_empty());
        check_same("rows", inputs.iter().filter_map(|input| Some((input, Shape(shape(input)?)))))?;
        let key_type = decide(self.key_type, &sources.chain(output.map(Source::extension)).collect::<Vec<_>>())?;
        check_same("keys", inputs.iter().filter_map(|input| Some((input, input.number()?.name))))?;
        let has_nat = has_nat(inputs);
        for input in inputs {
            let endian = match input.header_type() {
                Some((_, endian)) => endian,
                None => format::endian_of_raw(input.path(), self.endian),
            };
            input.set_coding(Coding { key_type, endian, order: self.order, has_nat });
        }
        Ok(key_type)
    }

    /// The output of keys of this type from `inputs`.
    pub fn output(&self, target: Target, key_type: KeyType, inputs: &[Input]) -> Result<Output> {
        let path = &target.path;
        let format = format::of_output(path, self.format)?;
        let first = inputs.first();
        let endian = format::endian_of_output(path, format, self.endian, first.map(|input| input.coding().endian));
        let number = inputs.iter().find_map(Input::number);
        let mut container = Container::of_keys(path, format, key_type, endian, number, first.and_then(Input::column))?;
        if let (Container::Npy(rows), Some(of_input)) = (&mut container, first.and_then(Input::rows)) {
            (rows.shape, rows.is_transposed) = (of_input.shape, of_input.is_transposed);
        } else if self.axis == Axis::First {
            return Err(Failure::file(
                path,
                "expected an .npy file for --axis 0, whose header tells the order of columns",
            ));
        }
        let coding = Coding { key_type, endian, order: self.order, has_nat: has_nat(inputs) };
        Ok(Output::new(target, Form { container, coding, size: key_type.size() }))
    }

    /// Opens the files of values for the keys of `inputs`, of `size` bytes each, and prepares the outputs. `keys` is
    /// the output of the keys, and `count` the expected number of files of values.
    pub fn open_values(
        &self,
        paths: &[PathBuf],
        target: Option<Target>,
        inputs: &[Input],
        size: usize,
        keys: Output,
        count: ValueFiles,
    ) -> Result<(Option<Vec<Input>>, Outputs)> {
        // clap requires both flags or neither.
        let (Some(_), Some(target)) = (paths.first(), target) else {
            return Ok((None, Outputs::from(keys)));
        };
        count.check(paths.len(), inputs.len())?;
        let mut values = self.open_beside(inputs.len(), paths, Content::Values)?;
        if let Some(bytes) = self.value_size {
            values.iter_mut().try_for_each(|input| input.set_value_size(bytes))?;
        }
        check_same("values", values.iter().filter_map(|input| Some((input, input.rows()?))))?;
        let width = crate::file::values::known_width(inputs, size, &values)?;
        let format = format::of_values(&target.path, self.format)?;
        let container = container_of_values(&target.path, format, &values)?;
        let output = Output::new(target, Form { container, ..Form::raw(width.unwrap_or(0)) });
        output.check_size()?;
        if output.is_same(&keys) {
            return Err(Failure::file(output.path(), "is where the keys go, expected another file for --values-out"));
        }
        Ok((Some(values), Outputs { values: Some(output), ..Outputs::from(keys) }))
    }
}

/// Whether the header of an input says that the keys are dates or durations.
fn has_nat(inputs: &[Input]) -> bool {
    inputs.iter().find_map(Input::number).is_some_and(|number| number.has_nat())
}

/// The expected number of files of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFiles {
    /// One file for all files of keys, or one for each.
    OneOrEach,
    /// One for each file of keys, as the command requires.
    Each,
    /// One for each file of keys, as the flag `--merge` requires.
    EachByMerge,
}

impl ValueFiles {
    /// An error unless `values` files of values are valid for `keys` files of keys.
    fn check(self, values: usize, keys: usize) -> Result<()> {
        if values == keys || self == Self::OneOrEach && values == 1 {
            return Ok(());
        }
        let by = if self == Self::EachByMerge { " with --merge" } else { "" };
        let one = if self == Self::OneOrEach && keys > 1 { "1 or " } else { "" };
        let hint = if values > keys { ": files of keys are named before --values" } else { "" };
        Err(Failure::new(format!(
            "--values names {values} files, expected {one}{keys}{by}, one for each file of keys{hint}"
        )))
    }
}

/// The shape of a row, for a message.
#[derive(PartialEq)]
struct Shape(Vec<u64>);

impl Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shape {:?}", self.0)
    }
}

/// An error if the headers of two files of `what` have different dtypes, because an output has only one.
fn check_same<'a, D: PartialEq + Display>(what: &str, mut told: impl Iterator<Item = (&'a Input, D)>) -> Result<()> {
    let Some((first, expected)) = told.next() else { return Ok(()) };
    let Some((other, found)) = told.find(|(_, found)| *found != expected) else { return Ok(()) };
    let (first, other) = (name(first.path()), name(other.path()));
    Err(Failure::new(format!(
        "{first} holds {what} of dtype {expected} and {other} of dtype {found}: all files must hold the same"
    )))
}

/// The container of values in an output at `path` of this format. It has the common dtype of all files of values, if
/// each file has a dtype.
fn container_of_values(path: &Path, format: Format, values: &[Input]) -> Result<Container> {
    let told: Option<Vec<Rows>> = values.iter().map(Input::rows).collect();
    let rows = told.and_then(|rows| rows.into_iter().next());
    if format == Format::Parquet {
        return Err(Failure::file(path, "values cannot be written to Parquet files: write .npy"));
    }
    if let Format::Arrow | Format::Arrows = format {
        let of_rows = |column: &Column| column.rows().is_some() && column.rows() == rows;
        let input = values.iter().filter_map(Input::column).next().cloned();
        let types = KeyType::value_variants().iter();
        let column =
            input.into_iter().chain(types.filter_map(|key_type| Column::new("values", *key_type))).find(of_rows);
        let found = rows.map_or_else(|| "values without a dtype".to_owned(), |rows| format!("values of dtype {rows}"));
        let expected = format!("Arrow files hold little-endian numbers, one for each key, found {found}: write .npy");
        return Ok(Container::Arrow(format, column.ok_or_else(|| Failure::file(path, expected))?));
    }
    Ok(match (format, rows) {
        (Format::Npy, Some(rows)) => Container::Npy(rows),
        (Format::Npy, None) => Container::Void,
        _ => Container::Raw,
    })
}

/// The resources that the flags of a command allow.
pub fn resources(processors: impl Into<Processors>, threads: Option<usize>, memory: MemoryArgs) -> Resources {
    let MemoryArgs { memory, tmp_dir, batch_size } = memory;
    Resources {
        processors: processors.into(),
        sort_kernel: SortKernel::Auto,
        threads,
        memory,
        folders: tmp_dir,
        fan_in: batch_size,
    }
}

impl UniqueArgs {
    /// Which of equal keys are written.
    pub fn keep(&self) -> Keep {
        match (self.unique, self.last) {
            (false, _) => Keep::All,
            (true, false) => Keep::First,
            (true, true) => Keep::Last,
        }
    }
}

/// These outputs with a file of the numbers of equal keys, if there is a target for it.
pub fn with_counts(outputs: Outputs, target: Option<Target>, flags: KeyFlags) -> Result<Outputs> {
    let Some(target) = target else { return Ok(outputs) };
    let counts = numbers::counts(target, flags)?;
    if let Some(other) = outputs.iter().find(|output| output.is_same(&counts.0)) {
        let message = "is where keys or values go, expected another file for --count";
        return Err(Failure::file(other.path(), message));
    }
    Ok(Outputs { counts: Some(counts), ..outputs })
}

impl EngineArgs {
    /// The engine and the GPUs.
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
    /// The flags about keys: these flags, with the given format and order.
    pub fn key_flags(&self, format: Option<Format>, order: KeyOrder) -> KeyFlags {
        let Self { key_type, endian, parallel: _, stats: _ } = self;
        let is_typed = key_type.is_some();
        let flags = KeyFlags {
            key_type: *key_type,
            endian: *endian,
            format,
            order,
            is_typed,
            axis: Axis::Only,
            keys_only: None,
            value_size: None,
        };
        flags.beside_keys_only(&[("--type", is_typed)])
    }
}
