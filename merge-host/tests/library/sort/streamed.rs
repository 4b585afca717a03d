//! `Engine::sort_streamed` against the standard library's stable sort.

use crate::common::*;
use merge_host::{Engine, Error, SortOrder};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The errors of the callbacks.
#[derive(Debug, PartialEq)]
enum Stopped {
    Reading,
    Writing,
    By(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::By(error)
    }
}

/// Sorts, and checks that each key is read once and written once.
fn check<K: TestKey>(engine: &Engine, order: SortOrder, keys: &[K], expected: &[K], what: &str) {
    let reads: Vec<AtomicUsize> = keys.iter().map(|_| AtomicUsize::new(0)).collect();
    let written = Mutex::new((vec![K::zeroed(); keys.len()], vec![0; keys.len()]));
    let read = |begin: usize, part: &mut [K]| {
        part.copy_from_slice(&keys[begin..][..part.len()]);
        for count in &reads[begin..][..part.len()] {
            count.fetch_add(1, Relaxed);
        }
        Ok::<_, Stopped>(())
    };
    let write = |begin: usize, part: &[K]| {
        let mut written = written.lock().unwrap();
        written.0[begin..][..part.len()].copy_from_slice(part);
        written.1[begin..][..part.len()].iter_mut().for_each(|count| *count += 1);
        Ok(())
    };
    engine.sort_streamed(order, keys.len(), read, write).unwrap();
    let (found, writes) = written.into_inner().unwrap();
    assert!(reads.iter().all(|count| count.load(Relaxed) == 1), "{what}: each key is read once");
    assert!(writes.iter().all(|&count| count == 1), "{what}: each key is written once");
    assert_same(&found, expected, || what.to_owned());
}

fn lengths_around_blocks<K: TestKey>(seed: u64) {
    let mut rng = rng(seed);
    let lengths = [0, 1, 1000, (1 << 19) - 1, 1 << 19, (1 << 19) + 1, 1_200_001];
    for (i, length) in lengths.into_iter().enumerate() {
        let keys = keys::<K>("any bits", length, &mut rng);
        let ascending = sorted(keys.clone());
        let descending: Vec<K> = ascending.iter().rev().copied().collect();
        // The order alternates with the number of threads, and begins with the other order at the next length.
        for (threads, engine) in cpu_engines().into_iter().enumerate() {
            let (order, expected) = match (threads + i) % 2 {
                0 => (SortOrder::Ascending, &ascending),
                _ => (SortOrder::Descending, &descending),
            };
            let what = format!("{length} keys, {order:?}, {engine:?}, seed {seed}");
            check(&engine, order, &keys, expected, &what);
        }
    }
}

#[test]
fn sorts_lengths_around_those_of_blocks() {
    let seed = seed();
    lengths_around_blocks::<u32>(seed);
    lengths_around_blocks::<f64>(seed);
    lengths_around_blocks::<u128>(seed);
}

#[test]
fn returns_the_error_of_a_callback() {
    for engine in cpu_engines() {
        let fail_at = |index: usize, with: fn() -> Stopped| {
            move |begin: usize, len: usize| if (begin..begin + len).contains(&index) { Err(with()) } else { Ok(()) }
        };
        let (reading, writing) = (fail_at(500_000, || Stopped::Reading), fail_at(77, || Stopped::Writing));
        let writes = AtomicUsize::new(0);
        let found = engine.sort_streamed::<u32, _>(
            SortOrder::Ascending,
            600_000,
            |begin, keys| reading(begin, keys.len()),
            |_, keys| {
                writes.fetch_add(keys.len(), Relaxed);
                Ok(())
            },
        );
        assert_eq!((found.unwrap_err(), writes.into_inner()), (Stopped::Reading, 0));
        let found = engine.sort_streamed::<u32, _>(
            SortOrder::Ascending,
            600_000,
            |_, _| Ok(()),
            |begin, keys| writing(begin, keys.len()),
        );
        assert_eq!(found.unwrap_err(), Stopped::Writing);
    }
}
