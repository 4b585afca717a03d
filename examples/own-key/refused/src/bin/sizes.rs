//! Items and values of sizes that the kernels do not move.

use kernels_gpu::own::{Compare, kernels};
use own_key_kernels::Person;

#[derive(Clone, Copy)]
struct OfBytes;

impl Compare for OfBytes {
    type Item = [u8; 7];

    fn is_before(a: &[u8; 7], b: &[u8; 7]) -> bool {
        a < b
    }
}

#[derive(Clone, Copy)]
struct ByYear;

impl Compare for ByYear {
    type Item = Person;

    fn is_before(a: &Person, b: &Person) -> bool {
        a.born.year < b.born.year
    }
}

kernels! {
    of_bytes: OfBytes;
    by_year: ByYear, values [u32; 17];
}

fn main() {}
