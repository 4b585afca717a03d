//! Headers with random damage. Each header is an error of one line, or its description fits the file.

use super::arrow::tests::{file_of, written};
use super::arrow::{Column, Layout, Stream};
use super::npy::Purpose;
use super::{Format, Part, npy};
use crate::say::error::Failure;
use crate::spec::KeyType;
use std::path::Path;

/// Damaged headers of each kind.
const RUNS: usize = 3000;

/// A generator of random numbers, with its state.
struct Random(u64);

impl Random {
    /// Takes the seed from `GMERGE_TEST_SEED`, otherwise from the clock, and prints it.
    fn new() -> Self {
        let seed = std::env::var("GMERGE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64));
        println!("GMERGE_TEST_SEED={seed}");
        Self(seed)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end as u64) as usize
    }

    /// `good` with one to four changes. A change replaces a byte or an integer of 4 bytes, flips a bit, removes,
    /// repeats or moves a range, or cuts off the end.
    fn damage(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            let length = 1 + self.below((bytes.len() - at).min(24));
            match self.below(7) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => {
                    let number = [0, 1, u32::MAX, i32::MAX as u32, 1 << 20, self.below(1 << 16) as u32][self.below(6)];
                    bytes.iter_mut().skip(at).zip(number.to_le_bytes()).for_each(|(byte, new)| *byte = new);
                }
                3 => drop(bytes.drain(at..at + length)),
                4 => {
                    let part = bytes[at..at + length].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, part);
                }
                5 => bytes[at..at + length].reverse(),
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.is_empty() {
                return bytes;
            }
        }
        bytes
    }
}

/// Checks that a message is one line and names the file.
#[track_caller]
fn check_failure(failure: &Failure) {
    let message = failure.message().unwrap();
    assert!(message.starts_with("x: ") && message.len() < 500 && !message.contains('\n'), "{message}");
}

/// Checks that parts are inside a file of this length.
#[track_caller]
fn check_parts(parts: &[Part], key_type: KeyType, length: u64) {
    for Part { begin, length: part } in parts {
        assert!(part.is_multiple_of(key_type.size() as u64) && begin.checked_add(*part).unwrap() <= length);
    }
}

#[test]
fn damaged_npy_headers() {
    let mut random = Random::new();
    let descrs = [
        "'<u4'",
        "[('price', '<f8'), (('title', 'time'), '<i8', (3,)), ('', '|V4'), ('pos', [('x', '<f4')], (2,)), \
         ('n', '|S5')]",
        "[('größe', '>i2'), ('t', '<M8[ns]')]",
        "[('価格', '<f8'), ('\\u20ac', '<U2')]",
        "'<M8[25us/3]'",
        "'<U7'",
        "'>c16'",
    ];
    let mut valid = 0;
    for run in 0..RUNS {
        let (descr, shape) = (descrs[run % descrs.len()].to_owned(), vec![3; run % 3]);
        let rows = npy::Rows { descr, item: 1, shape, is_transposed: random.below(2) == 0 };
        let purpose = [Purpose::Values, Purpose::Keys, Purpose::Rows, Purpose::Columns][run % 4];
        let good = rows.header(1000, 3_usize.pow(run as u32 % 3));
        let bytes = random.damage(&good[npy::MAGIC.len()..]);
        match npy::Header::read(Path::new("x"), &bytes[..], purpose) {
            Ok(header) => {
                let npy::Header { dtype, count, row, begin, end, .. } = &header;
                assert!(*begin <= (npy::MAGIC.len() + bytes.len()) as u64);
                assert_eq!(end - begin, count * header.rows().bytes());
                assert!(purpose != Purpose::Keys || row.is_empty());
                let again = header.rows().header(*count, header.rows().bytes() as usize);
                let again = npy::Header::read(Path::new("x"), &again[npy::MAGIC.len()..], purpose).unwrap();
                assert_eq!((&again.dtype, again.count, &again.row), (dtype, *count, row));
                valid += 1;
            }
            Err(failure) => check_failure(&failure),
        }
    }
    assert!((1..RUNS).contains(&valid), "{valid}");
}

#[test]
fn damaged_arrow_files_and_streams() {
    let mut random = Random::new();
    let column = Column::new("keys", KeyType::I32).unwrap();
    for format in [Format::Arrow, Format::Arrows] {
        let good = written(format, &column, &[&[1; 40], &[2; 64], &[3; 4]]);
        let mut valid = 0;
        for _ in 0..RUNS {
            let bytes = random.damage(&good);
            let length = bytes.len() as u64;
            match Layout::read(Path::new("x"), &file_of(&bytes), length, format) {
                Ok(Layout { column, parts }) => {
                    check_parts(&parts, column.key_type(), length);
                    valid += 1;
                }
                Err(failure) => check_failure(&failure),
            }
            check_pipe(&bytes, format);
        }
        assert!((1..RUNS).contains(&valid), "{format:?} {valid}");
    }
}

/// Checks that reading a pipe gives no more keys than the pipe has bytes.
fn check_pipe(bytes: &[u8], format: Format) {
    let mut keys = vec![0; bytes.len() + 1];
    match Stream::begin(Path::new("x"), bytes, format).and_then(|mut stream| stream.read(&mut keys)) {
        Ok(count) => assert!(count <= bytes.len()),
        Err(failure) => check_failure(&failure),
    }
}
