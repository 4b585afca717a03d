//! Tables of random columns, written and read by the libraries of Arrow and Parquet. The expected order is that of the
//! standard library's stable sort, by a comparison of values that this file has.

use crate::common::{Folder, Random};
use crate::oracle::{Cell, Nans, OrderBy, cells, order_of};
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit, UnionMode};
use arrow_select::concat::concat_batches;
use arrow_select::take::{take, take_record_batch};
use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::sync::Arc;

/// The formats that this build reads and writes.
const FORMATS: &[&str] = if cfg!(feature = "parquet") { &["arrow", "arrows", "parquet"] } else { &["arrow", "arrows"] };

/// A text for a number, one of some 40.
fn text(number: i64) -> String {
    let first = ["", "a", "a\0", "b"][number.rem_euclid(4) as usize];
    first.to_owned() + &"xy".repeat(number.unsigned_abs() as usize % 9)
}

/// A floating-point number for a number: zeros and NaNs of both signs are among them.
fn float(number: i64) -> f64 {
    match number {
        0 => -0.0,
        1 => 0.0,
        2 => f64::from_bits(0x7ff8_0000_0000_0000),
        -1 => f64::from_bits(0xfff8_0000_0000_0000),
        -2 => f64::from_bits(0x7ff8_0000_0000_0001),
        3 => f64::INFINITY,
        other => other as f64 / 4.0,
    }
}

/// A column of `rows` random values of a type, with or without nulls. Few values are distinct.
fn column(random: &mut Random, rows: usize, kind: usize) -> ArrayRef {
    let distinct = [2, 7, 1000][random.below(3)];
    let numbers: Vec<i64> = (0..rows).map(|_| random.below(distinct) as i64 - distinct as i64 / 2).collect();
    let share = [0, 0, 3, 30][random.below(4)];
    let valid: Vec<bool> = (0..rows).map(|_| random.below(100) >= share).collect();
    let array = if kind < OTHERS { values(&numbers, kind) } else { other_values(&numbers, kind) };
    let nulls = (share > 0).then(|| NullBuffer::from(valid));
    make_array(array.to_data().into_builder().nulls(nulls).build().unwrap())
}

/// The first of the kinds of columns that are not plain.
const OTHERS: usize = 16;

/// A column of plain values.
fn values(numbers: &[i64], kind: usize) -> ArrayRef {
    macro_rules! primitive {
        ($t:ty) => {
            Arc::new(numbers.iter().map(|&number| Some(number as _)).collect::<PrimitiveArray<$t>>()) as ArrayRef
        };
    }
    let texts = || numbers.iter().map(|&number| Some(text(number)));
    match kind {
        0 => primitive!(Int8Type),
        1 => primitive!(UInt16Type),
        2 => primitive!(Int32Type),
        3 => primitive!(Int64Type),
        4 => primitive!(UInt64Type),
        5 => Arc::new(numbers.iter().map(|&number| Some(float(number))).collect::<Float64Array>()),
        6 => Arc::new(numbers.iter().map(|&number| Some(float(number) as f32)).collect::<Float32Array>()),
        7 => Arc::new(numbers.iter().map(|&number| Some(number % 2 == 0)).collect::<BooleanArray>()),
        8 => Arc::new(texts().collect::<StringArray>()),
        9 => Arc::new(texts().collect::<LargeStringArray>()),
        10 => Arc::new(texts().collect::<StringViewArray>()),
        11 => Arc::new(texts().map(|text| text.map(String::into_bytes)).collect::<BinaryArray>()),
        12 => primitive!(Date32Type),
        13 => Arc::new(
            primitive!(TimestampMicrosecondType)
                .as_primitive::<TimestampMicrosecondType>()
                .clone()
                .with_timezone("UTC"),
        ),
        14 => primitive!(DurationMillisecondType),
        _ => primitive!(Time64NanosecondType),
    }
}

/// A column of decimals, of bytes of one length, with a dictionary, or of a nested type.
fn other_values(numbers: &[i64], kind: usize) -> ArrayRef {
    match kind {
        16 => {
            let numbers = numbers.iter().map(|&number| Some(i128::from(number)));
            Arc::new(numbers.collect::<Decimal128Array>().with_precision_and_scale(10, 2).unwrap())
        }
        17 => {
            let bytes: Vec<[u8; 3]> =
                numbers.iter().map(|number| [0, number.to_be_bytes()[6], number.to_be_bytes()[7]]).collect();
            Arc::new(
                FixedSizeBinaryArray::try_from_iter(bytes.iter())
                    .unwrap_or_else(|_| FixedSizeBinaryArray::new_null(3, 0)),
            )
        }
        18 => {
            let texts: Vec<String> = numbers.iter().map(|&number| text(number % 50)).collect();
            Arc::new(texts.iter().map(|text| Some(&**text)).collect::<DictionaryArray<Int8Type>>())
        }
        19 => {
            let mut lists = ListBuilder::new(Int32Builder::new());
            for &number in numbers {
                lists.append_value((0..number.rem_euclid(4)).map(|i| (i != 2).then_some(i as i32)));
            }
            Arc::new(lists.finish())
        }
        _ => {
            let fields = vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8View, true)];
            let columns = vec![values(numbers, 2), values(numbers, 10)];
            Arc::new(StructArray::new(fields.into(), columns, None))
        }
    }
}

/// Kinds of columns that can be keys here, and all kinds.
const KEYS: usize = 19;
const KINDS: usize = 21;

/// Batches of a table with one schema: key columns `k0`, `k1`, …, other columns, and the index of the row.
fn table(random: &mut Random, lengths: &[usize]) -> (SchemaRef, Vec<RecordBatch>) {
    let kinds: Vec<usize> = (0..6).map(|i| random.below(if i < 3 { KEYS } else { KINDS })).collect();
    let mut begin = 0;
    let mut batches: Vec<Vec<ArrayRef>> = Vec::new();
    for &rows in lengths {
        let mut columns: Vec<ArrayRef> = kinds.iter().map(|&kind| column(random, rows, kind)).collect();
        columns.push(Arc::new((begin..begin + rows as i64).map(Some).collect::<Int64Array>()));
        begin += rows as i64;
        batches.push(columns);
    }
    let name = |i: usize| if i < 3 { format!("k{i}") } else { format!("v{i}") };
    let metadata = |text: &str| HashMap::from([(text.to_owned(), "value".to_owned())]);
    let fields = batches[0]
        .iter()
        .enumerate()
        .map(|(i, array)| Field::new(name(i), array.data_type().clone(), true).with_metadata(metadata("of the field")));
    let schema = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata("of the schema")));
    let batches = batches.into_iter().map(|columns| RecordBatch::try_new(schema.clone(), columns).unwrap());
    (schema.clone(), batches.collect())
}

/// A table as a file in a format.
pub fn encoded(format: &str, codec: Option<CompressionType>, schema: &SchemaRef, batches: &[RecordBatch]) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut bytes = Vec::new();
    match format {
        "arrow" => {
            // A file has one dictionary for all batches.
            let whole = [concat_batches(schema, batches).unwrap()];
            let has_dictionary =
                schema.fields().iter().any(|field| matches!(field.data_type(), DataType::Dictionary(..)));
            let batches = if has_dictionary { &whole } else { batches };
            let mut writer = FileWriter::try_new_with_options(&mut bytes, schema, options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        "arrows" => {
            let mut writer = StreamWriter::try_new_with_options(&mut bytes, schema, options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        _ => write_parquet(&mut bytes, schema, batches),
    }
    bytes
}

#[cfg(feature = "parquet")]
fn write_parquet(bytes: &mut Vec<u8>, schema: &SchemaRef, batches: &[RecordBatch]) {
    let properties = parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(1000));
    let mut writer = parquet::arrow::ArrowWriter::try_new(bytes, schema.clone(), Some(properties.build())).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
}

#[cfg(feature = "parquet")]
fn read_parquet(bytes: &[u8]) -> (SchemaRef, Vec<RecordBatch>) {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    (builder.schema().clone(), builder.build().unwrap().collect::<Result<_, _>>().unwrap())
}

#[cfg(not(feature = "parquet"))]
fn write_parquet(_: &mut Vec<u8>, _: &SchemaRef, _: &[RecordBatch]) {}

#[cfg(not(feature = "parquet"))]
fn read_parquet(_: &[u8]) -> (SchemaRef, Vec<RecordBatch>) {
    unreachable!("this build has no Parquet")
}

/// The schema of a file and all of its rows, with values in place of dictionaries.
fn decoded(format: &str, bytes: &[u8]) -> (SchemaRef, RecordBatch) {
    let (schema, batches) = match format {
        "arrow" => {
            let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
            (reader.schema(), reader.collect::<Result<Vec<_>, _>>().unwrap())
        }
        "arrows" => {
            let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
            (reader.schema(), reader.collect::<Result<Vec<_>, _>>().unwrap())
        }
        _ => read_parquet(bytes),
    };
    // The indices of a joined dictionary may be too few, because the library keeps some values twice.
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, values) => Field::clone(field).with_data_type(values.as_ref().clone()),
        _ => Field::clone(field),
    });
    let plain_schema = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()));
    let batches = batches
        .iter()
        .map(|batch| RecordBatch::try_new(plain_schema.clone(), batch.columns().iter().map(plain).collect()).unwrap());
    let rows = concat_batches(&plain_schema, &batches.collect::<Vec<_>>()).unwrap();
    (schema, rows)
}

/// A column with values in place of a dictionary.
fn plain(column: &ArrayRef) -> ArrayRef {
    match column.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None).unwrap(),
        None => column.clone(),
    }
}

/// The order and the choice of rows that a command line asks for.
struct Request {
    by: Vec<OrderBy>,
    nans: Nans,
    unique: bool,
    top: Option<usize>,
    /// The flags of the order.
    order: String,
    /// All flags except those of files and formats.
    flags: String,
}

impl Request {
    /// A random request for a table of some `rows` rows.
    fn new(random: &mut Random, rows: usize) -> Self {
        let mut by = |column| OrderBy { column, descending: random.below(2) == 0, nulls_first: random.below(2) == 0 };
        let count = 1 + rows % 3;
        let mut by: Vec<OrderBy> = (0..count).map(&mut by).collect();
        let key = |by: &OrderBy| {
            let descending = if by.descending { ":desc" } else { "" };
            format!("k{}{descending}{}", by.column, if by.nulls_first { ":nulls-first" } else { "" })
        };
        let keys: Vec<String> = by.iter().map(key).collect();
        let mut order = format!(" --key {}", keys.join(if random.below(2) == 0 { "," } else { " --key " }));
        let nans = [Nans::Last, Nans::First, Nans::Total][random.below(3)];
        if nans != Nans::Last || random.below(2) == 0 {
            order += &format!(" --nan {}", ["last", "first", "total"][nans as usize]);
        }
        if random.below(3) == 0 {
            order += " -r";
            by.iter_mut().for_each(|by| by.descending = !by.descending);
        }
        let (unique, top) = [(true, None), (false, Some(random.below(rows + 2))), (false, None)][random.below(3)];
        let limit = top.map(|top| format!(" --top {top}")).unwrap_or_default();
        let memory = ["", " -S 1M -T .", " -S 1M -T . --batch-size 2", " -S 3M --parallel 1"][random.below(4)];
        let flags = format!("{order}{}{limit}{memory}", if unique { " -u" } else { "" });
        Self { by, nans, unique, top, order, flags }
    }

    /// The rows of the result, by the oracle.
    fn rows(&self, whole: &RecordBatch) -> RecordBatch {
        let mut rows = order_of(whole, &self.by, self.nans);
        if self.unique {
            let columns: Vec<Vec<Cell>> = self.by.iter().map(|by| cells(&plain(whole.column(by.column)))).collect();
            rows.dedup_by_key(|row| columns.iter().map(|cells| cells[*row].clone()).collect::<Vec<_>>());
        }
        rows.truncate(self.top.unwrap_or(usize::MAX));
        let indices: UInt64Array = rows.iter().map(|&row| Some(row as u64)).collect();
        take_record_batch(whole, &indices).unwrap()
    }

    /// Checks that `gmerge check` of a file with these rows tells whether they are in order.
    fn check(&self, folder: &Folder, file: &str, rows: &RecordBatch) {
        let run = folder.run(&format!("check {file}{}", self.order));
        match order_of(rows, &self.by, self.nans).is_sorted() {
            true => run.succeeds(),
            false => run.fails(1, &["disorder at index "]),
        }
    }
}

/// Merges the sorted parts of random tables, and compares the result with the sorted whole.
fn merge_case(random: &mut Random, rows: usize) {
    let folder = Folder::new();
    let output = FORMATS[random.below(FORMATS.len())];
    let lengths: Vec<usize> = (0..1 + random.below(5)).map(|_| random.below(rows + 1)).collect();
    let (schema, batches) = table(random, &lengths);
    let mut request = Request::new(random, rows);
    request.top = None;
    let mut sorted = Vec::new();
    let mut names = Vec::new();
    for (i, batch) in batches.iter().enumerate() {
        let rows: UInt64Array =
            order_of(batch, &request.by, request.nans).iter().map(|&row| Some(row as u64)).collect();
        sorted.push(take_record_batch(batch, &rows).unwrap());
        let format = FORMATS[random.below(FORMATS.len())];
        names.push(format!("in{i}.{format}"));
        // Some batches of a file are small.
        let step = 1 + random.below(rows.len().max(1));
        let parts = (0..rows.len()).step_by(step).map(|begin| sorted[i].slice(begin, step.min(rows.len() - begin)));
        fs::write(folder.path(&names[i]), encoded(format, None, &schema, &parts.collect::<Vec<_>>())).unwrap();
    }
    let (command, memory) = (["merge", "sort -m"][random.below(2)], ["", " -S 1M -T ."][random.below(2)]);
    let fan_in = ["", " --batch-size 2"][random.below(2)];
    let flags = [if request.unique { " -u" } else { "" }, ["", " --check"][random.below(2)]].concat();
    let line = format!("{command} {}{}{flags}{memory}{fan_in} -o out.{output}", names.join(" "), request.order);
    println!("{line} ({lengths:?} rows, {schema:?})");
    folder.run(&line).succeeds();
    let (_, found) = decoded(output, &fs::read(folder.path(&format!("out.{output}"))).unwrap());
    let expected = request.rows(&concat_batches(&schema, &sorted).unwrap());
    assert_eq!(found.num_rows(), expected.num_rows(), "{line}");
    for (i, (found, expected)) in found.columns().iter().zip(expected.columns()).enumerate().rev() {
        assert!(plain(found) == plain(expected), "{line}: column {i}");
    }
}

#[test]
fn sorted_tables_are_merged() {
    let mut random = Random::new();
    for i in 0..60 {
        merge_case(&mut random, [0, 1, 3, 100, 3000, 9000][i % 6]);
    }
}

/// A random command line on random tables, and its result.
fn case(random: &mut Random, rows: usize) {
    let folder = Folder::new();
    let (input, output) = (FORMATS[random.below(FORMATS.len())], FORMATS[random.below(FORMATS.len())]);
    let codecs = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];
    let codec = if input == "parquet" { None } else { codecs[random.below(3)] };
    let files = 1 + random.below(3);
    let lengths: Vec<usize> = (0..files + random.below(3)).map(|_| random.below(rows + 1)).collect();
    let (schema, batches) = table(random, &lengths);
    let (mut names, mut bytes) = (Vec::new(), Vec::new());
    for (i, batches) in batches.chunks(batches.len().div_ceil(files)).enumerate() {
        bytes = encoded(input, codec, &schema, batches);
        names.push(format!("in{i}.{input}"));
        fs::write(folder.path(&names[i]), &bytes).unwrap();
    }
    let request = Request::new(random, rows);
    let codecs = ["", " --compression none", " --compression zstd", " --compression lz4", " --compression gzip"];
    let codec = codecs[random.below(if output == "parquet" { 5 } else { 4 })];
    let (from_pipe, to_pipe) = (input != "parquet" && names.len() == 1 && random.below(2) == 0, random.below(4) == 0);
    let from = if from_pipe { "-".to_owned() } else { names.join(" ") };
    let to = if to_pipe { format!("- --format {output}") } else { format!("out.{output}") };
    let check = if to_pipe || random.below(2) == 0 { "" } else { " --check" };
    let command = format!("sort {from}{}{codec}{check} -o {to}", request.flags);
    println!("{command} ({lengths:?} rows, {schema:?})");
    let run = if from_pipe { folder.run_with_input(&command, &bytes) } else { folder.run(&command) };
    run.succeeds();
    let found = if to_pipe { run.stdout().to_vec() } else { fs::read(folder.path(&to)).unwrap() };

    let whole = concat_batches(&schema, &batches).unwrap();
    let expected = request.rows(&whole);
    let (found_schema, found) = decoded(output, &found);
    assert_eq!(found.num_rows(), expected.num_rows(), "{command}");
    assert_eq!(found_schema.metadata(), schema.metadata(), "{command}");
    for (found, expected) in found_schema.fields().iter().zip(schema.fields()) {
        assert_eq!((found.name(), found.data_type()), (expected.name(), expected.data_type()), "{command}");
        assert!(found.is_nullable() && found.metadata()["of the field"] == "value", "{command}");
    }
    for (i, (found, expected)) in found.columns().iter().zip(expected.columns()).enumerate().rev() {
        assert!(plain(found) == plain(expected), "{command}: column {i}");
    }
    if names.len() == 1 {
        request.check(&folder, &names[0], &whole);
    }
    if !to_pipe {
        request.check(&folder, &to, &expected);
    }
}

#[test]
fn random_tables_by_random_keys() {
    let mut random = Random::new();
    for i in 0..120 {
        case(&mut random, [0, 1, 3, 100, 3000, 9000][i % 6]);
    }
}

#[test]
fn batches_that_are_in_order_stay_so_and_are_counted() {
    let folder = Folder::new();
    let fields = vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8View, false)];
    let schema = Arc::new(Schema::new(fields));
    // Short strings are in their views, of 16 bytes.
    let texts = StringViewArray::from_iter_values((0..1000).map(|i| i.to_string()));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..1000)), Arc::new(texts)];
    let rows = RecordBatch::try_new(schema.clone(), columns).unwrap();
    for batches in 1..4 {
        let parts: Vec<RecordBatch> = (0..batches).map(|i| rows.slice(i * 250, 250)).collect();
        fs::write(folder.path("in.arrow"), encoded("arrow", None, &schema, &parts)).unwrap();
        for command in ["sort", "merge"] {
            let run = folder.run(&format!("{command} in.arrow --key a -o out.arrow --stats json"));
            assert_eq!(run.code(), Some(0), "{}", run.stderr());
            let (_, found) = decoded("arrow", &fs::read(folder.path("out.arrow")).unwrap());
            assert_eq!(found, concat_batches(&schema, &parts).unwrap());
            let stats: serde_json::Value = serde_json::from_str(&run.stderr()).unwrap();
            assert_eq!([&stats["keys"], &stats["bytes"]], [batches * 250, batches * 250 * (8 + 16)], "{stats}");
        }
    }
}

#[test]
fn tables_larger_than_memory_in_several_passes() {
    let mut random = Random::new();
    for _ in 0..3 {
        case(&mut random, 60_000);
    }
}

/// Two columns, `a` and `b`.
fn two() -> (SchemaRef, RecordBatch) {
    let fields = vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)];
    let schema = Arc::new(Schema::new(fields));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![3, 1, 2])), Arc::new(StringArray::from(vec![Some("x"), None, Some("y")]))];
    (schema.clone(), RecordBatch::try_new(schema, columns).unwrap())
}

/// Tables that do not fit each other, and a file of keys.
fn write_files(folder: &Folder) {
    let (schema, batch) = two();
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.path(name), bytes).unwrap();
    write("t.arrow", encoded("arrow", None, &schema, std::slice::from_ref(&batch)));
    let renamed =
        Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("c", DataType::Utf8, true)]));
    write(
        "renamed.arrow",
        encoded("arrow", None, &renamed, &[RecordBatch::try_new(renamed.clone(), batch.columns().to_vec()).unwrap()]),
    );
    let typed = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Timestamp(TimeUnit::Second, None), true),
    ]));
    write("typed.arrow", encoded("arrow", None, &typed, &[]));
    let one = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
    write("one.arrow", encoded("arrow", None, &one, &[]));
    // A union inside of a list.
    let union = [(0, Arc::new(Field::new("i", DataType::Int64, true)))].into_iter().collect();
    let item = Field::new("item", DataType::Union(union, UnionMode::Sparse), true);
    let list = Field::new("l", DataType::List(Arc::new(item)), true);
    let with_union = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false), list]));
    write("union.arrow", encoded("arrow", None, &with_union, &[]));
    folder.write("keys.u32", &[2u32, 1]);
}

#[test]
fn wrong_requests_are_refused_with_the_reason() {
    let folder = Folder::new();
    write_files(&folder);
    // The old output stays.
    let refused = |line: String, parts: &[&str]| {
        fs::write(folder.path("out.arrow"), "old").unwrap();
        folder.run(&line).fails(2, parts);
        assert_eq!(fs::read(folder.path("out.arrow")).unwrap(), b"old");
    };
    for (arguments, parts) in [
        (
            "t.arrow -o out.arrow",
            &["t.arrow: is a table of 2 columns: name those that order it with --key, of a, b"][..],
        ),
        ("t.arrow -o out.arrow --key c", &["t.arrow: has no column \"c\" for --key, expected one of a, b"]),
        ("t.arrow -o out.arrow --key a,b,a:desc", &["t.arrow: --key names column \"a\" twice, expected each once"]),
        ("t.arrow -o out.arrow --key 0:u32", &["t.arrow: is a table: --key names columns, expected one of a, b"]),
        ("t.arrow one.arrow -o out.arrow --key a", &["one.arrow: has 1 columns, expected 2 as in t.arrow"]),
        (
            "t.arrow renamed.arrow -o out.arrow --key a",
            &["renamed.arrow: has column \"c\" at 2, expected \"b\" as in t.arrow"],
        ),
        (
            "t.arrow typed.arrow -o out.arrow --key a",
            &["typed.arrow: has column \"b\" of type Timestamp(s), expected Utf8 as in t.arrow"],
        ),
        ("t.arrow keys.u32 -o out.arrow --key a", &["keys.u32: is no table"]),
        ("t.arrow -o out.u32 --key a", &["out.u32: is a raw file, expected .arrow, .arrows or .parquet"]),
        ("t.arrow -o out.npy --key a", &["out.npy: is a .npy file, expected .arrow"]),
        ("t.arrow -o out.csv --key a", &["out.csv: .csv is for CSV"]),
        ("t.arrow -o out.arrow --key a --compression snappy", &["out.arrow: ", "--compression lz4, zstd or none"]),
        ("keys.u32 -o out.u32 --compression lz4", &["--compression is for tables"]),
        ("t.arrow -o out.arrow --key a --type i64", &["--key and --type"]),
        ("t.arrow -o out.arrow --key a --endian big", &["t.arrow: is a table, and --endian"]),
        ("t.arrow -o out.arrow --key a --skip 8", &["t.arrow: is a table, and --skip"]),
        ("t.arrow -o out.arrow --argsort", &["t.arrow: ", "has 2 columns, expected one"]),
        ("t.arrow -o out.arrow --segment-len 1", &["t.arrow: ", "has 2 columns, expected one"]),
        ("t.arrow -o out.arrow --key a --engine gpu", &["t.arrow: is a table, and --engine gpu"]),
        ("t.arrow -o out.arrow --key a --device 0", &["t.arrow: is a table, and --device"]),
        ("t.arrow -o out.arrow --key a --record-size 8", &["t.arrow: is a table, and --record-size"]),
        (
            "keys.u32 -o out.u32 --record-size 4 --key 0:u32:nulls-first",
            &["--key 0:u32:nulls-first: records have no nulls"],
        ),
        ("t.arrow -o out.arrow --key a -T nowhere", &["nowhere"]),
    ] {
        refused(format!("sort {arguments}"), parts);
    }
    folder.run("union t.arrow t.arrow -o out.arrow").fails(2, &["t.arrow: ", "has 2 columns, expected one"]);
    for command in ["merge", "sort -m"] {
        for (arguments, parts) in [
            (
                "t.arrow t.arrow",
                &["t.arrow: is a table of 2 columns: name those that order it with --key, of a, b"][..],
            ),
            ("t.arrow one.arrow --key a", &["one.arrow: has 1 columns, expected 2 as in t.arrow"]),
            ("t.arrow renamed.arrow --key a", &["renamed.arrow: has column \"c\" at 2, expected \"b\" as in t.arrow"]),
            ("t.arrow typed.arrow --key a", &["typed.arrow: has column \"b\" of type Timestamp(s), expected Utf8"]),
            ("t.arrow t.arrow --key a", &["t.arrow: not sorted at index 1: ", "sort it first"]),
            ("t.arrow --key a --last -u", &["t.arrow: is a table, and --last"]),
            ("t.arrow --key a -u --count out.u64", &["t.arrow: is a table, and --count"]),
            ("t.arrow --key a --engine gpu", &["--key and --engine gpu"]),
            ("keys.u32 --compression lz4", &["--compression is for tables"]),
        ] {
            refused(format!("{command} {arguments} -o out.arrow"), parts);
        }
    }
    folder.run("merge t.arrow t.arrow --key a --kernel merge-path -o out.arrow").fails(2, &["--kernel"]);
    folder
        .run("sort t.arrow --key a --check -o - --format arrow")
        .fails(2, &["--check cannot read this --output back"]);
    if FORMATS.contains(&"parquet") {
        folder.run("sort union.arrow -o new.parquet --key a").fails(2, &["new.parquet: column \"l\" has a union"]);
    }
    folder.run("sort union.arrow -o new.arrow --key a").succeeds();
    folder.run("check t.arrow").fails(2, &["t.arrow: is a table of 2 columns"]);
    folder.run("check t.arrow --key a").fails(1, &["t.arrow: disorder at index 1"]);
    let silent = folder.run("sort t.arrow -C --key a");
    assert_eq!((silent.code(), &*silent.stderr()), (Some(1), ""));
    folder.run("sort t.arrow -c --key b:nulls-first").fails(1, &["t.arrow: disorder at index 1"]);
}

#[test]
fn damaged_files_are_errors_of_one_line() {
    let mut random = Random::new();
    let folder = Folder::new();
    let (schema, batches) = table(&mut random, &[50, 20]);
    for format in FORMATS {
        let codecs = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];
        for codec in codecs.into_iter().take(if *format == "parquet" { 1 } else { 3 }) {
            let good = encoded(format, codec, &schema, &batches);
            for i in 0..60 {
                let mut bytes = good.clone();
                match i % 3 {
                    0 => bytes.truncate(random.below(good.len())),
                    _ => {
                        for _ in 0..1 + random.below(3) {
                            let index = random.below(bytes.len());
                            bytes[index] = random.next() as u8;
                        }
                    }
                }
                let name = format!("bad.{format}");
                fs::write(folder.path(&name), &bytes).unwrap();
                let command = ["sort", "merge", "merge --assume-sorted"][i / 3 % 3];
                let run = folder.run(&format!("{command} {name} -o out.arrow --key k0,k1 --parallel 1"));
                if run.code() != Some(0) {
                    run.fails(2, &[]);
                    assert!(!folder.files().contains(&"out.arrow".to_owned()), "{}", run.what);
                } else {
                    fs::remove_file(folder.path("out.arrow")).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_part_of_a_table_beyond_the_memory_is_an_error_with_the_least_memory() {
    let (mut random, folder) = (Random::new(), Folder::new());
    let column = |i| (format!("c{i}"), Arc::new(UInt64Array::from_iter_values((0..300_000).map(|_| random.next()))));
    let batch =
        RecordBatch::try_from_iter((0..12).map(column).map(|(name, column)| (name, column as ArrayRef))).unwrap();
    fs::write(folder.path("t.arrow"), encoded("arrow", None, &batch.schema(), &[batch])).unwrap();
    // One batch of 28.8 MB, and one row group of 12 columns.
    for format in FORMATS.iter().filter(|format| **format != "arrows") {
        if *format != "arrow" {
            folder.run(&format!("sort t.arrow -o t.{format} --key c1")).succeeds();
        }
        let sort =
            |memory: u64| folder.run(&format!("sort t.{format} -o o.{format} --key c0 -S {memory}M -T . --check"));
        let refused = sort(4);
        refused.fails(2, &["bytes of it are read at once"]);
        let stderr = refused.stderr();
        let (_, least) = stderr.split_once("--memory ").unwrap();
        let least = least.split_once('M').unwrap().0.parse().unwrap();
        assert!((10..24).contains(&least), "{stderr}");
        sort(least - 1).fails(2, &[&format!("takes --memory {least}M or more")]);
        sort(least).succeeds();
        folder.run(&format!("check o.{format} --key c0")).succeeds();
    }
}
