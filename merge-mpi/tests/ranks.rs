//! A sort on threads as ranks, compared with the standard library's stable sort.

use merge_cli::shared::{Failure, Result, Word};
use merge_host::external::{Options, Source};
use merge_host::{Engine, Key};
use merge_mpi::Times;
use merge_mpi::exchange::{Exchange, Threads};
use merge_mpi::pieces::part;
use merge_mpi::sort::{Share, sort};
use proptest::prelude::*;
use std::sync::Mutex;

/// The keys of a rank, with their payloads.
struct Keys<W> {
    keys: Vec<W>,
    payload: Vec<u8>,
    width: usize,
    position: usize,
}

impl<W: Word> Source<W> for Keys<W> {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        Some(self.keys.len() as u64)
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let here = self.position..self.keys.len().min(self.position + keys.len());
        keys[..here.len()].copy_from_slice(&self.keys[here.clone()]);
        let bytes = here.start * self.width..here.end * self.width;
        payload[..bytes.len()].copy_from_slice(&self.payload[bytes]);
        self.position = here.end;
        Ok(here.len())
    }
}

/// Sorts the keys of ranks. The first of `width` bytes of payload are the index of the key among all keys. Returns the
/// sorted keys and payloads of each rank's part.
fn sorted<W: Word>(ranks: &[Vec<W>], width: usize, place: Place) -> Vec<(Vec<W>, Vec<u8>)> {
    Threads::run(ranks.len(), place.is_one_machine, |exchange| {
        let rank = exchange.rank();
        let before: usize = ranks[..rank].iter().map(Vec::len).sum();
        let all = ranks.iter().map(Vec::len).sum::<usize>() as u64;
        let keys = ranks[rank].clone();
        let payload = (before..before + keys.len()).flat_map(|index| of_index(index, width)).collect();
        let own = keys.len() as u64;
        let source = Keys { keys, payload, width, position: 0 };
        let options = Options { width, ..Options::new(place.memory) };
        let here = part(all, exchange.size(), rank);
        let count = (here.end - here.start) as usize;
        let written = Mutex::new((vec![W::ZERO; count], vec![0; count * width]));
        let write = |begin: u64, part: &[W], values: &[u8]| {
            let (keys, payload) = &mut *written.lock().unwrap();
            keys[begin as usize..][..part.len()].copy_from_slice(part);
            payload[begin as usize * width..][..values.len()].copy_from_slice(values);
            Ok(())
        };
        let engine = Engine::cpu();
        let share = Share { own, all };
        sort(exchange, source, share, &options, &mut &engine, &Times::default(), write).unwrap();
        written.into_inner().unwrap()
    })
}

/// A payload that begins with an index.
fn of_index(index: usize, width: usize) -> Vec<u8> {
    let mut bytes = index.to_le_bytes().to_vec();
    bytes.resize(width, 7);
    bytes
}

/// Checks a sort of the keys of `ranks`, without payload and with payloads of several widths.
fn check<W: Word>(ranks: &[Vec<W>], place: Place) {
    let mut expected: Vec<(W, usize)> = ranks.iter().flatten().copied().zip(0..).collect();
    expected.sort_by_key(|pair| pair.0);
    for width in [0, 4, 8, 11] {
        let parts = sorted(ranks, width, place);
        let lengths: Vec<usize> = parts.iter().map(|part| part.0.len()).collect();
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert!(most - least <= 1, "even parts: {lengths:?}");
        let (keys, payload): (Vec<Vec<W>>, Vec<Vec<u8>>) = parts.into_iter().unzip();
        assert!(keys.concat().iter().eq(expected.iter().map(|pair| &pair.0)), "keys, width {width}");
        let bytes = expected.iter().flat_map(|pair| of_index(pair.1, width));
        assert!(payload.concat().into_iter().eq(bytes), "payload, width {width}");
    }
}

/// The machines of the ranks, and the bytes of memory of each rank.
#[derive(Clone, Copy, Debug)]
struct Place {
    is_one_machine: bool,
    memory: u64,
}

/// In memory that ranks can or cannot read, and in spilled chunks.
const PLACES: [Place; 3] = [
    Place { is_one_machine: true, memory: 64 << 20 },
    Place { is_one_machine: false, memory: 64 << 20 },
    Place { is_one_machine: true, memory: 20 << 10 },
];

/// Pseudorandom numbers.
fn random(count: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state ^ state >> 29
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn ranks_with_few_keys_or_none() {
    for size in [1, 2, 3, 7] {
        for count in [0, 1, 3, size, size + 1] {
            for place in PLACES {
                let keys = random(count, 1);
                let even: Vec<Vec<u64>> = (0..size)
                    .map(|rank| part(count as u64, size, rank))
                    .map(|part| keys[part.start as usize..part.end as usize].to_vec())
                    .collect();
                check(&even, place);
                for owner in [0, size - 1] {
                    let mut one = vec![vec![]; size];
                    one[owner] = keys.clone();
                    check(&one, place);
                }
            }
        }
    }
}

#[test]
fn keys_that_are_equal_descending_or_on_one_rank() {
    for size in [2, 4, 7] {
        for place in PLACES {
            check(&vec![vec![5u32; 3000]; size], place);
            check(&vec![vec![u64::MAX; 2000]; size], place);
            check(&vec![vec![0u8; 1000]; size], place);
            let descending = |rank: usize| (0..2500u32).map(|i| u32::MAX - (rank as u32 * 2500 + i) * 1000).collect();
            check(&(0..size).map(descending).collect::<Vec<_>>(), place);
            let mut one = vec![vec![]; size];
            one[size / 2] = random(9000, 3);
            check(&one, place);
        }
    }
}

#[test]
fn keys_of_every_width() {
    let ranks = |size: usize| (0..size).map(|rank| random(4000 + 100 * rank, rank as u64)).collect::<Vec<_>>();
    for place in PLACES {
        check(&ranks(3), place);
        check(
            &ranks(5).iter().map(|keys| keys.iter().map(|key| *key as u8).collect()).collect::<Vec<Vec<u8>>>(),
            place,
        );
        check(
            &ranks(4).iter().map(|keys| keys.iter().map(|key| *key as u16).collect()).collect::<Vec<Vec<u16>>>(),
            place,
        );
        let wide = |keys: &Vec<u64>| keys.iter().map(|key| u128::from(key % 3) << 90 | u128::from(key % 50)).collect();
        check(&ranks(4).iter().map(wide).collect::<Vec<Vec<u128>>>(), place);
    }
}

#[test]
fn floats_in_total_order() {
    let values = [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1.5, f64::MIN_POSITIVE];
    let of_rank =
        |rank: usize| (0..700).map(|i| values[(i * 7 + rank) % values.len()].to_ordered()).collect::<Vec<u64>>();
    let ranks: Vec<Vec<u64>> = (0..4).map(of_rank).collect();
    check(&ranks, PLACES[0]);
    let parts = sorted(&ranks, 0, PLACES[0]);
    let keys: Vec<f64> = parts.into_iter().flat_map(|part| part.0).map(f64::from_ordered).collect();
    assert!(keys.is_sorted_by(|a, b| a.total_cmp(b).is_le()));
}

#[test]
fn a_rank_that_cannot_write_ends_all_with_its_message() {
    for place in PLACES {
        let messages = Threads::run(3, place.is_one_machine, |exchange| {
            let keys = random(5000, exchange.rank() as u64);
            let source = Keys { keys, payload: vec![], width: 0, position: 0 };
            let engine = Engine::cpu();
            let share = Share { own: 5000, all: 15000 };
            let write = |_: u64, _: &[u64], _: &[u8]| match exchange.rank() {
                1 => Err(Failure::new("disk full")),
                _ => Ok(()),
            };
            let (options, times) = (Options::new(place.memory), Times::default());
            let failed = sort(exchange, source, share, &options, &mut &engine, &times, write);
            failed.unwrap_err().message().map(str::to_owned)
        });
        assert_eq!(messages, [None, Some("disk full".to_owned()), None]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_keys_of_any_ranks(
        ranks in prop::collection::vec(prop::collection::vec((0..50u32, any::<bool>()), 0..400), 1..6),
        place in 0..PLACES.len(),
    ) {
        let key = |(key, far): (u32, bool)| if far { key.wrapping_mul(0x9e37_79b9) } else { key };
        let ranks: Vec<Vec<u32>> = ranks.into_iter().map(|keys| keys.into_iter().map(key).collect()).collect();
        check(&ranks, PLACES[place]);
    }
}
