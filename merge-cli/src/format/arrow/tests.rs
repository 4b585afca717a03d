//! Tests with files and streams of this program and of pyarrow.

use super::*;
use crate::format::{Format, PREFIX, ReadAt};
use crate::say::error::Failure;
use crate::spec::KeyType;
use arrow_ipc::*;
use clap::ValueEnum;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

const FORMATS: [Format; 2] = [Format::Arrow, Format::Arrows];
/// Output of pyarrow 26: a column "price" of two float32 batches, 2.5 and -1.0, then 0.5, with metadata of the field
/// and the schema.
const OF_PYARROW: [(Format, &[u8]); 2] = [
    (Format::Arrow, include_bytes!("testdata/price.arrow")),
    (Format::Arrows, include_bytes!("testdata/price.arrows")),
];

/// A regular file with these bytes.
pub fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

/// Reads a regular file: its column and its keys.
pub fn read_file(bytes: &[u8], format: Format) -> Result<(Column, Vec<u8>), Failure> {
    let file = file_of(bytes);
    let Layout { column, parts } = Layout::read(Path::new("x"), &file, bytes.len() as u64, format)?;
    let mut keys = Vec::new();
    for part in parts {
        let reader = ReadAt { file: &file, position: part.begin };
        assert_eq!(reader.take(part.length).read_to_end(&mut keys).unwrap() as u64, part.length);
    }
    Ok((column, keys))
}

/// Reads a pipe in steps of `step` bytes of keys: its column and its keys.
pub fn read_pipe(bytes: &[u8], format: Format, step: usize) -> Result<(Column, Vec<u8>), Failure> {
    let mut stream = Stream::begin(Path::new("x"), bytes, format)?;
    let (mut keys, mut part) = (Vec::new(), vec![0; step]);
    loop {
        let count = stream.read(&mut part)?;
        keys.extend(&part[..count]);
        if count < step {
            return Ok((stream.column().clone(), keys));
        }
    }
}

/// A file or a stream with the batches `batches`.
pub fn written(format: Format, column: &Column, batches: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&mut bytes, format, column).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn message_of<T>(result: Result<T, Failure>) -> String {
    result.err().map(|failure| failure.message().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn files_and_streams_read_as_they_were_written() {
    let keys: Vec<u8> = (0..160).collect();
    for column in KeyType::value_variants().iter().filter_map(|&key_type| Column::new("keys", key_type)) {
        for format in FORMATS {
            for batches in [vec![], vec![&keys[..]], vec![&keys[..8], &keys[8..16], &keys[16..]]] {
                let bytes = written(format, &column, &batches);
                let expected = (column.clone(), batches.concat());
                assert_eq!(is_stream(&bytes[..bytes.len().min(PREFIX)]), format == Format::Arrows);
                assert_eq!(bytes.starts_with(MAGIC), format == Format::Arrow);
                assert_eq!(read_file(&bytes, format).unwrap(), expected);
                for step in [1, 7, 1000] {
                    assert_eq!(read_pipe(&bytes, format, step).unwrap(), expected);
                }
            }
        }
    }
    assert!(Column::new("keys", KeyType::U128).is_none());
}

#[test]
fn files_and_streams_of_pyarrow() {
    let keys: Vec<u8> = [2.5f32, -1.0, 0.5].iter().flat_map(|key| key.to_le_bytes()).collect();
    for (format, bytes) in OF_PYARROW {
        assert_eq!(is_stream(&bytes[..bytes.len().min(PREFIX)]), format == Format::Arrows);
        let (column, found) = read_file(bytes, format).unwrap();
        assert_eq!((column.key_type(), &found), (KeyType::F32, &keys));
        let shown = format!("{column:?}");
        for text in ["price", "of the field", "of the schema"] {
            assert!(shown.contains(text), "no {text:?} in {shown}");
        }
        assert_eq!(read_pipe(bytes, format, 5).unwrap(), (column.clone(), keys.clone()));
        // Writing it again keeps the whole schema.
        for other in FORMATS {
            let written = written(other, &column, &[&keys]);
            assert_eq!(read_file(&written, other).unwrap(), (column.clone(), keys.clone()));
        }
    }
}

#[test]
fn a_file_in_a_pipe_may_have_its_first_message_aligned() {
    let column = Column::new("keys", KeyType::U8).unwrap();
    let file = written(Format::Arrow, &column, &[&[3, 1]]);
    for padding in [0, 8, 56] {
        let padded = [&file[..FILE_HEAD], &[0; 56][..padding], &file[FILE_HEAD..]].concat();
        assert_eq!(read_pipe(&padded, Format::Arrow, 9).unwrap(), (column.clone(), vec![3, 1]));
    }
    let zeros = [&file[..FILE_HEAD], &[0; 1000]].concat();
    assert!(message_of(read_pipe(&zeros, Format::Arrow, 9)).contains("at byte 64: expected a message"));
}

#[test]
fn bodies_are_aligned() {
    let column = Column::new("keys", KeyType::U8).unwrap();
    for format in FORMATS {
        let bytes = written(format, &column, &[&[1], &[2; 65], &[3; 64]]);
        let layout = Layout::read(Path::new("x"), &file_of(&bytes), bytes.len() as u64, format).unwrap();
        assert!(layout.parts.iter().all(|part| part.begin % 64 == 0), "{:?}", layout.parts);
        assert_eq!(layout.parts.iter().map(|part| part.length).collect::<Vec<_>>(), [1, 65, 64]);
    }
}

#[test]
fn what_ends_early_or_goes_on_is_an_error() {
    let column = Column::new("keys", KeyType::U16).unwrap();
    let keys = [7; 100];
    let [file, stream] = FORMATS.map(|format| written(format, &column, &[&keys[..50], &keys[50..]]));
    for length in 0..file.len() {
        let message = message_of(read_file(&file[..length], Format::Arrow));
        assert!(message.starts_with("x: Arrow file, at byte "), "{length}: {message}");
        let message = message_of(read_pipe(&file[..length], Format::Arrow, 9));
        assert!(message.starts_with("x: Arrow "), "{length}: {message}");
    }
    let longer = [&file[..], b"x"].concat();
    let message = message_of(read_pipe(&longer, Format::Arrow, 9));
    assert!(message.contains("ends with \"RROW1x\", expected a footer"), "{message}");
    let mut no_footer = file.clone();
    no_footer[file.len() - 10..][..4].fill(0x7f);
    let message = message_of(read_pipe(&no_footer, Format::Arrow, 9));
    let expected = format!("x: Arrow file, at byte {}: tells a footer of 2139062143 bytes", file.len() - 10);
    assert_eq!(message, expected);
    let batches: Vec<usize> = {
        let layout = Layout::read(Path::new("x"), &file_of(&stream), stream.len() as u64, Format::Arrows).unwrap();
        layout.parts.iter().map(|part| (part.begin + part.length).next_multiple_of(64) as usize).collect()
    };
    for length in 0..stream.len() {
        let results = [read_file(&stream[..length], Format::Arrows), read_pipe(&stream[..length], Format::Arrows, 9)];
        for result in results {
            // A stream may end after any message, without an end marker.
            let is_end = batches.contains(&length) || result.as_ref().is_ok_and(|(_, keys)| keys.is_empty());
            assert_eq!(result.is_ok(), is_end, "{length}");
            let message = message_of(result);
            assert!(is_end || message.starts_with("x: Arrow stream, at byte "), "{length}: {message}");
        }
    }
    let twice = [&stream[..], &stream].concat();
    let expected = format!("x: Arrow stream, at byte {}: bytes follow the end of the stream", stream.len());
    assert!(message_of(read_file(&twice, Format::Arrows)).starts_with(&expected));
    assert!(message_of(read_pipe(&twice, Format::Arrows, 9)).starts_with(&expected));
}

/// A stream of messages with these metadata.
fn stream_of(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for metadata in messages {
        bytes.extend(CONTINUATION);
        bytes.extend((metadata.len() as u32).to_le_bytes());
        bytes.extend(metadata);
    }
    bytes
}

/// The metadata of a message. `header` makes its table.
fn message(
    version: i16,
    kind: MessageHeader,
    body: i64,
    header: impl FnOnce(&mut FlatBufferBuilder) -> WIPOffset<UnionWIPOffset>,
) -> Vec<u8> {
    let mut buffer = FlatBufferBuilder::new();
    let args = MessageArgs {
        version: MetadataVersion(version),
        header_type: kind,
        header: Some(header(&mut buffer)),
        bodyLength: body,
        custom_metadata: None,
    };
    let message = Message::create(&mut buffer, &args);
    buffer.finish(message, None);
    buffer.finished_data().to_vec()
}

/// A header without fields.
fn empty(buffer: &mut FlatBufferBuilder) -> WIPOffset<UnionWIPOffset> {
    Null::create(buffer, &NullArgs {}).as_union_value()
}

/// The type of a column: its number in the union, the bits of an integer, and the precision of a floating-point number.
type TestType = (Type, i32, i16);
const INT32: TestType = (Type::Int, 32, 0);

/// A schema with fields of `types`, with a dictionary or without, and `pairs` times the same metadata with a value of
/// `length` bytes.
fn schema(endianness: i16, types: &[TestType], dictionary: bool, (pairs, length): (usize, usize)) -> Vec<u8> {
    message(4, MessageHeader::Schema, 0, |buffer| {
        let fields: Vec<_> = types
            .iter()
            .map(|&(number, bits, precision)| {
                let table = match number {
                    Type::Int => Int::create(buffer, &IntArgs { bitWidth: bits, is_signed: true }).as_union_value(),
                    Type::FloatingPoint => {
                        let args = FloatingPointArgs { precision: Precision(precision) };
                        FloatingPoint::create(buffer, &args).as_union_value()
                    }
                    _ => empty(buffer),
                };
                let int = dictionary.then(|| Int::create(buffer, &IntArgs { bitWidth: 8, is_signed: true }));
                let dictionary = int.map(|int| {
                    let args = DictionaryEncodingArgs { indexType: Some(int), ..DictionaryEncodingArgs::default() };
                    DictionaryEncoding::create(buffer, &args)
                });
                let name = Some(buffer.create_string("name"));
                let args =
                    FieldArgs { name, type_type: number, type_: Some(table), dictionary, ..FieldArgs::default() };
                Field::create(buffer, &args)
            })
            .collect();
        let fields = Some(buffer.create_vector(&fields));
        let value = Some(buffer.create_string(&"x".repeat(length)));
        let pair = KeyValue::create(buffer, &KeyValueArgs { key: value, value: None });
        let custom_metadata = Some(buffer.create_vector(&vec![pair; pairs]));
        let args = SchemaArgs { endianness: Endianness(endianness), fields, custom_metadata, features: None };
        Schema::create(buffer, &args).as_union_value()
    })
}

/// A record batch with these nodes and buffers, each of two numbers, and a codec.
fn batch(nodes: &[i64], buffers: &[i64], codec: Option<CompressionType>) -> Vec<u8> {
    message(4, MessageHeader::RecordBatch, 64, |buffer| {
        let pairs = |numbers: &[i64]| numbers.as_chunks().0.to_vec();
        let nodes: Vec<FieldNode> = pairs(nodes).iter().map(|&[length, nulls]| FieldNode::new(length, nulls)).collect();
        let buffers: Vec<Buffer> = pairs(buffers).iter().map(|&[offset, length]| Buffer::new(offset, length)).collect();
        let compression = codec.map(|codec| {
            BodyCompression::create(buffer, &BodyCompressionArgs { codec, ..BodyCompressionArgs::default() })
        });
        let args = RecordBatchArgs {
            length: nodes.first().map_or(0, FieldNode::length),
            nodes: Some(buffer.create_vector(&nodes)),
            buffers: Some(buffer.create_vector(&buffers)),
            compression,
            variadicBufferCounts: None,
        };
        RecordBatch::create(buffer, &args).as_union_value()
    })
}

#[test]
fn schemas_that_cannot_be_used() {
    let of = |types: &[TestType]| schema(0, types, false, (0, 0));
    for (metadata, expected) in [
        (schema(1, &[INT32], false, (0, 0)), "is big endian"),
        (of(&[]), "has 0 columns, expected one"),
        (of(&[INT32, INT32]), "has 2 columns, expected one"),
        (of(&[(Type::Int, 24, 0)]), "Int type with bit width of 24"),
        (of(&[(Type::FloatingPoint, 0, 3)]), "FloatingPoint type with precision of <UNKNOWN 3> not supported"),
        (of(&[(Type::Utf8, 0, 0)]), "column \"name\" is of type Utf8, expected numbers"),
        (of(&[(Type::Timestamp, 0, 0)]), "is of type Timestamp(s), expected numbers"),
        (of(&[(Type(99), 0, 0)]), "not supported"),
        (schema(0, &[INT32], true, (0, 0)), "is of type Dictionary(Int8, Int32), expected numbers"),
        (message(2, MessageHeader::Schema, 0, empty), "metadata version 3, expected 4 or 5"),
        (message(4, MessageHeader::RecordBatch, 0, empty), "a message of kind 3, expected a schema"),
        (vec![0; 8], "metadata version 1"),
        (vec![0xff; 8], "the metadata is damaged"),
    ] {
        let stream = stream_of(&[metadata]);
        for result in [read_file(&stream, Format::Arrows), read_pipe(&stream, Format::Arrows, 9)] {
            let message = message_of(result);
            assert!(message.starts_with("x: Arrow stream, at byte 0: ") && message.contains(expected), "{message}");
        }
    }
}

#[test]
fn batches_that_cannot_be_used() {
    let good = schema(0, &[INT32], false, (0, 0));
    for (metadata, expected) in [
        (
            batch(&[2, 0], &[0, 0, 0, 8], Some(CompressionType::LZ4_FRAME)),
            "is compressed with LZ4, expected numbers as they are",
        ),
        (batch(&[2, 0], &[0, 0, 0, 8], Some(CompressionType::ZSTD)), "is compressed with Zstandard"),
        (batch(&[2, 1], &[0, 0, 0, 8], None), "has 1 nulls, expected none"),
        (batch(&[2, 0, 2, 0], &[0, 0, 0, 8], None), "has 2 columns in 2 buffers, expected 1 in 2"),
        (batch(&[2, 0], &[0, 0], None), "has 1 columns in 1 buffers"),
        (batch(&[2, 0], &[0, 0, 0, 7], None), "ends before its 2 keys"),
        (batch(&[2, 0], &[0, 0, 60, 8], None), "ends before its 2 keys"),
        (batch(&[2, 0], &[0, 0, -4, 8], None), "ends before its 2 keys"),
        (batch(&[-2, 0], &[0, 0, 0, 8], None), "ends before its -2 keys"),
        (batch(&[i64::MAX, 0], &[0, 0, 0, i64::MAX], None), "ends before its 9223372036854775807 keys"),
        (message(4, MessageHeader::DictionaryBatch, 0, empty), "a dictionary, expected a record batch"),
        (message(4, MessageHeader::RecordBatch, -1, empty), "the metadata is damaged"),
        (good.clone(), "a second schema, expected a record batch"),
    ] {
        let stream = [stream_of(&[good.clone(), metadata]), vec![0; 64]].concat();
        for result in [read_file(&stream, Format::Arrows), read_pipe(&stream, Format::Arrows, 9)] {
            let message = message_of(result);
            let begin = format!("x: Arrow stream, at byte {}: ", 8 + good.len());
            assert!(message.starts_with(&begin) && message.contains(expected), "{expected}: {message}");
        }
    }
}

#[test]
fn lengths_beyond_the_limits_take_no_memory() {
    for length in [-1, i32::MIN, i32::MAX, MAX_METADATA as i32 + 1] {
        let stream = [&CONTINUATION[..], &length.to_le_bytes(), &[0; 64]].concat();
        let message = message_of(read_pipe(&stream, Format::Arrows, 9));
        assert!(message.contains(&format!("{length} bytes of metadata, expected at most 1048576")), "{message}");
    }
}

#[test]
fn metadata_that_overlaps_takes_no_more_memory_than_is_there() {
    let read = |pairs| message_of(read_pipe(&stream_of(&[schema(0, &[INT32], false, pairs)]), Format::Arrows, 9));
    assert_eq!(read((1, 1000)), "");
    // All pairs are one, so that their total length exceeds any message.
    let message = read((50_000, 1000));
    assert!(message.contains("the metadata is damaged"), "{message}");
}

#[test]
fn keys_are_not_taken_for_a_stream() {
    let is_stream = |keys: &[u32]| is_stream(&keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<_>>());
    let counting: Vec<u32> = (0..64).map(|i| u32::MAX.wrapping_add(8 * i)).collect();
    assert!(!is_stream(&counting) && !is_stream(&[u32::MAX; 64]) && !is_stream(&[u32::MAX, 16]) && !is_stream(&[]));
    let mut random = 1_u32;
    for _ in 0..100_000 {
        let mut next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random >> 24
        };
        let keys: Vec<u32> = [u32::MAX, 256].into_iter().chain((0..62).map(|_| next())).collect();
        assert!(!is_stream(&keys), "{keys:?}");
    }
}
