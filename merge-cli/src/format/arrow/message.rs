//! The metadata of a message: its kind, and the location of the numbers of a record batch in the body.

use super::flatbuffer::{Damaged, Table};
use super::{CONTINUATION, Column, MAX_METADATA, MESSAGE_HEAD};
use crate::format::Part;

/// `MetadataVersion` V4 and V5, which Arrow writes since version 0.8.
const VERSIONS: [i16; 2] = [3, 4];
/// Kinds of messages in the union `MessageHeader`.
const SCHEMA: u8 = 1;
const DICTIONARY_BATCH: u8 = 2;
const RECORD_BATCH: u8 = 3;

/// Whether a file with these first bytes is a stream: it begins with the message of a schema.
pub fn is_stream(first: &[u8]) -> bool {
    let Some((head, metadata)) = first.split_first_chunk::<MESSAGE_HEAD>() else { return false };
    let (continuation, length) = (&head[..4], i32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    let is_length = length > 0 && length % 8 == 0 && length as usize <= MAX_METADATA;
    let kind = || -> Result<u8, Damaged> {
        let message = Table::root(metadata)?;
        if VERSIONS.contains(&message.i16(0)?) { message.u8(1) } else { Err(Damaged) }
    };
    continuation == CONTINUATION && is_length && kind() == Ok(SCHEMA)
}

/// The location of the numbers of a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The numbers in the body of the message.
    pub numbers: Part,
    /// Bytes of the whole body.
    pub body: u64,
}

/// The kind of a message, its table, and the length of its body in bytes.
fn parse(metadata: &[u8]) -> Result<(u8, Table<'_>, u64), String> {
    let message = Table::root(metadata)?;
    let version = message.i16(0)?;
    if !VERSIONS.contains(&version) {
        return Err(format!("metadata version {}, expected 4 or 5", i32::from(version) + 1));
    }
    let body = u64::try_from(message.i64(3)?).map_err(|_| Damaged)?;
    Ok((message.u8(1)?, message.table(2)?.ok_or(Damaged)?, body))
}

/// The column of a schema's message, which has no body.
pub fn parse_schema(metadata: &[u8]) -> Result<Column, String> {
    match parse(metadata)? {
        (SCHEMA, schema, 0) => Column::parse(schema),
        (kind, ..) => Err(format!("a message of kind {kind}, expected a schema")),
    }
}

/// The location of the numbers in the message of a record batch. A number has `size` bytes.
pub fn parse_batch(metadata: &[u8], size: usize) -> Result<Batch, String> {
    let (batch, body) = match parse(metadata)? {
        (RECORD_BATCH, batch, body) => (batch, body),
        (SCHEMA, ..) => return Err("a second schema, expected a record batch: save one column".to_owned()),
        (DICTIONARY_BATCH, ..) => return Err("a dictionary, expected a record batch of numbers".to_owned()),
        (kind, ..) => return Err(format!("a message of kind {kind}, expected a record batch")),
    };
    if let Some(compression) = batch.table(3)? {
        let codec = match compression.u8(0)? {
            0 => "LZ4",
            1 => "Zstandard",
            _ => "an unknown codec",
        };
        return Err(format!(
            "the record batch is compressed with {codec}, expected numbers as they are: save it uncompressed"
        ));
    }
    // A node is a length and the number of nulls. A buffer is an offset in the body and a length. The first buffer is
    // the bitmap of nulls.
    let (nodes, buffers) = (i64s(batch.bytes(1, 16)?), i64s(batch.bytes(2, 16)?));
    let (&[[count, nulls]], &[_, [begin, length]]) = (&nodes[..], &buffers[..]) else {
        let (nodes, buffers) = (nodes.len(), buffers.len());
        return Err(format!("the record batch has {nodes} columns in {buffers} buffers, expected 1 in 2"));
    };
    if nulls != 0 {
        return Err(format!("the record batch has {nulls} nulls, expected none: drop or fill them"));
    }
    let unsigned = |number: i64| u64::try_from(number).ok();
    let numbers = || {
        let numbers = Part { begin: unsigned(begin)?, length: unsigned(count)?.checked_mul(size as u64)? };
        let is_inside = numbers.length <= unsigned(length)? && numbers.begin.checked_add(numbers.length)? <= body;
        (is_inside && batch.i64(0).ok()? == count).then_some(numbers)
    };
    let numbers = numbers().ok_or_else(|| format!("the record batch ends before its {count} keys"))?;
    Ok(Batch { numbers, body })
}

/// Pairs of numbers of 8 bytes.
fn i64s(bytes: &[u8]) -> Vec<[i64; 2]> {
    let number = |bytes: &[u8; 16], i: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[8 * i..][..8]);
        i64::from_le_bytes(number)
    };
    bytes.as_chunks().0.iter().map(|pair| [number(pair, 0), number(pair, 1)]).collect()
}
