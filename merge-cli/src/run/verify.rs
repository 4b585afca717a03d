//! `--check`: reads outputs back and compares them with the expected facts.

use super::checksum::Checksum;
use super::order::{Scan, describe, first_disorder};
use super::spilled::add_records;
use crate::coding::{Word, with_word};
use crate::file::{Input, Writer, Writers};
use crate::job::Items;
use crate::os::memory;
use crate::records::Records;
use crate::say::error::{Failure, Result};

/// Bytes of keys to hold in memory at once.
const BUFFER: u64 = 8 << 20;

/// The expected facts about outputs.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The number of keys.
    pub count: u64,
    /// The [`Checksum`] of keys and values.
    pub checksum: u64,
    /// Whether all keys are distinct.
    pub unique: bool,
    /// Bytes of a value.
    pub width: usize,
}

/// An error unless the written keys and values, or records, are as expected, and the numbers of equal keys add up to
/// `read`, the number of items that were read.
pub fn verify<W: Word>(items: &Items, writers: &Writers, expected: Expected, read: u64) -> Result<()> {
    match items {
        Items::Keys(_) => verify_keys::<W>(writers, expected)?,
        Items::Records(records) => verify_records(records, &writers.keys, expected)?,
    }
    let Some((counts, limit)) = &writers.counts else { return Ok(()) };
    with_word!(limit.key_type.size(), N => verify_counts::<N>(counts, expected.count, read))
}

/// An error unless there are `count` numbers, which add up to `sum`.
fn verify_counts<N: Word>(writer: &Writer, count: u64, sum: u64) -> Result<()> {
    let mut input = writer.read_back()?;
    let mut part = memory::zeroed::<N>((BUFFER / N::SIZE as u64).clamp(1, count.max(1)), "a part of the output")?;
    let (mut found, mut done) = (0, 0);
    loop {
        let read = input.read(&mut part)?;
        found += part[..read].iter().map(|number| number.widen()).sum::<u128>();
        done += read as u64;
        if read < part.len() || read == 0 {
            break;
        }
    }
    if done != count || found != sum.into() {
        let message = format!("{done} numbers add up to {found}, expected {count} that add up to {sum}");
        return Err(failure(&input, message));
    }
    Ok(())
}

/// An error unless the written records are as expected.
fn verify_records(records: &Records, writer: &Writer, expected: Expected) -> Result<()> {
    let size = records.layout.size;
    let first = |bytes: &[u8]| records.key.first_disorder(size, bytes, expected.unique);
    let show = |_: &Input, _, _: [&[u8]; 2]| ": its key is less than the one before it, or equal".to_owned();
    let add = |checksum: &Checksum, bytes: &[u8], _: &[u8], _| add_records(checksum, bytes, size);
    verify_items(size, writer, None, expected, first, show, add)
}

/// An error unless the written keys and values are as expected.
fn verify_keys<W: Word>(writers: &Writers, expected: Expected) -> Result<()> {
    let show = |input: &Input, index: u64, [before, after]: [&[W]; 2]| {
        format!(", offset {}: {}", input.offset_of::<W>(index), describe(input, [before[0], after[0]]))
    };
    let add = |checksum: &Checksum, keys: &[W], values: &[u8], width| checksum.add(keys, values, width);
    let Writers { keys, values, counts: _ } = writers;
    verify_items(1, keys, values.as_ref(), expected, |keys| first_disorder(keys, expected.unique), show, add)
}

/// [`verify_keys`] for items of `size` words. `first` finds the first item out of order, `show` describes it by its
/// predecessor and itself, and `add` adds items with their values to a checksum.
fn verify_items<W: Word>(
    size: usize,
    keys: &Writer,
    values: Option<&Writer>,
    expected: Expected,
    first: impl Fn(&[W]) -> Option<usize>,
    show: impl Fn(&Input, u64, [&[W]; 2]) -> String,
    add: impl Fn(&Checksum, &[W], &[u8], usize),
) -> Result<()> {
    let mut keys = keys.read_back()?;
    let mut values = values.map(Writer::read_back).transpose()?;
    let Expected { count, checksum, unique: _, width } = expected;
    let bytes = size * W::SIZE;
    let lengths = [Some((&keys, bytes)), values.as_ref().map(|values| (values, width))];
    for (input, size) in lengths.into_iter().flatten() {
        let (found, expected) = (input.length().unwrap_or(0), count * size as u64);
        if found != expected {
            return Err(failure(input, format!("{found} bytes were written, expected {expected}")));
        }
    }
    let width = if values.is_some() { width } else { 0 };
    let capacity = (BUFFER / (bytes + width) as u64).clamp(1, count.max(1));
    let mut scan = Scan::new(capacity, size, "a part of the output")?;
    let mut payload = memory::zeroed::<u8>(capacity * width as u64, "a part of the output's values")?;
    let (mut done, found) = (0, Checksum::default());
    while done < count {
        let read = keys.read(scan.part())?;
        let payload = &mut payload[..read / size * width];
        if let Some(values) = &mut values {
            values.read(payload)?;
        }
        add(&found, &scan.part()[..read], payload, width);
        if let Some((index, pair)) = scan.first_disorder(read, &first) {
            let message = format!("the output is wrong at index {index}{}", show(&keys, index, pair));
            return Err(failure(&keys, message));
        }
        done += (read / size) as u64;
    }
    let found = found.get();
    if found != checksum {
        let message = format!("the checksum of the output is {found:016x}, expected {checksum:016x} of the input");
        return Err(failure(&keys, message));
    }
    Ok(())
}

fn failure(output: &Input, message: String) -> Failure {
    Failure::file(output.path(), format!("--check: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::{Coding, KeyOrder};
    use crate::file::{Form, Output, Target};
    use crate::format::Container;
    use crate::format::npy::{Number, Rows};
    use crate::spec::{Endian, KeyType};
    use merge_host::SortOrder;

    /// Writes `written` as descending big-endian keys with values of 3 bytes, and verifies the output against `meant`.
    fn check(written: &[u32], meant: &[u32], unique: bool) -> std::result::Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let order = KeyOrder { direction: SortOrder::Descending, ..KeyOrder::TOTAL };
        let coding = Coding { order, ..Coding::total(KeyType::U32, Endian::Big) };
        let rows = Rows::of_numbers(&Number::plain(KeyType::U32).unwrap(), Endian::Big);
        let form = Form { container: Container::Npy(rows), coding, size: 4 };
        let mut keys = Output::new(Target::find(&folder.path().join("out"), false).unwrap(), form).begin().unwrap();
        let mut values =
            Output::new(Target::find(&folder.path().join("values"), false).unwrap(), Form::raw(3)).begin().unwrap();
        let payload = |keys: &[u32]| keys.iter().flat_map(|key| [*key as u8, 7, 9]).collect::<Vec<u8>>();
        keys.write(written).unwrap();
        values.write(&payload(written)).unwrap();
        let checksum = Checksum::default();
        checksum.add(meant, &payload(meant), 3);
        let expected = Expected { count: meant.len() as u64, checksum: checksum.get(), unique, width: 3 };
        let result = verify_keys::<u32>(&Writers { values: Some(values), ..Writers::from(keys) }, expected);
        result.map_err(|failure| failure.message().unwrap().rsplit_once("out: --check: ").unwrap().1.to_owned())
    }

    #[test]
    fn order_count_and_checksum_are_compared() {
        assert_eq!(check(&[1, 2, 2, 3], &[3, 2, 2, 1], false), Ok(()));
        assert_eq!(check(&[], &[], true), Ok(()));
        let shown = |key: u32| (!key).to_string();
        let message = |error: std::result::Result<(), String>| error.unwrap_err();
        let wrong = format!("the output is wrong at index 2, offset 136: {} after {}", shown(1), shown(2));
        assert_eq!(message(check(&[1, 2, 1, 3], &[1, 1, 2, 3], false)), wrong);
        let twice = format!("the output is wrong at index 2, offset 136: {} after {}", shown(2), shown(2));
        assert_eq!(message(check(&[1, 2, 2, 3], &[1, 2, 2, 3], true)), twice);
        assert_eq!(message(check(&[1, 2, 2], &[1, 2, 2, 3], false)), "12 bytes were written, expected 16");
        // One key is lost, and another key is there twice.
        assert!(message(check(&[1, 2, 2, 3], &[1, 2, 3, 3], false)).starts_with("the checksum of the output is "));
    }

    #[test]
    fn parts_are_compared_with_each_other() {
        let count = BUFFER as u32 / 7 * 2 + 5;
        let mut keys: Vec<u32> = (0..count).collect();
        assert_eq!(check(&keys, &keys, true), Ok(()));
        let edge = BUFFER as usize / 7;
        keys.swap(edge - 1, edge);
        assert!(check(&keys, &keys, true).unwrap_err().contains(&format!("at index {edge}, ")));
    }

    #[test]
    fn numbers_of_equal_keys_have_their_sum() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::find(&folder.path().join("counts"), false).unwrap();
        let mut counts = Output::new(target, Form::raw(4)).begin().unwrap();
        counts.write(&[1u32, 2, 3]).unwrap();
        let is_right = |count, sum| verify_counts::<u32>(&counts, count, sum).is_ok();
        assert_eq!([is_right(3, 6), is_right(3, 7), is_right(2, 6)], [true, false, false]);
    }
}
