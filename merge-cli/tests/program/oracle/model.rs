//! The expected result of a command line: an independent model in plain Rust, for small inputs.
//!
//! Where the help leaves a combination open, these rules decide:
//!
//! 1. A flag without an effect on the result (`--engine`, `--device`, `--parallel`, `--stats`, `-v`, `-q`,
//!    `--progress`, `-S`, `-T`, `--batch-size`, `--kernel`, `--stable`, `--check`, `--assume-sorted`, `--value-size`)
//!    changes no byte of the result.
//! 2. Raw numbers have the byte order of the file's extension (`.u32be`), otherwise of `--endian`, otherwise little
//!    endian. An .npy input has the byte order of its header. An .npy output follows the rule of raw files, with the
//!    first input's byte order in place of little endian.
//! 3. `--endian` and `--format` also apply to the file in `-o`, which holds keys, indices or records. Numbers in the
//!    fields of raw records and in files of raw offsets have the byte order of `--endian`; byte strings and values have
//!    no byte order.
//! 4. `--argsort` and `--needles` write indices of 8 bytes, or of the type in the extension of the output. That
//!    extension then does not concern the keys.
//! 5. Values from an .npy file are its elements, without the header. Values written to .npy have the dtype of their
//!    input, or `|V3` for 3 raw bytes; records written to .npy likewise (`|V12`).
//! 6. Offsets may be in an .npy file.
//! 7. `--unique` keeps the first of equal keys, or the first record with equal keys, with its value and index. So does
//!    it with `-m`. With `-c` and `-C`, equal neighbours are out of order. With `--top`, it keeps the first N distinct
//!    keys. With `--last`, it keeps the last of equal keys. `--count` writes the number of equal keys, as u64 or as the
//!    type in the extension, in the byte order of rule 2.
//! 8. `--top N` keeps the first N keys of the output, with their values or indices.
//! 9. `--reverse` reverses the order, including fields of records with `:desc`. Equal keys stay in the order of the
//!    input.
//! 10. `sort A B C` sorts all files together. `--argsort` numbers the keys across the files. One file holds all values,
//!     or each file of keys has a file of values.
//! 11. `-c` and `-C` write nothing. They are refused with `-o`, `--format`, `--check`, `--merge`, with each other, and
//!     with several files. With `--check`, the output must be a file.
//! 12. Segments keep their lengths: `--unique`, `--top`, `--argsort` and `--merge` are refused.
//! 13. `--type` overrules the extension of an output. Without it, the extension must name the type of the inputs.
//! 14. `--key` needs `--record-size`, and `--values-out` needs `--values`, with all other flags.
//! 15. A sort's `--kernel` other than auto needs a GPU. It is refused with `--engine cpu`, and where no GPU sorts.
//! 16. `--skip N` copies the first N bytes of a raw file to a raw output. It is refused where no keys are written.
//! 17. NaNs are last, with `--reverse` and `:desc`, too, or where `--nan` says. It does not affect other keys.
//! 18. `search` without `--needles` prints lines, and refuses streams. Its output flags need `--needles`, which takes
//!     no records.
//! 19. `--in-place` writes all items over those of the one input, a file, in its format and byte order. It is refused
//!     beside an output and where items are dropped, divided, or have others beside them.
//! 20. The line of `check` about disorder is its result: `-q` keeps it, and only `-C` drops it.

use super::input::{Input, RECORD_DTYPE, VALUE, dtype, size_of_type};
use super::samples::{NEEDLES, OPERANDS, Request};
use merge_host::f16;
use std::collections::BTreeMap;

/// A key or a record of an input.
#[derive(Clone, Debug)]
pub struct Item {
    /// The encoded key: its lexicographic order is the requested order.
    pub key: Vec<u8>,
    /// The key, least significant byte first, or the record.
    pub bytes: Vec<u8>,
    /// The value of the key.
    pub value: Vec<u8>,
    /// The index of the item among all items of all inputs.
    index: usize,
    /// The number of items with this key, if the item stands for all of them.
    count: usize,
}

impl Item {
    pub fn new(request: &Request, bytes: Vec<u8>, value: Vec<u8>, index: usize) -> Self {
        let mut key = match request.is_records() {
            true => record_key(request, &bytes),
            false => ordered(request.key_type(), bytes.clone(), request.nans(request.has("reverse"))),
        };
        if request.has("reverse") {
            complement(&mut key);
        }
        Self { key, bytes, value, index, count: 1 }
    }
}

/// The bytes of a number, least significant first, as bytes in the order of the numbers, with NaNs by `nans`.
fn ordered(key_type: &str, mut bytes: Vec<u8>, nans: Nans) -> Vec<u8> {
    bytes.reverse();
    let infinity: &[u8] = match key_type {
        "f16" => &[0x7c, 0],
        "bf16" => &[0x7f, 0x80],
        "f32" => &[0x7f, 0x80, 0, 0],
        _ => &[0x7f, 0xf0, 0, 0, 0, 0, 0, 0],
    };
    let sign = bytes[0] >> 7;
    let is_nan = key_type.starts_with(['f', 'b']) && [&[bytes[0] & 0x7f], &bytes[1..]].concat().as_slice() > infinity;
    // Of NaNs that are moved, those without the sign bit come first.
    let class = match nans {
        Nans::Last if is_nan => 1 + sign,
        Nans::First if is_nan => sign,
        Nans::First => 2,
        Nans::Last | Nans::Total => 0,
    };
    match key_type.as_bytes()[0] {
        b'f' | b'b' if bytes[0] & 0x80 != 0 => complement(&mut bytes),
        b'f' | b'b' | b'i' => bytes[0] ^= 0x80,
        _ => {}
    }
    bytes.insert(0, class);
    bytes
}

/// The place of NaNs in an order before it is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nans {
    Last,
    First,
    Total,
}

impl Request {
    /// The place of NaNs before the order is reversed, if `reverse`.
    fn nans(&self, reverse: bool) -> Nans {
        match (self.value("nan").as_deref(), reverse) {
            (Some("total"), _) => Nans::Total,
            (Some("first"), false) | (None | Some("last"), true) => Nans::First,
            _ => Nans::Last,
        }
    }
}

fn complement(key: &mut [u8]) {
    key.iter_mut().for_each(|byte| *byte = !*byte);
}

fn record_key(request: &Request, record: &[u8]) -> Vec<u8> {
    let fields = request.value("key").unwrap_or_default();
    let field = |text: &str| {
        let mut parts = text.split(':');
        let (begin, kind) = (parts.next().unwrap().parse::<usize>().unwrap(), parts.next().unwrap());
        let descends = parts.next() == Some("desc");
        let mut key = match kind.strip_prefix("bytes") {
            Some(count) => record[begin..][..count.parse().unwrap()].to_vec(),
            None => {
                let bytes = record[begin..][..kind[1..].parse::<usize>().unwrap() / 8].to_vec();
                let size = if request.input_is_big() { bytes.len() } else { 1 };
                ordered(kind, swap(bytes, size), request.nans(request.has("reverse") != descends))
            }
        };
        if descends {
            complement(&mut key);
        }
        key
    };
    fields.split(',').filter(|text| !text.is_empty()).flat_map(field).collect()
}

/// The expected result of a run.
#[derive(Debug)]
pub enum Expected {
    /// These files, and these bytes on standard output.
    Output { files: BTreeMap<String, Vec<u8>>, stdout: Vec<u8> },
    /// These lines on standard output, and whether all keys were found.
    Lines { text: String, all_found: bool },
    /// The result of a check: the index of the first item out of order, if there is one.
    Order(Option<usize>),
    /// Generated keys in the requested encoding.
    Generated,
    /// Text on standard output or in files.
    Text,
    /// An error that names these two flags, which have no meaning together.
    Refusal([&'static str; 2]),
}

pub fn expected(request: &Request, input: &Input) -> Expected {
    if let Some(flags) = contradiction(request, input) {
        return Expected::Refusal(flags);
    }
    match &*request.command {
        "info" | "completions" | "man" => Expected::Text,
        "gen" => Expected::Generated,
        "search" if request.looks_up() => looked_up(request, &input.items[0]),
        "check" => Expected::Order(first_unsorted(request, &input.items[0])),
        _ if request.has_any(&["c", "C"]) => Expected::Order(first_unsorted(request, &input.items[0])),
        _ if request.has("in-place") => {
            let bytes = input.encoded(request, &transform(request, input));
            Expected::Output { files: BTreeMap::from([(request.input_name(0), bytes)]), stdout: Vec::new() }
        }
        _ => written(request, transform(request, input)),
    }
}

/// Two flags of the request that contradict each other.
fn contradiction(request: &Request, input: &Input) -> Option<[&'static str; 2]> {
    const EXCLUSIVE: &[(&str, &[&str])] = &[
        ("quiet", &["verbose"]),
        ("c", &["C"]),
        ("record-size", &["type"]),
        ("key", &["type"]),
        ("d", &["offsets"]),
        ("a-len", &["offsets"]),
        ("needles", &["record-size", "key"]),
        ("segments", &["segment-len", "unique", "top", "argsort", "merge", "record-size"]),
        ("segment-len", &["unique", "top", "argsort", "merge", "record-size"]),
    ];
    const NOT_WITH_CHECK: [&str; 12] = [
        "output",
        "format",
        "values",
        "values-out",
        "argsort",
        "top",
        "segments",
        "segment-len",
        "merge",
        "check",
        "last",
        "count",
    ];
    const NOT_IN_PLACE: [&str; 16] = [
        "output",
        "format",
        "values",
        "values-out",
        "unique",
        "last",
        "count",
        "top",
        "argsort",
        "check",
        "segments",
        "segment-len",
        "merge",
        "files0-from",
        "c",
        "C",
    ];
    const NOT_ON_GPU: [&str; 6] = ["c", "C", "merge", "top", "segments", "segment-len"];
    let given = |id: &&&str| request.has(id);
    for (first, others) in EXCLUSIVE {
        if let Some(other) = others.iter().find(given).filter(|_| request.has(first)) {
            return Some([first, other]);
        }
    }
    if request.has("in-place") {
        if let Some(other) = NOT_IN_PLACE.iter().find(given) {
            return Some(["in-place", other]);
        }
        if input.items.len() > 1 || request.is(OPERANDS, "stdin") {
            return Some(["in-place", OPERANDS]);
        }
    }
    if let Some(check) = ["c", "C"].iter().find(given) {
        if let Some(other) = NOT_WITH_CHECK.iter().find(given) {
            return Some([check, other]);
        }
        if input.items.len() > 1 {
            return Some([check, OPERANDS]);
        }
    }
    if request.looks_up() && request.is(OPERANDS, "stdin") {
        return Some([OPERANDS; 2]);
    }
    if request.command == "gen" && request.has_any(&["record-size"]) && request.has("dist") {
        return Some(["record-size", "dist"]);
    }
    for (first, second) in [("key", "record-size"), ("values-out", "values")] {
        if request.has(first) && !request.has(second) {
            return Some([first, second]);
        }
    }
    if request.is("output", "out.u32") && !request.has_any(&["type", "argsort", "needles", "record-size"]) {
        let typed = request.inputs() > 0 && request.key_type() != "u32";
        return typed.then_some(["output", OPERANDS]);
    }
    if request.has("check") && request.is("output", "-") {
        return Some(["check", "output"]);
    }
    let has_kernel = request.given.get("kernel").is_some_and(|kernel| kernel != "auto");
    if has_kernel && request.command == "merge" && input.items.len() != 2 {
        return Some(["kernel", OPERANDS]);
    }
    if has_kernel && request.command == "sort" {
        if request.is("engine", "cpu") {
            return Some(["kernel", "engine"]);
        }
        if let Some(other) = NOT_ON_GPU.iter().find(given) {
            return Some(["kernel", other]);
        }
    }
    let is_on_gpu = request.is_records() || request.key_size() <= 8;
    let asks = [("kernel", has_kernel && request.command == "sort"), ("engine", request.is("engine", "gpu"))];
    if let Some((id, _)) = asks.into_iter().find(|(_, asks)| *asks && !is_on_gpu && !request.has_any(&["c", "C"])) {
        return Some([id; 2]);
    }
    if ["basic", "tiled", "circular"].iter().any(|kernel| request.is("kernel", kernel)) && request.has("values") {
        return Some(["kernel", "values"]);
    }
    if ["u128", "i128"].iter().any(|name| request.is("type", name)) && !request.is_records() {
        if request.is(OPERANDS, "npy") {
            return Some([OPERANDS; 2]);
        }
        if output_format(request) == "npy" && !request.writes_indices() && !request.has_any(&["c", "C"]) {
            return Some(["type", if request.has("format") { "format" } else { "output" }]);
        }
    }
    None
}

/// The lines about the keys on the command line.
fn looked_up(request: &Request, items: &[Item]) -> Expected {
    let (mut text, mut all_found) = (String::new(), true);
    let typed = request.operands().split_off(1);
    for (number, typed) in NEEDLES.into_iter().zip(typed) {
        let mut bytes = number_of(request.key_type(), number);
        if request.is_records() {
            bytes = vec![0; 12];
            for (begin, kind) in request.fields() {
                let value = number_of(&kind, number);
                let size = if request.input_is_big() && !kind.starts_with("bytes") { value.len() } else { 1 };
                bytes[begin..][..value.len()].copy_from_slice(&swap(value, size));
            }
        }
        let needle = Item::new(request, bytes, Vec::new(), 0).key;
        let before = items.iter().filter(|item| item.key < needle).count();
        let equal = items.iter().filter(|item| item.key == needle).count();
        text += &format!("{typed}\t{before}\t{equal}\n");
        all_found &= equal > 0;
    }
    Expected::Lines { text, all_found }
}

/// A number as the bytes of this type, the least significant one first, or as the first byte of a byte string.
fn number_of(kind: &str, number: u8) -> Vec<u8> {
    let float = f32::from(number);
    match kind {
        "f16" => f16::from_f32(float).to_le_bytes().to_vec(),
        "bf16" => float.to_le_bytes()[2..].to_vec(),
        "f32" => float.to_le_bytes().to_vec(),
        "f64" => f64::from(number).to_le_bytes().to_vec(),
        _ => {
            let size = kind.strip_prefix("bytes").map_or_else(|| size_of_type(kind), |count| count.parse().unwrap());
            [vec![number], vec![0; size - 1]].concat()
        }
    }
}

/// The needles, with their bounds as indices.
fn bounds(request: &Request, input: &Input) -> Vec<Item> {
    let bound = |needle: &Item| {
        let precedes = |item: &&Item| item.key < needle.key || request.has("right") && item.key == needle.key;
        Item { index: input.items[0].iter().filter(precedes).count(), ..needle.clone() }
    };
    input.items[1].iter().map(bound).collect()
}

/// The index of the first item that must not follow its predecessor.
fn first_unsorted(request: &Request, items: &[Item]) -> Option<usize> {
    let disorder = |pair: &[Item]| pair[1].key < pair[0].key || request.has("unique") && pair[1].key == pair[0].key;
    items.windows(2).position(disorder).map(|i| i + 1)
}

/// The items of the output.
fn transform(request: &Request, input: &Input) -> Vec<Item> {
    let all = || input.items.concat();
    let mut items = match &*request.command {
        "sort" if request.has_any(&["segments", "segment-len"]) => segments(request, input),
        "batch" => batch(input),
        "search" => bounds(request, input),
        "union" | "intersect" | "difference" | "symmetric-difference" => set_operation(&request.command, input),
        _ => sorted(all()),
    };
    if request.has("unique") {
        items = one_of_equal(items, request.has("last"));
    }
    items.truncate(request.number("top").unwrap_or(usize::MAX));
    items
}

/// A stable sort of all items is their stable merge too.
fn sorted(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by(|a, b| a.key.cmp(&b.key));
    items
}

fn segments(request: &Request, input: &Input) -> Vec<Item> {
    let items = input.items.concat();
    match request.number("segment-len") {
        Some(length) => items.chunks(length).flat_map(|segment| sorted(segment.to_vec())).collect(),
        None => input.offsets[0].windows(2).flat_map(|ends| sorted(items[ends[0]..ends[1]].to_vec())).collect(),
    }
}

fn batch(input: &Input) -> Vec<Item> {
    let run = |file: usize, run: usize| &input.items[file][input.offsets[file][run]..input.offsets[file][run + 1]];
    (0..input.offsets[0].len() - 1).flat_map(|i| sorted([run(0, i), run(1, i)].concat())).collect()
}

/// The first or the last of equal items, with their number.
fn one_of_equal(items: Vec<Item>, last: bool) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::new();
    for item in items {
        match kept.last_mut().filter(|other| other.key == item.key) {
            Some(other) if last => *other = Item { count: other.count + 1, ..item },
            Some(other) => other.count += 1,
            None => kept.push(item),
        }
    }
    kept
}

/// The result of the function of C++ of the same name. Items with equal keys come m times in the first input and n
/// times in the second.
fn set_operation(command: &str, input: &Input) -> Vec<Item> {
    let mut groups: BTreeMap<&[u8], [Vec<Item>; 2]> = BTreeMap::new();
    for (file, items) in input.items.iter().enumerate() {
        items.iter().for_each(|item| groups.entry(&item.key).or_default()[file].push(item.clone()));
    }
    let chosen = |[a, b]: [Vec<Item>; 2]| {
        let (m, n) = (a.len(), b.len());
        let (rest_of_a, rest_of_b) = (a[n.min(m)..].to_vec(), b[m.min(n)..].to_vec());
        match command {
            "union" => [a, rest_of_b].concat(),
            "intersect" => a[..m.min(n)].to_vec(),
            "difference" => rest_of_a,
            _ => [rest_of_a, rest_of_b].concat(),
        }
    };
    groups.into_values().flat_map(chosen).collect()
}

/// The files that hold these items.
fn written(request: &Request, items: Vec<Item>) -> Expected {
    let name = request.value("output").unwrap_or_default();
    let index_type = Some(extension(&name).0).filter(|name| !name.is_empty()).unwrap_or("u64");
    let index_size = if request.writes_indices() { size_of_type(index_type) } else { 0 };
    let bytes = items.iter().flat_map(|item| match index_size {
        0 => item.bytes.clone(),
        size => (item.index as u128).to_le_bytes()[..size].to_vec(),
    });
    let bytes = encoded(request, bytes.collect(), items.len(), request.writes_indices().then_some(index_type));
    let bytes = [request.header(), &bytes].concat();
    let mut files = BTreeMap::new();
    if let Some(name) = request.value("values-out") {
        let values = items.iter().flat_map(|item| item.value.clone()).collect::<Vec<u8>>();
        let values = if name.ends_with(".npy") { npy(&format!("'|V{VALUE}'"), items.len(), &values) } else { values };
        files.insert(name, values);
    }
    if let Some(name) = request.value("count") {
        files.insert(name.clone(), counts(request, &name, &items));
    }
    if name == "-" {
        return Expected::Output { files, stdout: bytes };
    }
    files.insert(name, bytes);
    Expected::Output { files, stdout: Vec::new() }
}

/// The file `name` with the numbers of equal keys.
fn counts(request: &Request, name: &str, items: &[Item]) -> Vec<u8> {
    let (key_type, order) = extension(name);
    let (key_type, big) =
        (if key_type.is_empty() { "u64" } else { key_type }, order == "be" || request.is("endian", "big"));
    let bytes = items.iter().flat_map(|item| item.count.to_le_bytes()[..size_of_type(key_type)].to_vec()).collect();
    let bytes = if big { swap(bytes, size_of_type(key_type)) } else { bytes };
    if name.ends_with(".npy") { npy(&dtype(key_type, big), items.len(), &bytes) } else { bytes }
}

/// The output of `count` numbers or records, with the header and the byte order of the request. `bytes` has the least
/// significant byte of a number first. `index_type` is the type of indices.
pub fn encoded(request: &Request, bytes: Vec<u8>, count: usize, index_type: Option<&str>) -> Vec<u8> {
    let is_npy = output_format(request) == "npy";
    if request.is_records() && index_type.is_none() {
        let dtype = if request.is(OPERANDS, "npy") { RECORD_DTYPE } else { "'|V12'" };
        return if is_npy { npy(dtype, count, &bytes) } else { bytes };
    }
    let name = index_type.unwrap_or(request.key_type());
    let big = output_is_big(request, is_npy && index_type.is_none());
    let bytes = if big { swap(bytes, size_of_type(name)) } else { bytes };
    if is_npy { npy(&dtype(name, big), count, &bytes) } else { bytes }
}

fn output_format(request: &Request) -> &str {
    let by_name = if request.given.get("output").is_some_and(|name| name.ends_with(".npy")) { "npy" } else { "raw" };
    request.given.get("format").map_or(by_name, String::as_str)
}

/// Whether numbers of the output begin with the most significant byte. By default, keys in an .npy file keep the byte
/// order of the input.
fn output_is_big(request: &Request, as_input: bool) -> bool {
    match (extension(&request.value("output").unwrap_or_default()).1, request.given.get("endian")) {
        ("be", _) => true,
        ("le", _) => false,
        (_, Some(order)) => order == "big",
        _ => as_input && request.inputs() > 0 && request.input_is_big(),
    }
}

/// The type and the byte order in a file's extension, or empty strings.
fn extension(name: &str) -> (&str, &str) {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let end = extension.find(|c: char| c.is_ascii_digit()).unwrap_or(extension.len());
    let digits = extension[end..].bytes().take_while(u8::is_ascii_digit).count();
    let (name, order) = extension.split_at(if digits > 0 { end + digits } else { 0 });
    if name.is_empty() { ("", "") } else { (name, order) }
}

/// The same numbers in the other byte order.
pub fn swap(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
    bytes.chunks_mut(size).for_each(<[u8]>::reverse);
    bytes
}

/// A NumPy file of `count` elements.
pub fn npy(dtype: &str, count: usize, data: &[u8]) -> Vec<u8> {
    crate::common::npy(dtype, &format!("({count},)"), data)
}
