//! The metadata of a message: its kind, and the location of the numbers of a record batch in the body.

use super::{CONTINUATION, Column, MAX_METADATA, MESSAGE_HEAD};
use crate::format::Part;
use arrow_ipc::{CompressionType, Message, MessageHeader, MetadataVersion, root_as_message_with_opts};
use flatbuffers::VerifierOptions;

/// The versions that Arrow writes since version 0.8.
const VERSIONS: [MetadataVersion; 2] = [MetadataVersion::V4, MetadataVersion::V5];
/// Parts of damaged metadata may overlap, and take more memory than their bytes: at most this many times `MAX_METADATA`
/// or `MAX_FOOTER`.
const OVERLAP: usize = 4;
/// The error of metadata with contents outside of it.
pub const DAMAGED: &str = "the metadata is damaged";

/// Whether a file with these first bytes is a stream: it begins with the message of a schema. The end of the message
/// may be missing.
pub fn is_stream(first: &[u8]) -> bool {
    let Some((head, metadata)) = first.split_first_chunk::<MESSAGE_HEAD>() else { return false };
    let (continuation, length) = (&head[..4], i32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    let is_length = length > 0 && length % 8 == 0 && length as usize <= MAX_METADATA;
    continuation == CONTINUATION && is_length && starts_schema(metadata) == Some(true)
}

/// Whether metadata that begin with these bytes are those of a schema. `None` if they are no message.
fn starts_schema(metadata: &[u8]) -> Option<bool> {
    let from = |offset: i64| metadata.get(usize::try_from(offset).ok()?..);
    let u16_at = |offset: i64| from(offset)?.first_chunk().map(|bytes| i64::from(u16::from_le_bytes(*bytes)));
    let i32_at = |offset: i64| from(offset)?.first_chunk().map(|bytes| i64::from(i32::from_le_bytes(*bytes)));
    let table = i32_at(0)?;
    let vtable = table - i32_at(table)?;
    // A field that the table does not have is at offset 0, or its offset is behind the end of the vtable.
    let size = u16_at(vtable)?;
    let field = |slot: u16| {
        let entry = i64::from(slot);
        let offset = if entry < size { u16_at(vtable + entry)? } else { 0 };
        (offset > 0).then_some(table + offset)
    };
    let version = u16_at(field(Message::VT_VERSION)?)?;
    let kind = *from(field(Message::VT_HEADER_TYPE)?)?.first()?;
    let is_version = VERSIONS.iter().any(|known| i64::from(known.0) == version);
    Some(is_version && kind == MessageHeader::Schema.0)
}

/// The location of the numbers of a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The numbers in the body of the message.
    pub numbers: Part,
    /// Bytes of the whole body.
    pub body: u64,
}

/// How metadata of at most `most` bytes are verified.
pub fn verifier(most: usize) -> VerifierOptions {
    VerifierOptions { max_apparent_size: OVERLAP * most, ..VerifierOptions::default() }
}

/// A message, and the length of its body in bytes.
fn parse(metadata: &[u8]) -> Result<(Message<'_>, u64), String> {
    let message = root_as_message_with_opts(&verifier(MAX_METADATA), metadata).map_err(|_| DAMAGED)?;
    let version = message.version();
    if !VERSIONS.contains(&version) {
        return Err(format!("metadata version {}, expected 4 or 5", i32::from(version.0) + 1));
    }
    let body = u64::try_from(message.bodyLength()).map_err(|_| DAMAGED)?;
    Ok((message, body))
}

/// The column of a schema's message, which has no body.
pub fn parse_schema(metadata: &[u8]) -> Result<Column, String> {
    let (message, body) = parse(metadata)?;
    match message.header_as_schema() {
        Some(schema) if body == 0 => Column::parse(schema),
        _ => Err(format!("a message of kind {}, expected a schema", message.header_type().0)),
    }
}

/// The location of the numbers in the message of a record batch. A number has `size` bytes.
pub fn parse_batch(metadata: &[u8], size: usize) -> Result<Batch, String> {
    let (message, body) = parse(metadata)?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch().ok_or(DAMAGED)?,
        MessageHeader::Schema => return Err("a second schema, expected a record batch: save one column".to_owned()),
        MessageHeader::DictionaryBatch => return Err("a dictionary, expected a record batch of numbers".to_owned()),
        kind => return Err(format!("a message of kind {}, expected a record batch", kind.0)),
    };
    if let Some(compression) = batch.compression() {
        let codec = match compression.codec() {
            CompressionType::LZ4_FRAME => "LZ4",
            CompressionType::ZSTD => "Zstandard",
            _ => "an unknown codec",
        };
        return Err(format!(
            "the record batch is compressed with {codec}, expected numbers as they are: save it uncompressed"
        ));
    }
    // The first buffer is the bitmap of nulls.
    let (nodes, buffers) = (batch.nodes().unwrap_or_default(), batch.buffers().unwrap_or_default());
    let (1, 2) = (nodes.len(), buffers.len()) else {
        let (nodes, buffers) = (nodes.len(), buffers.len());
        return Err(format!("the record batch has {nodes} columns in {buffers} buffers, expected 1 in 2"));
    };
    let (node, buffer) = (nodes.get(0), buffers.get(1));
    let (count, nulls) = (node.length(), node.null_count());
    if nulls != 0 {
        return Err(format!("the record batch has {nulls} nulls, expected none: drop or fill them"));
    }
    let unsigned = |number: i64| u64::try_from(number).ok();
    let numbers = || {
        let (begin, length) = (unsigned(buffer.offset())?, unsigned(count)?.checked_mul(size as u64)?);
        let is_inside = length <= unsigned(buffer.length())? && begin.checked_add(length)? <= body;
        (is_inside && batch.length() == count).then_some(Part { begin, length })
    };
    let numbers = numbers().ok_or_else(|| format!("the record batch ends before its {count} keys"))?;
    Ok(Batch { numbers, body })
}
