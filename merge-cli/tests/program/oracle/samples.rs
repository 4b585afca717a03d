//! Command lines from clap's declaration: each flag with one or more samples of its use.
//!
//! Flags without a value and enumerations need nothing here. A flag with another kind of value needs a line in
//! [`table`].

use clap::builder::PossibleValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use std::collections::BTreeMap;
use std::fmt;

/// Flags that need another flag.
pub const PARTNERS: [(&str, &str); 10] = [
    ("values", "values-out"),
    ("values-out", "values"),
    ("value-size", "values"),
    ("key", "record-size"),
    ("record-size", "key"),
    ("output", "needles"),
    ("format", "needles"),
    ("sync", "needles"),
    ("right", "needles"),
    ("assume-sorted", "needles"),
];

/// The numbers that `search` looks up without `--needles`.
pub const NEEDLES: [u8; 3] = [0, 1, 100];

/// The operands of a command, treated as one more flag: which files are read, and how many.
pub const OPERANDS: &str = "operands";

/// Values of flags that are not booleans or enumerations. If another flag requires this flag, it gets the first value.
/// `*` stands for the index of an input file, `{input}` for the name of the second one, and `{type}` for the type of
/// the output's numbers.
fn table(command: &str, id: &str) -> &'static [&'static str] {
    match id {
        "output" if command == "man" => &["pages"],
        "output" => &["out.{type}", "out.bin", "out.{type}be", "out.u32", "out.npy", "-"],
        "tmp-dir" => &["tmp"],
        "needles" => &["{input}"],
        "values" => &["in*.rows", "in*.values.npy"],
        "values-out" => &["out.rows", "out.values.npy"],
        "value-size" => &["3"],
        "segments" | "offsets" => &["in*.offsets", "in*.offsets.npy"],
        "segment-len" => &["6"],
        "axis" => &["1"],
        "skip" => &["16"],
        "files0-from" => &["names0"],
        "record-size" => &["12"],
        "key" => &["0:u32", "4:f32:desc,0:i16", "1:bytes7"],
        "top" => &["7", "100000"],
        "memory" => &["1M", "50%"],
        "parallel" | "batch-size" => &["2"],
        "d" => &["4"],
        "a-len" => &["1", "4"],
        "device" => &["0", "all"],
        "count" if command == "gen" => &["240"],
        "count" => &["out.counts", "counts.npy", "counts.u16be"],
        "seed" => &["9"],
        _ => &[],
    }
}

/// One way to use a flag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usage {
    /// The flag's long name without the dashes, or its letter if it has no other name.
    pub id: String,
    /// The value of the flag, as in [`table`].
    pub value: Option<String>,
}

impl Usage {
    fn new(id: &str, value: Option<&str>) -> Self {
        Self { id: id.to_owned(), value: value.map(str::to_owned) }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_deref().map(|value| format!(" {value}")).unwrap_or_default();
        write!(f, "{}{value}", self.id)
    }
}

/// A command of the program, with the samples of its flags.
pub struct Subject {
    pub command: Command,
    /// The whole program, to parse command lines with.
    program: Command,
    /// All samples, grouped by flag.
    pub usages: Vec<Usage>,
}

impl Subject {
    /// All commands of the program, without the samples for which `skip` returns true.
    ///
    /// # Panics
    ///
    /// If a flag has no sample.
    pub fn all(skip: impl Fn(&str, &Usage) -> bool) -> Vec<Self> {
        let program = merge_cli::command();
        let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
        let subject = |command: &Command| {
            let flags = flags(command).flat_map(|arg| samples(command, arg));
            let usages = flags.chain(operands(command)).filter(|usage| !skip(command.get_name(), usage)).collect();
            Self { command: command.clone(), program: program.clone(), usages }
        };
        commands.map(subject).collect()
    }

    pub fn name(&self) -> &str {
        self.command.get_name()
    }

    pub fn has_flag(&self, id: &str) -> bool {
        self.arg(id).is_some()
    }

    fn arg(&self, id: &str) -> Option<&Arg> {
        flags(&self.command).find(|arg| id_of(arg) == id)
    }

    /// The request for these samples, with the flags that they require.
    pub fn request(&self, usages: &[&Usage], seed: u64) -> Request {
        let given = usages.iter().map(|usage| (usage.id.clone(), usage.value.clone().unwrap_or_default())).collect();
        let mut request = Request { command: self.name().to_owned(), given, seed };
        while let Some(missing) = self.missing(&request) {
            request = request.with(&missing);
        }
        request
    }

    /// A flag that has to be added: clap or the program requires it, or no other flag gives the type of the keys.
    fn missing(&self, request: &Request) -> Option<Usage> {
        if request.needs_type() && self.has_flag("type") {
            return Some(Usage::new("type", Some(request.key_type())));
        }
        let Err(error) = self.parse(request) else {
            let mut needed = request.needed().filter_map(|id| self.sample(request, id));
            return needed.find(|usage| self.parse(&request.with(usage)).is_ok());
        };
        if error.kind() != ErrorKind::MissingRequiredArgument {
            return None;
        }
        let Some(ContextValue::Strings(names)) = error.get(ContextKind::InvalidArg) else { return None };
        let arg = flags(&self.command).find(|arg| names.contains(&arg.to_string()))?;
        self.sample(request, &id_of(arg))
    }

    /// The first sample of a flag that suits the request.
    fn sample(&self, request: &Request, id: &str) -> Option<Usage> {
        self.usages.iter().find(|usage| usage.id == id && request.suits(usage)).cloned()
    }

    /// The request for this sample and `id`, without the flag `partner` that it needs. `None` if the command has no
    /// such flags, or if the sample belongs to one of the two.
    pub fn without_partner(&self, usage: &Usage, id: &str, partner: &str) -> Option<Request> {
        if !self.has_flag(partner) || usage.id == partner || usage.id == id {
            return None;
        }
        let mut request = self.request(&[usage, self.usages.iter().find(|usage| usage.id == id)?], 1);
        request.given.remove(partner);
        Some(request)
    }

    /// The result of clap for the request's command line.
    pub fn parse(&self, request: &Request) -> Result<(), clap::Error> {
        let words = self.words(request, false).into_iter();
        self.program.clone().try_get_matches_from(["gmerge".to_owned()].into_iter().chain(words)).map(|_| ())
    }

    /// The request's command line, without the program's name.
    pub fn words(&self, request: &Request, short: bool) -> Vec<String> {
        let mut words = vec![self.name().to_owned()];
        words.extend(request.operands());
        for (id, value) in request.given.iter().filter(|(id, _)| *id != OPERANDS) {
            let Some(arg) = self.arg(id) else { continue };
            if id == "output" && request.leaves_output_out() {
                continue;
            }
            words.push(name_of(arg, short));
            if !value.is_empty() {
                let several = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
                words.extend(request.expand(value, several));
            }
        }
        words
    }

    /// Whether the flag has two names.
    pub fn has_short(&self, usage: &Usage) -> bool {
        self.arg(&usage.id).is_some_and(|arg| arg.get_short().is_some() && arg.get_long().is_some())
    }

    /// The texts that may name a flag of the request in a message: its names, and its value as typed.
    pub fn names(&self, request: &Request, id: &str) -> Vec<String> {
        let value = request.given.get(id).map(String::as_str).unwrap_or_default();
        let files = (0..request.inputs()).map(|i| request.input_name(i));
        if id == OPERANDS {
            let positionals = self.command.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
            let words = ["files", "inputs", "standard input", "pipe", "pipes", "-:"].map(str::to_owned);
            return positionals.map(ToString::to_string).chain(words).chain(files).collect();
        }
        let Some(arg) = self.arg(id) else { return Vec::new() };
        let mut names = vec![name_of(arg, false), name_of(arg, true)];
        match value {
            "" => {}
            "names0" => names.extend(files),
            "-" => names.extend(["standard output", "-:"].map(str::to_owned)),
            _ => names.extend(request.expand(value, true).into_iter().filter(|value| value.len() > 2)),
        }
        names
    }
}

/// The flags of a command, without `--help` and the like.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_flag = |arg: &&Arg| !arg.is_positional() && !is_help(arg);
    command.get_arguments().filter(is_flag)
}

fn is_help(arg: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(arg.get_action(), Help | HelpLong | HelpShort | Version)
}

/// The short or long name of a flag on a command line, or the other name if it has only that one.
fn name_of(arg: &Arg, short: bool) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), None) => format!("--{long}"),
        (Some(long), Some(_)) if !short => format!("--{long}"),
        (_, Some(letter)) => format!("-{letter}"),
        (None, None) => String::new(),
    }
}

/// The identifier of a flag: its long name without the dashes, or its letter if it has no long name.
fn id_of(arg: &Arg) -> String {
    name_of(arg, false).trim_start_matches('-').to_owned()
}

/// The ways to use a flag.
fn samples(command: &Command, arg: &Arg) -> Vec<Usage> {
    let id = id_of(arg);
    if !arg.get_action().takes_values() {
        return vec![Usage::new(&id, None)];
    }
    let possible = arg.get_possible_values();
    let possible: Vec<&str> = possible.iter().map(PossibleValue::get_name).collect();
    let values = if possible.is_empty() { table(command.get_name(), &id) } else { &possible };
    assert!(!values.is_empty(), "give {} a sample in oracle/samples.rs", name_of(arg, false));
    values.iter().map(|value| Usage::new(&id, Some(value))).collect()
}

/// The operands of a command, in addition to the default, raw files of keys.
fn operands(command: &Command) -> Vec<Usage> {
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    let Some(first) = positionals.first() else { return Vec::new() };
    let possible = first.get_possible_values();
    if !possible.is_empty() {
        return possible.iter().map(|value| Usage::new(OPERANDS, Some(value.get_name()))).collect();
    }
    let many = first.get_num_args().is_some_and(|range| range.max_values() > 1);
    let kinds = ["stdin", "npy"].into_iter().chain(many.then_some("several"));
    kinds.map(|kind| Usage::new(OPERANDS, Some(kind))).collect()
}

/// The request of a command line: the given flags, by their names.
#[derive(Clone, Debug)]
pub struct Request {
    pub command: String,
    /// Values as in [`table`], empty for flags without a value.
    pub given: BTreeMap<String, String>,
    /// The seed of the random contents of its files.
    pub seed: u64,
}

impl Request {
    pub fn has(&self, id: &str) -> bool {
        self.given.contains_key(id)
    }

    pub fn has_any(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.has(id))
    }

    pub fn is(&self, id: &str, value: &str) -> bool {
        self.given.get(id).is_some_and(|given| given == value)
    }

    /// Whether the command line does not name the output, because it is the default.
    fn leaves_output_out(&self) -> bool {
        self.is("output", "-") && self.seed & 256 == 0 && !self.has_any(&["c", "C", "in-place"])
    }

    /// The value of a flag, as typed.
    pub fn value(&self, id: &str) -> Option<String> {
        self.given.get(id).and_then(|value| self.expand(value, false).pop())
    }

    /// The value of a flag as a number.
    pub fn number(&self, id: &str) -> Option<usize> {
        self.value(id)?.parse().ok()
    }

    pub fn is_records(&self) -> bool {
        self.has("record-size")
    }

    /// The type of the keys. Without `--type`, any type except two: NumPy has no names for those of 16 bytes, and a
    /// sample of `-o` names u32.
    pub fn key_type(&self) -> &str {
        const TYPES: [&str; 10] = ["u8", "i8", "u16", "i16", "f16", "i32", "f32", "u64", "i64", "f64"];
        let by_output = (self.inputs() == 0 && self.is("output", "out.u32")).then_some("u32");
        let given = self.given.get("type").map(String::as_str).or(by_output);
        given.unwrap_or(TYPES[(self.seed % 10) as usize])
    }

    /// The request with one more flag.
    fn with(&self, usage: &Usage) -> Self {
        let mut more = self.clone();
        more.given.insert(usage.id.clone(), usage.value.clone().unwrap_or_default());
        more
    }

    /// Whether the output has indices of keys.
    pub fn writes_indices(&self) -> bool {
        self.has_any(&["argsort", "needles"])
    }

    /// Whether keys on the command line are looked up.
    pub fn looks_up(&self) -> bool {
        self.command == "search" && !self.has("needles")
    }

    /// The fields of the records: offset and type.
    pub fn fields(&self) -> Vec<(usize, String)> {
        let key = self.value("key").unwrap_or_default();
        let field = |text: &str| {
            let mut parts = text.split(':').map(str::to_owned);
            Some((parts.next()?.parse().ok()?, parts.next()?))
        };
        key.split(',').filter_map(field).collect()
    }

    /// The key on the command line that stands for `number`, in each field of records.
    fn needle(&self, number: u8) -> String {
        let value = |kind: &str| match kind.strip_prefix("bytes") {
            Some(count) => format!("{number:02x}{}", "0".repeat(2 * count.parse::<usize>().unwrap() - 2)),
            None => number.to_string(),
        };
        let of_fields = self.fields().iter().map(|(_, kind)| value(kind)).collect::<Vec<_>>().join(",");
        if self.is_records() { of_fields } else { value("") }
    }

    /// The flags that other flags of the request need.
    fn needed(&self) -> impl Iterator<Item = &'static str> {
        let partners = PARTNERS.into_iter().filter(|(id, other)| self.has(id) && !self.has(other));
        let is_without = self.has_any(&["c", "C", "in-place"]) || self.looks_up() || self.command == "man";
        let writes = !self.has("output") && !is_without;
        partners.map(|(_, other)| other).chain(writes.then_some("output"))
    }

    /// Whether a sample suits the others: by default, values are read and written in one format.
    fn suits(&self, usage: &Usage) -> bool {
        let is_npy = |value: &String| value.ends_with(".npy");
        let other = match &*usage.id {
            "values" => "values-out",
            "values-out" => "values",
            _ => return true,
        };
        self.given.get(other).is_some_and(is_npy) == usage.value.as_ref().is_some_and(is_npy)
    }

    /// The number of input files.
    pub fn inputs(&self) -> usize {
        match &*self.command {
            _ if self.is(OPERANDS, "several") => 3,
            "sort" | "check" => 1,
            "search" if self.looks_up() => 1,
            "gen" | "info" | "completions" | "man" => 0,
            _ => 2,
        }
    }

    /// The name of an input file of keys, even if it is read from standard input.
    pub fn input_name(&self, index: usize) -> String {
        let extension = match () {
            () if self.is(OPERANDS, "npy") => "npy",
            () if self.is_records() => "dat",
            () if self.has("type") => "bin",
            () => self.key_type(),
        };
        format!("in{index}.{extension}")
    }

    /// The operands on the command line.
    pub fn operands(&self) -> Vec<String> {
        if self.command == "completions" {
            return vec![self.given.get(OPERANDS).map_or("bash", String::as_str).to_owned()];
        }
        if self.has("files0-from") && !self.has(OPERANDS) {
            return Vec::new();
        }
        let name = |i| if i == 0 && self.is(OPERANDS, "stdin") { "-".to_owned() } else { self.input_name(i) };
        if self.command == "search" {
            let keys = NEEDLES.iter().filter(|_| self.looks_up()).map(|number| self.needle(*number));
            return [name(0)].into_iter().chain(keys).collect();
        }
        (0..self.inputs()).map(name).collect()
    }

    /// Whether only `--type` can give the type of the keys.
    fn needs_type(&self) -> bool {
        let untyped_output = self.given.get("output").is_some_and(|name| !name.contains("{type}") && name != "out.u32");
        let untold = self.is(OPERANDS, "stdin") || self.command == "gen" && untyped_output;
        untold && !self.has_any(&["type", "record-size", "key"])
    }

    /// Whether one file has the values of all files of keys, instead of a file of values for each.
    pub fn has_values_of_all(&self) -> bool {
        self.command == "sort" && self.seed & 128 != 0
    }

    /// A value of [`table`] as typed, once for each input if `several`.
    fn expand(&self, value: &str, several: bool) -> Vec<String> {
        let output = if self.writes_indices() { "u64" } else { self.key_type() };
        let value = value.replace("{type}", output).replace("{input}", &self.input_name(1));
        let count = if several && value.contains('*') && !self.has_values_of_all() { self.inputs() } else { 1 };
        (0..count).map(|i| value.replace('*', &i.to_string())).collect()
    }
}
