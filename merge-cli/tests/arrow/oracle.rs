//! The order of rows by comparison of values, written for these tests alone.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use std::cmp::Ordering;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    Number(i128),
    /// The bits of a number, and those of a wider type with the same value and order.
    Float(u64),
    Bytes(Vec<u8>),
}

/// Where NaNs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nans {
    Last,
    First,
    Total,
}

/// A column that orders rows.
#[derive(Clone, Copy, Debug)]
pub struct OrderBy {
    pub column: usize,
    pub descending: bool,
    pub nulls_first: bool,
}

/// The values of a column without a dictionary.
pub fn cells(column: &ArrayRef) -> Vec<Cell> {
    macro_rules! numbers {
        ($t:ty) => {
            column.as_primitive::<$t>().values().iter().map(|&number| Cell::Number(i128::from(number))).collect()
        };
    }
    macro_rules! bytes {
        ($array:expr) => {
            (0..column.len()).map(|i| Cell::Bytes(AsRef::<[u8]>::as_ref($array.value(i)).to_vec())).collect()
        };
    }
    let mut cells: Vec<Cell> = match column.data_type() {
        DataType::Int8 => numbers!(Int8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType),
        DataType::Duration(_) => numbers!(DurationMillisecondType),
        DataType::Time64(_) => numbers!(Time64NanosecondType),
        DataType::Decimal128(..) => numbers!(Decimal128Type),
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().values().iter().map(|number| Cell::Float(number.to_bits())).collect()
        }
        DataType::Float32 => {
            let widened = |number: &f32| {
                let (bits, sign) = (number.to_bits(), u64::from(number.to_bits() >> 31) << 63);
                // A NaN keeps its bits.
                let nan = || sign | 0x7ff0_0000_0000_0000 | u64::from(bits & 0x7f_ffff) << 29;
                Cell::Float(if number.is_nan() { nan() } else { f64::from(*number).to_bits() })
            };
            column.as_primitive::<Float32Type>().values().iter().map(widened).collect()
        }
        DataType::Boolean => (0..column.len()).map(|i| Cell::Number(column.as_boolean().value(i).into())).collect(),
        DataType::Utf8 => bytes!(column.as_string::<i32>()),
        DataType::LargeUtf8 => bytes!(column.as_string::<i64>()),
        DataType::Utf8View => bytes!(column.as_string_view()),
        DataType::Binary => bytes!(column.as_binary::<i32>()),
        DataType::FixedSizeBinary(_) => bytes!(column.as_fixed_size_binary()),
        other => panic!("no order of {other}"),
    };
    (0..column.len()).filter(|&i| column.is_null(i)).for_each(|i| cells[i] = Cell::Null);
    cells
}

/// The order of two values of a column.
fn compare(a: &Cell, b: &Cell, by: &OrderBy, nans: Nans) -> Ordering {
    let directed = |order: Ordering| if by.descending { order.reverse() } else { order };
    match (a, b) {
        (Cell::Null, Cell::Null) => Ordering::Equal,
        (Cell::Null, _) => {
            if by.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, Cell::Null) => compare(b, a, by, nans).reverse(),
        (Cell::Number(a), Cell::Number(b)) => directed(a.cmp(b)),
        (Cell::Bytes(a), Cell::Bytes(b)) => directed(a.cmp(b)),
        (Cell::Float(a), Cell::Float(b)) => {
            let (a, b) = (f64::from_bits(*a), f64::from_bits(*b));
            let of_nans = match nans {
                Nans::Last => a.is_nan().cmp(&b.is_nan()),
                Nans::First => b.is_nan().cmp(&a.is_nan()),
                Nans::Total => return directed(a.total_cmp(&b)),
            };
            let signs = if a.is_nan() && b.is_nan() {
                a.is_sign_negative().cmp(&b.is_sign_negative())
            } else {
                Ordering::Equal
            };
            of_nans.then(directed(signs.then(a.total_cmp(&b))))
        }
        _ => panic!("values of two types"),
    }
}

/// The rows of a batch in order.
pub fn order_of(batch: &RecordBatch, by: &[OrderBy], nans: Nans) -> Vec<usize> {
    let plain = |column: &ArrayRef| match column.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None).unwrap(),
        None => column.clone(),
    };
    let columns: Vec<Vec<Cell>> = by.iter().map(|by| cells(&plain(batch.column(by.column)))).collect();
    let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
    rows.sort_by(|&a, &b| {
        let orders = columns.iter().zip(by).map(|(cells, by)| compare(&cells[a], &cells[b], by, nans));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    rows
}
