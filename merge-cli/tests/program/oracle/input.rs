//! The input files of a request: small, random, with many duplicates, and sorted if the command expects sorted files.

use super::model::{Item, npy, swap};
use super::samples::{OPERANDS, Request};
use crate::common::Random;
use std::collections::BTreeMap;
use std::iter;

/// Bytes of a value.
pub const VALUE: usize = 3;
/// The dtype of records in an .npy file.
pub const RECORD_DTYPE: &str = "[('a', '<u4'), ('b', '<f4'), ('c', '<i4')]";

/// The contents of the input files.
pub struct Input {
    /// The keys or records of each file.
    pub items: Vec<Vec<Item>>,
    /// The offsets of the runs or segments of each file, with the end of the last.
    pub offsets: Vec<Vec<usize>>,
}

impl Input {
    pub fn new(request: &Request) -> Self {
        let mut random = Random::of(request.seed);
        let pool = Pool::new(request, &mut random);
        let mut input = Self { items: Vec::new(), offsets: Vec::new() };
        let runs = 12 * (1 + random.below(5));
        let mut index = 0;
        for file in 0..request.inputs() {
            let offsets = offsets(request, file, runs, &mut random);
            let count = offsets[offsets.len() - 1];
            let mut items: Vec<Item> = (0..count).map(|i| pool.item(request, index + i, &mut random)).collect();
            index += count;
            if file == 0 || request.command != "search" {
                arrange(request, &mut items, &offsets, &mut random);
            }
            input.items.push(items);
            input.offsets.push(offsets);
        }
        input
    }

    pub fn count(&self) -> usize {
        self.items.iter().map(Vec::len).sum()
    }

    /// The files by their names.
    pub fn files(&self, request: &Request) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for (i, items) in self.items.iter().enumerate() {
            files.insert(request.input_name(i), self.keys(request, i));
            let rows: Vec<u8> = items.iter().flat_map(|item| item.value.clone()).collect();
            files.insert(format!("in{i}.values.npy"), npy("'|V3'", items.len(), &rows));
            files.insert(format!("in{i}.rows"), rows);
            let offsets: Vec<u8> = self.offsets[i].iter().flat_map(|&offset| (offset as u64).to_le_bytes()).collect();
            files.insert(format!("in{i}.offsets.npy"), npy("'<u8'", self.offsets[i].len(), &offsets));
            let order = if request.is("endian", "big") { u64::to_be_bytes } else { u64::to_le_bytes };
            let raw = self.offsets[i].iter().flat_map(|&offset| order(offset as u64)).collect();
            files.insert(format!("in{i}.offsets"), raw);
        }
        if request.has_values_of_all() {
            let rows: Vec<u8> = self.items.iter().flatten().flat_map(|item| item.value.clone()).collect();
            files.insert("in0.values.npy".to_owned(), npy("'|V3'", self.count(), &rows));
            files.insert("in0.rows".to_owned(), rows);
        }
        if request.has("files0-from") {
            let names: String = (0..request.inputs()).map(|i| request.input_name(i) + "\0").collect();
            files.insert("names0".to_owned(), names.into_bytes());
        }
        files
    }

    /// The bytes on standard input.
    pub fn stdin(&self, request: &Request) -> Vec<u8> {
        if request.is(OPERANDS, "stdin") { self.keys(request, 0) } else { Vec::new() }
    }

    fn keys(&self, request: &Request, file: usize) -> Vec<u8> {
        self.encoded(request, &self.items[file])
    }

    /// A file of these items, in the format of the inputs.
    pub fn encoded(&self, request: &Request, items: &[Item]) -> Vec<u8> {
        let bytes = items.iter().flat_map(|item| item.bytes.clone()).collect();
        let bytes = if request.input_is_big() { swap(bytes, request.key_size()) } else { bytes };
        match request.is(OPERANDS, "npy") {
            true => npy(&request.input_dtype(), items.len(), &bytes),
            false => [request.header(), &bytes].concat(),
        }
    }
}

/// Facts about the inputs of a request.
impl Request {
    /// Bytes of a key, or 1 where bytes have no order.
    pub fn key_size(&self) -> usize {
        if self.is_records() { 1 } else { size_of_type(self.key_type()) }
    }

    /// Whether the keys in the files begin with the most significant byte.
    pub fn input_is_big(&self) -> bool {
        if self.is(OPERANDS, "npy") { self.seed & 64 != 0 && !self.is_records() } else { self.is("endian", "big") }
    }

    /// NumPy's dtype of .npy inputs.
    pub fn input_dtype(&self) -> String {
        if self.is_records() { RECORD_DTYPE.to_owned() } else { dtype(self.key_type(), self.input_is_big()) }
    }

    /// The bytes before the keys or records of a raw file.
    pub fn header(&self) -> &'static [u8] {
        if self.has("skip") { b"16 bytes, a head" } else { b"" }
    }

    /// Whether the command reads sorted files.
    fn expects_sorted(&self) -> bool {
        !matches!(&*self.command, "sort" | "check") || self.has("merge")
    }

    fn only_checks(&self) -> bool {
        self.command == "check" || self.has_any(&["c", "C"])
    }
}

/// Bytes of a number of this type.
pub fn size_of_type(name: &str) -> usize {
    name.trim_start_matches(char::is_alphabetic).parse::<usize>().unwrap() / 8
}

/// NumPy's name for a type of numbers, as in a header.
pub fn dtype(name: &str, big: bool) -> String {
    let size = size_of_type(name);
    let sign = if size == 1 {
        '|'
    } else if big {
        '>'
    } else {
        '<'
    };
    let kind = if name == "bf16" { "V" } else { &name[..1] };
    format!("'{sign}{kind}{size}'")
}

/// The distinct keys or records from which files are drawn.
struct Pool(Vec<Vec<u8>>);

impl Pool {
    fn new(request: &Request, random: &mut Random) -> Self {
        if request.is_records() {
            // NaNs of both signs in the field of floats, in either byte order.
            let nans = [[1, 0, 0x80, 0x7f], [1, 0, 0x80, 0xff], [0xff, 0xff, 0xff, 0xff], [0x7f, 0x80, 0, 1]];
            let fields = nans.into_iter().map(Some).chain(iter::repeat_n(None, 40));
            let records = fields.map(|field| {
                let mut record = random.bytes(12);
                field.into_iter().for_each(|field| record[4..8].copy_from_slice(&field));
                record
            });
            return Self(records.collect());
        }
        let size = request.key_size();
        let mut keys: Vec<Vec<u8>> = (0..60).map(|_| random.bytes(size)).collect();
        for (rest, highest) in [(0, 0), (0xff, 0xff), (0, 0x80), (0xff, 0x7f)] {
            keys.push([vec![rest; size - 1], vec![highest]].concat());
        }
        let infinity: &[u8] = match request.key_type() {
            "f16" => &[0, 0x7c],
            "bf16" => &[0x80, 0x7f],
            "f32" => &[0, 0, 0x80, 0x7f],
            "f64" => &[0, 0, 0, 0, 0, 0, 0xf0, 0x7f],
            _ => return Self(keys),
        };
        for (quiet, sign) in [(0, 0), (1, 0), (0, 0x80), (1, 0x80)] {
            let mut key = infinity.to_vec();
            key[0] |= quiet;
            key[size - 1] |= sign;
            keys.push(key);
        }
        Self(keys)
    }

    fn item(&self, request: &Request, index: usize, random: &mut Random) -> Item {
        let mut bytes = self.0[random.below(self.0.len())].clone();
        if request.is_records() {
            // Records with equal keys differ.
            bytes[11] = index as u8;
            if random.below(4) == 0 {
                bytes[5] = random.next() as u8;
            }
        }
        let number = (index as u64 * 0x9e37) as u32;
        Item::new(request, bytes, number.to_le_bytes()[..VALUE].to_vec(), index)
    }
}

/// The offsets of the runs of a file. Only commands on runs use them.
fn offsets(request: &Request, file: usize, runs: usize, random: &mut Random) -> Vec<usize> {
    let d = request.number("d").unwrap_or(4);
    let a_len = request.number("a-len").unwrap_or(d / 2).min(d);
    let mut length = || match (&*request.command, request.has("offsets"), file) {
        ("batch", false, 0) => a_len,
        ("batch", false, _) => d - a_len,
        ("batch", true, _) => random.below(6),
        // All lengths of segments in samples divide the sum of these lengths.
        _ => [0, 6, 12][random.below(3)],
    };
    let mut end = 0;
    let ends = (0..runs).map(|_| {
        end += length();
        end
    });
    [0].into_iter().chain(ends).collect()
}

/// Brings items into an order that the command accepts, or sometimes into another order if the command only checks.
fn arrange(request: &Request, items: &mut Vec<Item>, offsets: &[usize], random: &mut Random) {
    if request.command == "batch" {
        let ends = offsets.windows(2);
        ends.for_each(|ends| items[ends[0]..ends[1]].sort_by(|a, b| a.key.cmp(&b.key)));
    } else if request.expects_sorted() {
        items.sort_by(|a, b| a.key.cmp(&b.key));
    } else if request.only_checks() {
        match random.below(4) {
            0 => {}
            1 => items.sort_by(|a, b| a.key.cmp(&b.key)),
            2 => {
                items.sort_by(|a, b| a.key.cmp(&b.key));
                items.dedup_by(|a, b| a.key == b.key);
            }
            _ => {
                items.sort_by(|a, b| a.key.cmp(&b.key));
                let half = items.len() / 2;
                items[half..].reverse();
            }
        }
    }
}
