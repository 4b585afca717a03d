//! Arrow files and streams, and tables in them and in Parquet files, written and read by Arrow's own library.

#[path = "../program/common.rs"]
#[expect(dead_code, reason = "the test `program` uses all of it")]
mod common;
mod oracle;
#[cfg(feature = "parquet")]
mod parquet_types;
mod tables;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use common::{Folder, Random, TestKey, assert_same, for_each_type};
use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::sync::Arc;

/// The content of an existing output, which must not change.
const OLD: &[u8] = b"old output";

fn data_type(name: &str) -> DataType {
    match name {
        "u8" => DataType::UInt8,
        "i8" => DataType::Int8,
        "u16" => DataType::UInt16,
        "i16" => DataType::Int16,
        "f16" => DataType::Float16,
        "u32" => DataType::UInt32,
        "i32" => DataType::Int32,
        "f32" => DataType::Float32,
        "u64" => DataType::UInt64,
        "i64" => DataType::Int64,
        "f64" => DataType::Float64,
        _ => panic!("Arrow has no {name}"),
    }
}

/// A column with a name and metadata of its own.
fn schema<K: TestKey>() -> SchemaRef {
    let metadata = |text: &str| HashMap::from([(text.to_owned(), "value".to_owned())]);
    let field = Field::new("id", data_type(K::NAME), true).with_metadata(metadata("of the field"));
    Arc::new(Schema::new_with_metadata(vec![field], metadata("of the schema")))
}

fn column<K: TestKey>(keys: &[K]) -> ArrayRef {
    let buffer = Buffer::from(bytemuck::cast_slice::<K, u8>(keys));
    make_array(ArrayData::builder(data_type(K::NAME)).len(keys.len()).add_buffer(buffer).build().unwrap())
}

fn file(schema: &SchemaRef, batches: Vec<Vec<ArrayRef>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, schema).unwrap();
    for columns in batches {
        writer.write(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// A stream of keys in batches of `batch`.
fn stream<K: TestKey>(keys: &[K], batch: usize) -> Vec<u8> {
    let schema = schema::<K>();
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
    for keys in keys.chunks(batch) {
        writer.write(&RecordBatch::try_new(schema.clone(), vec![column(keys)]).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// A file of keys in batches of `batch`.
fn arrow<K: TestKey>(keys: &[K], batch: usize) -> Vec<u8> {
    file(&schema::<K>(), keys.chunks(batch).map(|keys| vec![column(keys)]).collect())
}

/// The schema and the keys of a file.
fn read<K: TestKey>(bytes: &[u8]) -> (SchemaRef, Vec<K>) {
    let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
    (reader.schema(), keys_of(reader))
}

/// The schema and the keys of a stream.
fn read_stream<K: TestKey>(bytes: &[u8]) -> (SchemaRef, Vec<K>) {
    let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    (reader.schema(), keys_of(reader))
}

fn keys_of<K: TestKey>(batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>) -> Vec<K> {
    let mut keys = Vec::new();
    for batch in batches {
        let column = batch.unwrap().column(0).to_data();
        assert_eq!((column.data_type(), column.null_count()), (&data_type(K::NAME), 0));
        let bytes =
            &column.buffers()[0].as_slice()[column.offset() * size_of::<K>()..][..column.len() * size_of::<K>()];
        keys.extend(bytemuck::pod_collect_to_vec::<u8, K>(bytes));
    }
    keys
}

#[test]
fn all_types_in_any_number_of_batches() {
    let mut random = Random::new();
    for_each_type!(K => {
        if K::NAME != "u128" {
            for (size, batch) in [(0, 1), (1, 1), (5003, 10_000), (5003, 1000), (40, 1)] {
                every_way::<K>(&mut random, size, batch);
            }
        }
    });
}

fn every_way<K: TestKey>(random: &mut Random, size: usize, batch: usize) {
    let folder = Folder::new();
    let what = format!("{} {size} in batches of {batch}", K::NAME);
    let keys = random.keys::<K>(size);
    let mut sorted = keys.clone();
    sorted.sort_by(K::order);
    let get = |name: &str| fs::read(folder.path(name)).unwrap();
    fs::write(folder.path("keys.arrow"), arrow(&keys, batch)).unwrap();
    folder.run("sort keys.arrow -o sorted.arrow --engine cpu").succeeds();
    let (found_schema, found) = read::<K>(&get("sorted.arrow"));
    assert_same(&found, &sorted, &what);
    assert_eq!(found_schema, schema::<K>());
    folder.run("check sorted.arrow").succeeds();
    folder.run("sort keys.arrow -o sorted --engine cpu").succeeds();
    assert_same(&folder.read::<K>("sorted"), &sorted, &what);

    // Streams by name and through pipes, and a file through a pipe.
    let streamed = stream(&keys, batch);
    fs::write(folder.path("keys.arrows"), &streamed).unwrap();
    folder.run("sort keys.arrows -o sorted.arrows --engine cpu").succeeds();
    let (found_schema, found) = read_stream::<K>(&get("sorted.arrows"));
    assert_same(&found, &sorted, &what);
    assert_eq!(found_schema, schema::<K>());
    folder.run("check sorted.arrows").succeeds();
    for (input, format) in [(&streamed, "arrows"), (&streamed, "arrow"), (&get("keys.arrow"), "arrows")] {
        let run = folder.run_with_input(&format!("sort - -o - --format {format} --engine cpu"), input);
        run.succeeds();
        let (found_schema, found) =
            if format == "arrow" { read::<K>(run.stdout()) } else { read_stream::<K>(run.stdout()) };
        assert_same(&found, &sorted, &what);
        assert_eq!(found_schema, schema::<K>());
    }
    folder.run_with_input("check -", &get("sorted.arrows")).succeeds();

    // To and from other formats.
    folder.run("sort keys.arrow -o sorted.npy --endian big --engine cpu").succeeds();
    folder.run("sort sorted.npy -o other.arrow --engine cpu").succeeds();
    let (found_schema, found) = read::<K>(&get("other.arrow"));
    assert_same(&found, &sorted, &what);
    assert_eq!(*found_schema, Schema::new(vec![Field::new("keys", data_type(K::NAME), false)]));
    folder.run("merge sorted.arrow sorted.npy -o merged.arrow --engine cpu").succeeds();
    let mut twice = [&*sorted, &*sorted].concat();
    twice.sort_by(K::order);
    assert_same(&read::<K>(&get("merged.arrow")).1, &twice, &what);
}

#[test]
fn many_keys_and_standard_output() {
    let folder = Folder::new();
    folder.run("gen -n 5000001 -o keys.u64").succeeds();
    let mut keys = folder.read::<u64>("keys.u64");
    fs::write(folder.path("keys.arrow"), arrow(&keys, 700_001)).unwrap();
    keys.sort();
    let run = folder.run("sort keys.arrow -o - --format arrow");
    run.succeeds();
    assert_same(&read::<u64>(run.stdout()).1, &keys, "standard output");
    folder.run("sort keys.arrow -o sorted.feather").succeeds();
    let pipe =
        "gmerge sort sorted.feather -o - --format arrows | gmerge sort -r - -o - --format arrows | gmerge check -r -";
    folder.shell(pipe).succeeds();
    folder.shell("gmerge gen -n 100000000 --type u32 --format arrow -o - | head -c 10 > head").succeeds();

    fs::write(folder.path("keys"), arrow(&[2.5f64, -1.0], 1)).unwrap();
    folder.run("sort keys --argsort -o indices.arrow").succeeds();
    assert_eq!(read::<u64>(&fs::read(folder.path("indices.arrow")).unwrap()).1, [1, 0]);
}

#[test]
fn files_that_cannot_be_used() {
    let folder = Folder::new();
    let good = arrow(&[1u32, 2, 3], 2);
    let mut no_footer = good.clone();
    let length = no_footer.len();
    no_footer[length - 10..][..4].fill(0x7f);
    let mut torn = good.clone();
    torn[length - 60..length - 10].fill(0xff);
    let cases = [
        (good[..length - 5].to_vec(), "Arrow file, at byte "),
        (good[..6].to_vec(), "Arrow file, at byte 0: "),
        (no_footer, "tells a footer of 2139062143 bytes"),
        (torn, "Arrow file, at byte "),
        (b"12345678".to_vec(), "begins with \"123456\", expected \"ARROW1\" of an Arrow file, or an Arrow stream"),
        (b"FEA1\0\0\0\0".to_vec(), "is a Feather file of version 1, expected version 2"),
        ([stream(&[1u32], 1), stream(&[2u32], 1)].concat(), "bytes follow the end of the stream, expected one stream"),
        (stream(&[1u32, 2, 3], 2)[..300].to_vec(), "Arrow stream, at byte "),
    ];
    for (bytes, message) in cases {
        fs::write(folder.path("bad.arrow"), bytes).unwrap();
        fs::write(folder.path("out"), OLD).unwrap();
        folder.run("sort bad.arrow -o out --type u32").fails(2, &["bad.arrow: ", message]);
        folder.run("check bad.arrow --type u32").fails(2, &["bad.arrow: ", message]);
        assert_eq!(fs::read(folder.path("out")).unwrap(), OLD);
    }
    fs::write(folder.path("good.arrow"), &good).unwrap();
    folder.run("sort good.arrow -o out --type i32").fails(2, &["good.arrow: holds u32 keys by its header"]);
    let ends_early = &stream(&[1u32, 2, 3], 2)[..300];
    folder
        .run_with_input("sort - -o out", ends_early)
        .fails(2, &["-: Arrow stream: ", "Unexpected end of stream", "is it complete?"]);
    folder.run("gen -n 5 --type u128 -o out.arrow").fails(2, &["out.arrow: Arrow has no type for u128 keys"]);
    assert_eq!(fs::read(folder.path("out")).unwrap(), OLD);
}

#[test]
fn no_bytes_of_a_file_end_the_program_badly() {
    let mut random = Random::new();
    let folder = Folder::new();
    for (name, good) in [("bad.arrow", arrow(&[3u32, 1, 2], 2)), ("bad.arrows", stream(&[3u32, 1, 2], 2))] {
        for _ in 0..150 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.next() % 3 {
                let index = random.next() as usize % bytes.len();
                bytes[index] = random.next() as u8;
            }
            fs::write(folder.path(name), &bytes).unwrap();
            let run = folder.run(&format!("check {name}"));
            // The change may be in the padding or in a key.
            if run.code() != Some(0) {
                run.fails(run.code().unwrap(), &[&format!("{name}: ")]);
            }
        }
    }
}
