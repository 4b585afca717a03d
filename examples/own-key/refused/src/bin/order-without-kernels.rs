//! An order that no line of `kernels!` names, and an order that no line names with these values.

use kernels_gpu::own::Compare;
use merge_host::emulated;
use own_key_kernels::{ByName, Person};

#[derive(Clone, Copy)]
struct ByYear;

impl Compare for ByYear {
    type Item = Person;

    fn is_before(a: &Person, b: &Person) -> bool {
        a.born.year < b.born.year
    }
}

fn main() {
    let mut persons: Vec<Person> = Vec::new();
    emulated::sort_by::<ByYear, ()>(&mut persons, 1);
    emulated::sort_by::<ByName, u64>((&mut persons, &mut Vec::new()), 1);
}
