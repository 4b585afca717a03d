//! The exchange of a group of emulated members, against the standard library's stable sort.

use crate::common::*;
use cuda_std::Word;
use cuda_std::emulator::Buffer;
use merge_host::Error;
use merge_host::launches::KeyOrder;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::exchange::{ExchangePlan, Member, Searches, Share, exchange_by_plans, search_words};
use merge_host::launches::{Address, Queue};

/// A member of a group of emulated GPUs, which share one memory. It does all work at once, so nothing has to wait.
///
/// The number is the number of words for searches.
struct OnDevice<'a>(&'a Device, usize);

impl Member for OnDevice<'_> {
    type Event = ();

    fn with_queue(&self, work: impl FnOnce(&dyn Queue) -> Result<(), Error>) -> Result<(), Error> {
        work(&self.0.queue())
    }

    unsafe fn copy(&self, _: &Self, from: Address, to: Address, bytes: usize) -> Result<(), Error> {
        // SAFETY: `Member::copy` and `Queue::copy` require the same of the ranges. The emulator checks accesses.
        unsafe { self.0.queue().copy(from, to, bytes) }
    }

    fn copied(&self) -> Result<(), Error> {
        Ok(())
    }

    fn launched(&self) -> Result<(), Error> {
        Ok(())
    }

    fn launch_after(&self, (): ()) -> Result<(), Error> {
        Ok(())
    }

    fn copy_after(&self, (): ()) -> Result<(), Error> {
        Ok(())
    }

    type Searches<'a>
        = InMemory<'a>
    where
        Self: 'a;

    fn searches(&self) -> InMemory<'_> {
        InMemory { device: self.0, words: self.0.uninit(self.1) }
    }

    fn wait(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An array of the device.
struct InMemory<'a> {
    device: &'a Device,
    words: Buffer<u64>,
}

impl Searches for InMemory<'_> {
    fn address(&self) -> Address {
        address(self.words)
    }

    fn write(&mut self, words: &[u64]) {
        self.device.write(self.words, words);
    }

    fn read(&self, words: &mut [u64]) {
        words.copy_from_slice(&self.device.elements(self.words, words.len()));
    }
}

/// Exchanges runs of the given lengths for parts of the given lengths, one of each for each member, in pieces of at
/// least `least_piece_bytes` bytes. Returns the parts.
fn exchange<K: TestKey, V: Word>(
    device: &Device,
    order: KeyOrder,
    input: &[K],
    runs: &[usize],
    parts: &[usize],
    least_piece_bytes: usize,
) -> Vec<Pairs<K, V>> {
    let members: Vec<_> = runs.iter().map(|_| OnDevice(device, search_words(runs.len()))).collect();
    let (mut shares, mut plans, mut outs) = (vec![], vec![], vec![]);
    for (ends, &part) in offsets_of(runs).windows(2).zip(parts) {
        let run = Pairs::<K, V>::of(device, &input[ends[0]..ends[1]], ends[0]).arrays();
        let out = Pairs::<K, V>::uninit(device, part);
        let plan = ExchangePlan::with_pieces::<K>(runs.len(), part, size_of::<V>(), least_piece_bytes);
        let workspace = device.workspace(plan.workspace_bytes::<K::OnGpu>());
        shares.push(Share { run, part: out.arrays(), workspace });
        plans.push(plan);
        outs.push(out);
    }
    // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
    unsafe { exchange_by_plans(order.coding::<K>(), &members, &shares, &plans).unwrap() };
    outs
}

#[test]
fn members_get_the_parts_of_a_stable_merge() {
    fn check<K: TestKey, V: Word>(keys: Keys, runs: &[usize], parts: &[usize], least_piece_bytes: usize) {
        let seed = fresh_seed();
        let device = Device::new(seed);
        let order = order_of(seed);
        let input = keys.in_runs::<K>(runs, order, seed);
        let outs = exchange::<K, V>(&device, order, &input, runs, parts, least_piece_bytes);
        let merged = sorted_segments(&input, order, &[0, input.len()]);
        for (out, ends) in outs.into_iter().zip(offsets_of(parts).windows(2)) {
            out.check(&device, &input, &merged[ends[0]..ends[1]], &|| {
                format!("{keys:?}, {order:?}, {runs:?} to {parts:?}")
            });
        }
    }
    fn check_all<K: TestKey, V: Word>() {
        for keys in [Keys::Any, Keys::Few] {
            check::<K, V>(keys, &[700, 900], &[800, 800], 1 << 10);
            check::<K, V>(keys, &[1000, 0], &[300, 700], 1 << 20);
            check::<K, V>(keys, &[1, 2, 0, 500, 40], &[0, 100, 3, 340, 100], 1 << 9);
            check::<K, V>(keys, &[300, 301, 302], &[903, 0, 0], 1 << 9);
        }
        check::<K, V>(Keys::Any, &[0, 0], &[0, 0], 1);
        check::<K, V>(Keys::Any, &[3], &[3], 1);
    }
    check_all::<u32, ()>();
    check_all::<f32, u32>();
    check_all::<i64, u64>();
}

/// The emulator reports accesses outside of the arrays.
#[test]
fn runs_that_are_not_ascending_harm_nothing() {
    for seed in [fresh_seed(), fresh_seed(), fresh_seed()] {
        let (device, keys) = (Device::new(seed), Keys::Any.random(1600, seed));
        exchange::<u32, ()>(&device, KeyOrder::ASCENDING, &keys, &[700, 900], &[850, 750], 1 << 9);
    }
}

#[test]
fn a_part_has_few_pieces_and_none_that_is_small() {
    let ends = |len| ExchangePlan::of::<u32>(2, len, 0).ends();
    assert_eq!(ends(0), []);
    assert_eq!(ends(5), [5]);
    assert_eq!(ends(8 << 20), [8 << 20]);
    assert_eq!(ends(16 << 20), [8 << 20, 12 << 20, 14 << 20, 16 << 20]);
    let large = ends(1 << 30);
    assert!(large[..7].iter().copied().eq((1..8).map(|i| i << 27)));
    assert_eq!(large[7..], [(7 << 27) + (1 << 26), (7 << 27) + (3 << 25), 1 << 30]);
    // For any length, a member has memory for the searches for all ends.
    for len in (0..60).map(|lg| (1 << lg) + 1) {
        assert!((2 * ends(len).len() + 1) * 31 * 3 <= search_words(2), "{len}");
    }
}
