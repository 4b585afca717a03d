//! Sorts persons by date of birth and by name on the GPU, merges them, and combines sets. Compares the results with the
//! standard library's sort.
//!
//! ```text
//! own-key [COUNT]
//! ```

use merge_host::{Error, Gpu, SetOperation, Stream, workspace};
use own_key_kernels::{ByName, Date, Person};
use std::cmp::Ordering;
use std::process::ExitCode;

/// The kernels, as the build script has compiled them.
const KERNELS: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

fn main() -> ExitCode {
    let count = match std::env::args().nth(1).map(|count| count.parse()) {
        None => 1_000_000,
        Some(Ok(count)) => count,
        Some(Err(_)) => {
            eprintln!("own-key: expected a number of persons");
            return ExitCode::from(2);
        }
    };
    match run(count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("own-key: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(count: usize) -> Result<(), Error> {
    let gpu = Gpu::new(0)?;
    // SAFETY: the build script has compiled these kernels from the crate that this program is linked with, so that both
    // have the same types and parameters.
    unsafe { gpu.load_kernels(KERNELS)? };
    let stream = gpu.stream()?;
    let persons = persons(count);

    let mut by_date = persons.clone();
    by_date.sort_by_key(|person| (person.born.year, person.born.month, person.born.day));
    let mut sorted = stream.upload(&persons)?;
    let mut workspace = stream.zeroed(workspace::sort_by::<Person, u32>(count))?;
    stream.sort_by::<Person, ()>(&mut sorted, &mut workspace)?;
    assert!(sorted.download()? == by_date, "sorted by date");

    let mut by_name = persons.clone();
    by_name.sort_by(compare_names);
    let mut sorted = stream.upload(&persons)?;
    let mut indices = stream.zeroed::<u32>(count)?;
    stream.argsort_by::<ByName, u32>(&mut sorted, &mut indices, &mut workspace)?;
    assert!(sorted.download()? == by_name, "sorted by name");
    let indices = indices.download()?;
    assert!(indices.iter().zip(&by_name).all(|(i, person)| persons[*i as usize] == *person), "the indices");

    merge(&stream, &persons, &by_name)?;
    combine(&stream, &persons)?;
    println!("{count} persons sorted by date, sorted by name with their indices, merged by name, and combined as sets");
    Ok(())
}

/// Merges two halves of the persons by name.
fn merge(stream: &Stream, persons: &[Person], expected: &[Person]) -> Result<(), Error> {
    let mut halves = persons.to_vec();
    let (a, b) = halves.split_at_mut(persons.len() / 3);
    a.sort_by(compare_names);
    b.sort_by(compare_names);
    let (a, b) = (stream.upload(a)?, stream.upload(b)?);
    let mut merged = stream.zeroed(persons.len())?;
    let mut workspace = stream.zeroed(workspace::merge_by::<Person, ()>(persons.len()))?;
    stream.merge_by::<ByName, ()>(&a, &b, &mut merged, &mut workspace)?;
    assert!(merged.download()? == expected, "merged by name");
    Ok(())
}

/// Combines two sorted parts of the persons by all set operations. A third of the persons is in both parts.
fn combine(stream: &Stream, persons: &[Person]) -> Result<(), Error> {
    let third = persons.len() / 3;
    let [a, b] = [&persons[..2 * third], &persons[third..]].map(|part| {
        let mut part = part.to_vec();
        part.sort_by(compare_names);
        part
    });
    let total = a.len() + b.len();
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut workspace = stream.zeroed(workspace::set_operation_by::<Person, ()>(total))?;
    for operation in SetOperation::ALL {
        let mut out = stream.zeroed(operation.most_keys(a.len(), b.len()))?;
        let mut count = stream.zeroed(1)?;
        stream.set_operation_by::<ByName, ()>(operation, &on_a, &on_b, &mut out, &mut count, &mut workspace)?;
        let expected = combined(operation, &a, &b);
        assert_eq!(count.download()?, [expected.len() as u64], "{operation}");
        assert!(out.download()?[..expected.len()] == expected, "{operation}");
    }
    Ok(())
}

/// The expected persons of a set operation, step by step. A step takes a pair of persons with equal names and dates, or
/// a person who is only in one part.
fn combined(operation: SetOperation, mut a: &[Person], mut b: &[Person]) -> Vec<Person> {
    let (of_a, of_both, of_b) = match operation {
        SetOperation::Union => (true, true, true),
        SetOperation::Intersection => (false, true, false),
        SetOperation::Difference => (true, false, false),
        SetOperation::SymmetricDifference => (true, false, true),
    };
    let mut kept = Vec::new();
    while let Some(person) = a.first().into_iter().chain(b.first()).min_by(|x, y| compare_names(x, y)) {
        let is_first = |of: &[Person]| of.first().is_some_and(|other| compare_names(other, person).is_eq());
        let (in_a, in_b) = (is_first(a), is_first(b));
        if if in_a && in_b { of_both } else { in_a && of_a || in_b && of_b } {
            kept.push(*person);
        }
        (a, b) = (&a[usize::from(in_a)..], &b[usize::from(in_b)..]);
    }
    kept
}

fn compare_names(a: &Person, b: &Person) -> Ordering {
    let key = |person: &Person| (person.name, person.born.year, person.born.month, person.born.day);
    key(a).cmp(&key(b))
}

/// Persons with names and dates that occur several times.
fn persons(count: usize) -> Vec<Person> {
    let mut state = 1u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % below
    };
    let names = ["Ada", "Alan", "Barbara", "Edsger", "Frances", "Grace", "Jean", "Kathleen"];
    let mut person = || {
        let mut name = [0; 16];
        let text = format!("{} {}", names[next(8) as usize], next(1000));
        name[..text.len()].copy_from_slice(text.as_bytes());
        let born = Date { year: next(4000) as i16 - 2000, month: next(12) as u8 + 1, day: next(28) as u8 + 1 };
        Person { born, name }
    };
    (0..count).map(|_| person()).collect()
}
