//! Sorts of records by any fields, against a comparison of the fields one by one.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use merge_host::records::{self, Endian, Field, RecordKey};
use merge_host::{Engine, SortOrder};
use std::cmp::Ordering;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    Unsigned,
    Signed,
    Float,
    Bytes,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Part {
    offset: u8,
    size: u8,
    kind: Kind,
    is_big: bool,
    is_descending: bool,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    size: u8,
    parts: Vec<Part>,
    bytes: &'a [u8],
}

impl Part {
    fn field(self) -> Field {
        let (offset, size) = (self.offset.into(), self.size.into());
        let field = match self.kind {
            Kind::Unsigned => Field::unsigned(offset, size),
            Kind::Signed => Field::signed(offset, size),
            Kind::Float => Field::float(offset, size),
            Kind::Bytes => Field::bytes(offset, size),
        };
        let endian = if self.is_big { Endian::Big } else { Endian::Little };
        field.endian(endian).order(if self.is_descending { SortOrder::Descending } else { SortOrder::Ascending })
    }

    /// The order of this part of two records.
    fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let [a, b] = [a, b].map(|record| {
            let mut bytes = record[usize::from(self.offset)..][..usize::from(self.size)].to_vec();
            if !self.is_big && !matches!(self.kind, Kind::Bytes) {
                bytes.reverse();
            }
            bytes
        });
        let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| byte >> 7 == 1);
        let order = match (self.kind, is_negative(&a), is_negative(&b)) {
            (Kind::Signed | Kind::Float, true, false) => Ordering::Less,
            (Kind::Signed | Kind::Float, false, true) => Ordering::Greater,
            // Of two negative floats, the one with the greater magnitude is less.
            (Kind::Float, true, true) => b.cmp(&a),
            _ => a.cmp(&b),
        };
        if self.is_descending { order.reverse() } else { order }
    }
}

fuzz_target!(|input: Input| {
    let size = usize::from(input.size);
    let fields: Vec<Field> = input.parts.iter().map(|part| part.field()).collect();
    let key = RecordKey::new(&fields);
    let engine = Engine::cpu_with_threads(1).unwrap();
    let count = input.bytes.len().checked_div(size).unwrap_or(0);
    let bytes = &input.bytes[..count * size];
    let mut sorted = bytes.to_vec();
    let result = records::sort(&engine, &key, size, &mut sorted);
    if size == 0 || key.check(size).is_err() {
        assert!(result.is_err() || bytes.is_empty());
        assert_eq!(sorted, bytes);
        return;
    }
    result.unwrap();
    let mut expected: Vec<&[u8]> = bytes.chunks(size).collect();
    expected.sort_by(|a, b| {
        input.parts.iter().map(|part| part.compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    assert_eq!(sorted, expected.concat());
});
