//! Headers that NumPy wrote, and invalid headers.

use super::*;
use crate::spec::Endian;
use crate::spec::KeyType;
use clap::ValueEnum;

/// Headers that NumPy 2.4 wrote for 5 items of a dtype. The description has the size of a record and, for each field,
/// its name, offset and kind.
const OF_NUMPY: [(&str, &[u8], &str); 6] = include!("testdata.in");

/// The bytes after [`MAGIC`] of a header with this text.
fn version(major: u8, text: &[u8]) -> Vec<u8> {
    let length = (text.len() as u32).to_le_bytes();
    [&[major, 0], &length[..if major == 1 { 2 } else { 4 }], text].concat()
}

fn read(bytes: &[u8]) -> std::result::Result<Header, String> {
    read_for(Purpose::Keys, bytes)
}

fn read_for(purpose: Purpose, bytes: &[u8]) -> std::result::Result<Header, String> {
    let failure = |failure: Failure| failure.message().unwrap().to_owned();
    Header::read(Path::new("x.npy"), bytes, purpose).map_err(failure)
}

/// The dtype of plain numbers.
fn plain(key_type: KeyType, endian: Endian) -> Dtype {
    Dtype::Number(Number::plain(key_type).unwrap(), endian)
}

/// The header of an array of one dimension.
fn header_of(dtype: Dtype, count: u64, begin: u64, end: u64) -> Header {
    Header { dtype, count, row: vec![], is_fortran: false, is_transposed: false, begin, end }
}

/// A header's text with this dtype and this shape.
fn with(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")
}

/// The structured dtype of a header with this `descr`.
#[track_caller]
fn record(descr: &str) -> Record {
    match read(&version(3, with(descr, "(5,)").as_bytes())).unwrap().dtype {
        Dtype::Record(record) => record,
        other => panic!("{descr} is {other:?}"),
    }
}

/// The fields of a record in one line.
fn show(record: &Record) -> String {
    let fields = record.fields.iter().map(|field| format!("{}@{}:{:?}", field.name, field.offset, field.kind));
    format!("{}: {}", record.size, fields.collect::<Vec<_>>().join(", "))
}

#[track_caller]
fn fails(text: &str, parts: &[&str]) {
    fails_for(Purpose::Keys, text, parts);
}

#[track_caller]
fn fails_for(purpose: Purpose, text: &str, parts: &[&str]) {
    let message = read_for(purpose, &version(1, text.as_bytes())).unwrap_err();
    for part in ["x.npy: "].iter().chain(parts) {
        assert!(message.contains(part), "no {part:?} in {message:?}");
    }
}

#[test]
fn headers_of_numpy_are_read_and_written_byte_for_byte() {
    for (descr, bytes, expected) in OF_NUMPY {
        let header = read(&bytes[MAGIC.len()..]).unwrap();
        assert_eq!((header.count, header.begin), (5, bytes.len() as u64), "{descr}");
        let text = match &header.dtype {
            Dtype::Number(number, endian) => format!("{} {endian:?}", number.key_type),
            Dtype::Record(record) => show(record),
            Dtype::Other(..) => panic!("{descr} has no order"),
        };
        assert_eq!((&*text, &*header.dtype.descr()), (expected, descr));
        assert_eq!(super::header(descr, vec![5], false), bytes, "{descr}");
        assert_eq!(super::header(descr, vec![u64::MAX], false).len(), bytes.len(), "{descr}");
    }
}

#[test]
fn a_header_of_numbers_reads_as_it_was_written() {
    for &key_type in KeyType::value_variants() {
        for endian in [Endian::Little, Endian::Big] {
            let Some(number) = Number::plain(key_type) else {
                assert_eq!(key_type.size(), 16);
                continue;
            };
            let descr = number.descr(endian);
            for count in [0, 1, 12_345_678_901] {
                let header = header(&descr, vec![count], false);
                assert_eq!((header.len(), &header[..6], header[127]), (128, MAGIC, b'\n'));
                let endian = if key_type.size() == 1 { Endian::Little } else { endian };
                let end = 128 + count * key_type.size() as u64;
                let dtype = plain(key_type, endian);
                assert_eq!(read(&header[6..]), Ok(header_of(dtype, count, 128, end)));
            }
        }
    }
}

#[test]
fn long_headers_have_version_2_and_are_aligned() {
    for length in (65_300..65_536).step_by(7) {
        let descr = format!("[('{}', '<u4')]", "n".repeat(length));
        let header = header(&descr, vec![3], false);
        assert_eq!((header.len() % 64, header[6] == 2), (0, header.len() > 1 << 16), "{length}");
        if header[6] == 1 {
            let Dtype::Record(record) = read(&header[6..]).unwrap().dtype else { panic!("a number") };
            assert_eq!(record.descr, descr);
        }
    }
}

#[test]
fn every_version_and_every_way_to_write_it() {
    let dtype = plain(KeyType::I16, Endian::Big);
    let expected = |begin| header_of(dtype.clone(), 5, begin, begin + 10);
    for text in [
        "{'descr': '>i2', 'fortran_order': False, 'shape': (5,), }\n",
        "{'shape': (5,), 'fortran_order': True, 'descr': '>i2'}",
        "  {\"shape\":( 5L , ) ,\n\"descr\":\">i2\",\t'fortran_order':False}     \n",
        "{'des\\x63r': '>i2', 'fortran_order': False, 'shape': (5,)}",
    ] {
        for (major, begin) in [(1, 10), (2, 12), (3, 12)] {
            assert_eq!(read(&version(major, text.as_bytes())), Ok(expected(begin + text.len() as u64)), "{text}");
        }
    }
    for (descr, key_type) in [("=f4", KeyType::F32), ("f8", KeyType::F64), ("|u1", KeyType::U8), (">i1", KeyType::I8)] {
        let header = read(&version(1, with(&format!("'{descr}'"), "(0,)").as_bytes())).unwrap();
        assert_eq!((header.dtype, header.count), (plain(key_type, Endian::Little), 0));
        assert_eq!(header.begin, header.end);
    }
}

#[test]
fn fields_of_records() {
    for (descr, expected) in [
        ("[('a', '<f8'), ('b', '>i4')]", "12: a@0:Number(F64, Little), b@8:Number(I32, Big)"),
        (
            "[('a', 'u1'), ('', '|V7'), ('b', '<f8'), ('', '|V8')]",
            "24: a@0:Number(U8, Little), b@8:Number(F64, Little)",
        ),
        ("[(('the title', 'a'), '|S5'), ('v', 'V3'), ('f', '|b1')]", "9: a@0:Bytes(5), v@5:Bytes(3), f@8:Bytes(1)"),
        (
            "[('a', '|u1', (2, 3)), ('s', 'S2', 4), ('b', '<u2', (1,))]",
            "16: a@0:Bytes(6), s@6:Bytes(8), b@14:Number(U16, Little)",
        ),
        ("[('t', '<M8[25us/3]'), ('d', '>m8')]", "16: t@0:Time(Little), d@8:Time(Big)"),
        (
            "[('a', '<U3'), ('z', 'S0'), ('b', '<i8', (3,))]",
            "36: a@0:Text(3, Little), z@12:Other(\"'S0'\"), b@12:Other(\"'<i8', (3,)\")",
        ),
        (
            "[('p', [('x', '<c8'), ('y', '<f16')], (2, )), ('b', 'i1')]",
            "49: p@0:Other(\"[('x', '<c8'), ('y', '<f16')], (2, )\"), b@48:Number(I8, Little)",
        ),
        (
            "[('\\u20ac \\'x\\'', '|i1', ()), ('é', '|u1', (0,)), ('e', 'u1')]",
            "2: € 'x'@0:Number(I8, Little), é@1:Other(\"'|u1', (0,)\"), e@1:Number(U8, Little)",
        ),
    ] {
        let record = record(descr);
        assert_eq!((show(&record), &*record.descr), (expected.to_owned(), descr));
    }
}

#[test]
fn strings_and_complex_numbers_are_records_without_fields() {
    for (descr, size, whole) in [
        ("'|S3'", 3, FieldKind::Bytes(3)),
        ("'|V12'", 12, FieldKind::Bytes(12)),
        ("'V1'", 1, FieldKind::Bytes(1)),
        ("'|V2'", 2, FieldKind::Bytes(2)),
        ("'<U2'", 8, FieldKind::Text(2, Endian::Little)),
        ("'>U1'", 4, FieldKind::Text(1, Endian::Big)),
        ("'<c8'", 8, FieldKind::Complex(KeyType::F32, Endian::Little)),
        ("'>c16'", 16, FieldKind::Complex(KeyType::F64, Endian::Big)),
    ] {
        let record = record(descr);
        assert_eq!((record.size, record.fields.len(), &*record.descr), (size, 0, descr));
        assert_eq!(record.whole, [whole], "{descr}");
    }
}

#[test]
fn dtypes_that_are_no_keys_and_no_records() {
    for shape in ["(3, 4)", "(1,1)", "()", "(2, 3, 4,)"] {
        fails(&with("'<u4'", shape), &["at byte 60: ", "dimensions", "expected 1: save it flat", shape]);
    }
    for descr in [
        "<c32",
        "<c4",
        "|b2",
        "<U0",
        "<U4194305",
        "<U+5",
        "|S+5",
        "|O",
        "<M8us",
        "<M8[a b]",
        "<f16",
        "<u16",
        "u",
        "",
        "<",
        "<<u4",
        "<u3",
    ] {
        let parts = ["at byte 20: dtype ", &quote(descr), "expected one of u1, i1, u2, i2, f2, u4"];
        fails(&with(&format!("'{descr}'"), "(3,)"), &parts);
    }
    for (descr, parts) in [
        ("[]", ["at byte 20: ", "0 bytes"]),
        ("[('a', 'S0')]", ["at byte 20: ", "0 bytes"]),
        ("[('a', '|O')]", ["at byte 27: ", "Python objects"]),
        ("[('a', [('b', '|O')])]", ["at byte 34: ", "Python objects"]),
        ("[('a', '<x4')]", ["at byte 27: ", "\"<x4\" is not known"]),
        ("[('a', '<u3')]", ["at byte 27: ", "is not known"]),
        ("[('a', '')]", ["at byte 27: ", "is not known"]),
        ("[('a', 'é1')]", ["at byte 27: ", "is not known"]),
        ("[('a', '<f8'), ('a', '<f8')]", ["at byte 20: ", "two fields have the name \"a\""]),
        ("['a']", ["at byte 21: ", "expected a field"]),
        ("[('a',)]", ["at byte 21: ", "expected a field"]),
        ("[(1, '<f8')]", ["at byte 22: ", "expected a field's name"]),
        ("[('a', 8)]", ["at byte 27: ", "expected a dtype"]),
        ("[('a', 'u1', ('b',))]", ["at byte 34: ", "expected a length"]),
        ("[('a', 'u1', (4294967296, 4294967296))]", ["at byte 33: ", "larger than 2 GiB"]),
        ("[('a', '<f8', (2147483648,))]", ["at byte 21: ", "larger than 2 GiB"]),
        ("[('a', 'S2147483647'), ('b', 'u1')]", ["at byte 43: ", "larger than 2 GiB"]),
        ("[('a', '<U18446744073709551615')]", ["at byte 21: ", "larger than 2 GiB"]),
        ("{'names': ['a'], 'formats': ['<f8']}", ["at byte 20: ", "expected a dtype"]),
        ("('<f8', (3,))", ["at byte 20: ", "expected a dtype"]),
    ] {
        fails(&with(descr, "(3,)"), &parts);
    }
}

#[test]
fn texts_that_are_no_headers() {
    fails(&with("'<u4'", "(18446744073709551615,)"), &["18446744073709551615 items of 4 bytes are more than a file"]);
    fails(&with("'<u4'", "(99999999999999999999,)"), &["at byte 61: expected an integer below 2^64"]);
    fails(&with("'<u4'", "(2305843009213693952,)"), &["more than a file"]);
    for (text, parts) in [
        ("", ["at byte 10: ", "expected a Python literal, found its end"]),
        ("[1, 2]", ["at byte 10: ", "expected a dict"]),
        ("{'descr': '<u4', 'fortran_order': False}", ["at byte 50: ", "'shape'"]),
        ("{'descr': '<u4', 'shape': (3,)}", ["at byte 41: ", "'fortran_order'"]),
        ("{'descr': '<u4', 'descr': '<u4'}", ["at byte 27: ", "the key \"'descr'\" is there twice"]),
        ("{'descr': '<u4', 'color': 3}", ["at byte 27: ", "expected no key \"'color'\""]),
        ("{3: '<u4'}", ["at byte 11: ", "expected no key \"3\""]),
        (&with("'<u4'", "(3)"), ["at byte 60: ", "a tuple of one length"]),
        (&with("'<u4'", "3"), ["at byte 60: ", "a tuple of one length"]),
        (&with("'<u4'", "('3',)"), ["at byte 61: ", "expected a length"]),
        (&with("'<u4'", "(-3,)"), ["at byte 61: ", "found \"-3,)}\""]),
        (&with("'<u4'", "(3,)").replace("False", "1"), ["at byte 44: ", "expected True or False"]),
        ("{'é': 3}", ["at byte 11: ", "expected no key \"'Ã©'\""]),
        ("{'descr': 'é', x", ["at byte 26: ", "found \"x\""]),
    ] {
        fails(text, &parts);
    }
    let message = read(&version(3, b"{'descr': '\xe9'")).unwrap_err();
    assert!(message.contains("at byte 23: expected UTF-8"), "{message}");
    let message = read(&version(3, "{'descr': 'é', x".as_bytes())).unwrap_err();
    assert!(message.contains("at byte 28: "), "{message}");
}

#[test]
fn headers_that_end_early_and_unknown_versions() {
    let whole = version(2, with("'<u4'", "(3,)").as_bytes());
    for length in 0..whole.len() {
        let message = read(&whole[..length]).unwrap_err();
        assert!(message.starts_with(&format!("x.npy: ends at byte {} in its .npy header", length + 6)), "{message}");
    }
    for (major, minor) in [(0, 0), (1, 1), (4, 0)] {
        let message = read(&[major, minor, 1, 0, b'{']).unwrap_err();
        assert!(message.contains(&format!("version {major}.{minor}, expected 1.0, 2.0 or 3.0")), "{message}");
    }
    let message = read(&[2, 0, 255, 255, 255, 255]).unwrap_err();
    assert!(message.contains("4294967295 bytes by byte 8, expected at most 65536"), "{message}");
}

#[test]
fn dates_durations_and_booleans_are_ordered_as_numbers() {
    for (descr, key_type, endian, name) in [
        ("|b1", KeyType::U8, Endian::Little, "b1"),
        ("<M8[ns]", KeyType::I64, Endian::Little, "M8[ns]"),
        (">m8[25us/3]", KeyType::I64, Endian::Big, "m8[25us/3]"),
        ("<M8", KeyType::I64, Endian::Little, "M8"),
    ] {
        let dtype = read(&version(1, with(&format!("'{descr}'"), "(3,)").as_bytes())).unwrap().dtype;
        let number = Number { key_type, name: name.to_owned() };
        assert!(!number.is_plain());
        assert_eq!((dtype.descr(), dtype), (format!("'{descr}'"), Dtype::Number(number, endian)));
    }
}

#[test]
fn values_are_rows_of_any_shape_and_dtype() {
    let read = |descr: &str, shape: &str| read_for(Purpose::Values, &version(1, with(descr, shape).as_bytes()));
    for (descr, item) in [
        ("'<f4'", 4),
        ("'|b1'", 1),
        ("'>M8[ns]'", 8),
        ("'<c16'", 16),
        ("'<U5'", 20),
        ("'|S3'", 3),
        ("'<f16'", 16),
        ("'|V7'", 7),
        ("[('a', '<f4'), ('b', '<U1')]", 8),
        ("'<U0'", 0),
    ] {
        for (shape, count, row) in [
            ("(3,)", 3, vec![]),
            ("(0,)", 0, vec![]),
            ("(2, 4)", 2, vec![4]),
            ("(5, 1, 2)", 5, vec![1, 2]),
            ("(2, 0)", 2, vec![0]),
        ] {
            let header = read(descr, shape).unwrap();
            let rows = Rows { descr: descr.to_owned(), item, shape: row.clone(), is_transposed: false };
            assert_eq!((header.rows(), header.count, &header.row), (rows.clone(), count, &row));
            assert_eq!(rows.bytes(), item as u64 * row.iter().product::<u64>());
            assert_eq!(header.end - header.begin, count * rows.bytes());
        }
    }
    assert_eq!(read("'f4'", "(3,)").unwrap().rows().descr, "'<f4'");
    fails_for(Purpose::Values, &with("'<f4'", "()"), &["0 dimensions", "expected 1 or more"]);
    fails_for(Purpose::Values, &with("'|O'", "(3,)"), &["dtype \"|O\" is Python objects"]);
    fails_for(Purpose::Values, &with("'<x4'", "(3,)"), &["dtype \"<x4\" is not known"]);
    fails_for(Purpose::Values, &with("'<f4'", "(3, 'x')"), &["expected a length"]);
    fails_for(Purpose::Values, &with("'<f4'", "(4294967296, 4294967296)"), &["more than a file can hold"]);
}

#[test]
fn the_order_and_the_columns_of_arrays() {
    let read = |purpose, shape: &str, order: &str| {
        let text = with("'<f4'", shape).replace("False", order);
        let Header { count, row, is_fortran, .. } = read_for(purpose, &version(1, text.as_bytes())).unwrap();
        (count, row, is_fortran)
    };
    for order in ["False", "True"] {
        // Both orders are the same.
        assert_eq!(read(Purpose::Values, "(3,)", order), (3, vec![], false));
        let is_fortran = order == "True";
        for purpose in [Purpose::Values, Purpose::Rows] {
            assert_eq!(read(purpose, "(3, 4, 5)", order), (3, vec![4, 5], is_fortran));
        }
        assert_eq!(read(Purpose::Columns, "(3, 4, 5)", order), (5, vec![4, 3], !is_fortran));
    }
    for purpose in [Purpose::Rows, Purpose::Columns] {
        fails_for(purpose, &with("'<f4'", "(3,)"), &["1 dimensions", "expected 2 or more"]);
    }
    // NumPy has space for the last length to grow, too.
    let rows = Rows { descr: "'<f4'".into(), item: 4, shape: vec![4, 3], is_transposed: true };
    let text = rows.header(5, 4 * 4 * 3);
    assert!(text.starts_with(b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4, 5), }  "));
    assert_eq!((text.len(), rows.header(u64::MAX, 48).len()), (128, 128));
}

#[test]
fn several_rows_at_an_index_are_a_dimension() {
    let shape_of = |shape: &[u64], size| Rows { shape: shape.to_vec(), ..Rows::of_bytes(4) }.shape_of(3, size);
    assert_eq!((shape_of(&[], 4), shape_of(&[], 16), shape_of(&[], 0)), (vec![3], vec![3, 4], vec![3]));
    assert_eq!((shape_of(&[2], 8), shape_of(&[2], 24), shape_of(&[2], 0)), (vec![3, 2], vec![3, 3, 2], vec![3, 2]));
    assert_eq!(shape_of(&[0], 0), [3, 0]);
    // Three numbers are a row.
    assert_eq!(shape_of(&[3], 4), [1, 3]);
    let text = header("'<f4'", vec![3, 4], false);
    assert!(text.starts_with(b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  "));
    assert_eq!((text.len(), header("'<f4'", vec![12_345_678, 4], false).len()), (128, 128));
}
