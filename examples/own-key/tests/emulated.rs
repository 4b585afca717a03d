//! The kernels in the emulator, which needs no GPU.

use merge_host::emulated;
use own_key_kernels::{ByName, Date, Person};
use std::cmp::Ordering;

fn by_date(a: &Person, b: &Person) -> Ordering {
    (a.born.year, a.born.month, a.born.day).cmp(&(b.born.year, b.born.month, b.born.day))
}

fn by_name(a: &Person, b: &Person) -> Ordering {
    a.name.cmp(&b.name).then(by_date(a, b))
}

/// Persons of few dates and names.
fn persons(count: usize) -> Vec<Person> {
    let person = |i: usize| {
        let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let born = Date { year: (mixed % 7) as i16 - 3, month: (mixed / 7 % 12) as u8 + 1, day: (i % 5) as u8 + 1 };
        let name = std::array::from_fn(|at| if at == 15 { (i % 3) as u8 } else { b'a' + (mixed >> at) as u8 % 2 });
        Person { born, name }
    };
    (0..count).map(person).collect()
}

#[test]
fn a_sort_by_bits_is_that_of_the_standard_library() {
    for count in [0, 1, 5, 639, 640, 641, 3000] {
        let (mut sorted, mut expected) = (persons(count), persons(count));
        expected.sort_by(by_date);
        emulated::sort_by::<Person>(&mut sorted, 1);
        assert!(sorted == expected, "{count} persons");
    }
}

#[test]
fn a_sort_by_a_comparison_is_that_of_the_standard_library() {
    for count in [2, 640, 2000] {
        let mut expected: Vec<(Person, u32)> = persons(count).into_iter().zip(0..).collect();
        expected.sort_by(|a, b| by_name(&a.0, &b.0));
        let (mut sorted, mut indices) = (persons(count), (0..count as u32).collect::<Vec<_>>());
        emulated::sort_pairs_by::<ByName, u32>(&mut sorted, &mut indices, 2);
        assert!(sorted.into_iter().zip(indices).eq(expected), "{count} persons");
    }
}

#[test]
fn merges_are_stable() {
    let (mut a, mut b) = (persons(900), persons(700));
    a.sort_by(by_date);
    b.sort_by(by_date);
    let mut expected = [a.clone(), b.clone()].concat();
    expected.sort_by(by_date);
    let mut merged = vec![a[0]; expected.len()];
    emulated::merge_by::<Person>(&a, &b, &mut merged, 3);
    assert!(merged == expected);
}
