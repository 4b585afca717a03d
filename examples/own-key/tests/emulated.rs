//! The kernels in the emulator, which needs no GPU.

use merge_host::{SetOperation, emulated};
use own_key_kernels::{ByName, Date, Person};
use std::cmp::Ordering;

fn by_date(a: &Person, b: &Person) -> Ordering {
    (a.born.year, a.born.month, a.born.day).cmp(&(b.born.year, b.born.month, b.born.day))
}

fn by_name(a: &Person, b: &Person) -> Ordering {
    a.name.cmp(&b.name).then(by_date(a, b))
}

/// Persons with few distinct dates and names.
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
    // The last number is sorted by the bits of keys.
    for count in [0, 1, 5, 639, 640, 641, 3000, 1 << 15] {
        let (mut sorted, mut expected) = (persons(count), persons(count));
        expected.sort_by(by_date);
        emulated::sort_by::<Person, ()>(&mut sorted, 1);
        assert!(sorted == expected, "{count} persons");
    }
}

#[test]
fn a_sort_by_a_comparison_is_that_of_the_standard_library() {
    for count in [2, 640, 2000] {
        let mut expected: Vec<(Person, u32)> = persons(count).into_iter().zip(0..).collect();
        expected.sort_by(|a, b| by_name(&a.0, &b.0));
        let (mut sorted, mut indices) = (persons(count), (0..count as u32).collect::<Vec<_>>());
        emulated::sort_by::<ByName, u32>((&mut sorted, &mut indices), 2);
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
    emulated::merge_by::<Person, ()>(&a, &b, &mut merged, 3);
    assert!(merged == expected);
}

#[test]
fn merges_of_pairs_of_runs_of_any_lengths_are_stable() {
    let (a_offsets, b_offsets) = ([0, 3, 3, 700], [0, 0, 900, 905]);
    let (mut a, mut b) = (persons(700), persons(905));
    let mut expected = Vec::new();
    for p in 0..3 {
        let (a, b) = (&mut a[a_offsets[p]..a_offsets[p + 1]], &mut b[b_offsets[p]..b_offsets[p + 1]]);
        a.sort_by(by_date);
        b.sort_by(by_date);
        let mut both = [a, b].concat();
        both.sort_by(by_date);
        expected.extend(both);
    }
    let mut merged = vec![a[0]; expected.len()];
    emulated::merge_ragged_by::<Person, ()>((&a, &a_offsets), (&b, &b_offsets), &mut merged, 4);
    assert!(merged == expected);
}

/// Set operations by date, in which many different persons are equal. The persons of `a` are kept, with their indices,
/// and the surplus of `b`.
#[test]
fn sets_are_those_of_their_definition() {
    let (mut a, mut b) = (persons(1200), persons(2000));
    a.sort_by(by_date);
    b.sort_by(by_date);
    b.drain(..300);
    let (of_a, of_b): (Vec<u32>, Vec<u32>) = ((0..1200).collect(), (1200..1200 + b.len() as u32).collect());
    for operation in SetOperation::ALL {
        let mut expected = Vec::new();
        let (mut left_a, mut left_b) = (&a[..], &b[..]);
        while let Some(date) = left_a.first().into_iter().chain(left_b.first()).min_by(|x, y| by_date(x, y)).copied() {
            let equal = |of: &[Person]| of.iter().take_while(|person| by_date(person, &date).is_eq()).count();
            let (m, n) = (equal(left_a), equal(left_b));
            let (first_a, first_b) = (a.len() - left_a.len(), a.len() + b.len() - left_b.len());
            let (from_a, from_b) = match operation {
                SetOperation::Union => (0..m, m.min(n)..n),
                SetOperation::Intersection => (0..m.min(n), 0..0),
                SetOperation::Difference => (m.min(n)..m, 0..0),
                SetOperation::SymmetricDifference => (m.min(n)..m, m.min(n)..n),
            };
            expected.extend(from_a.map(|i| (left_a[i], (first_a + i) as u32)));
            expected.extend(from_b.map(|i| (left_b[i], (first_b + i) as u32)));
            (left_a, left_b) = (&left_a[m..], &left_b[n..]);
        }
        let (items, values) = emulated::set_operation_by::<Person, u32>(operation, (&a, &of_a), (&b, &of_b), 5);
        assert!(items.into_iter().zip(values).eq(expected.iter().copied()), "{operation}");
        let (alone, _) = emulated::set_operation_by::<Person, ()>(operation, &a, &b, 6);
        assert!(alone.into_iter().eq(expected.iter().map(|(person, _)| *person)), "{operation} of persons alone");
    }
}
