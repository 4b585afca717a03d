//! The exchange of a group of emulated members, against the standard library's stable sort.

use super::super::exchange::{ExchangePlan, Member, Searches, Share, exchange_by_plans, search_words};
use super::keys::*;
use super::*;
use crate::{GpuKey, NanOrder};

/// A member of a group of emulated GPUs, which share one memory. It does all work at once, so nothing has to wait.
///
/// The number is the number of words for searches.
struct OnDevice<'a>(&'a Device, usize);

impl Member for OnDevice<'_> {
    type Queue<'a>
        = Emulated<'a>
    where
        Self: 'a;
    type Event = ();

    fn with_queue<T>(&self, work: impl FnOnce(&Emulated<'_>) -> Result<T, Error>) -> Result<T, Error> {
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
        let ended = self.device.emulator.borrow_mut().launch("write", 1, 1, 0, || {
            // SAFETY: the emulator reports words that are not in the array.
            let to = unsafe { GlobalMut::<u64>::new(self.address() as _, words.len()) };
            words.iter().enumerate().for_each(|(i, &word)| to.set(i, word));
        });
        self.device.checked(ended);
    }

    fn read(&self, words: &mut [u64]) {
        let halves = self.device.words(self.address(), words.len() * 2);
        let pairs = halves.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
        words.iter_mut().zip(pairs).for_each(|(word, pair)| *word = pair);
    }
}

/// Exchanges runs of the given lengths for parts of the given lengths, one of each for each member, in pieces of at
/// least `least_piece_bytes` bytes.
fn check<K: TestKey + GpuKey, V: Word>(keys: Keys, runs: &[usize], parts: &[usize], least_piece_bytes: usize) {
    let seed = fresh_seed();
    let device = Device::new(seed);
    let nans = NanOrder::ALL[(seed % 3) as usize];
    let what =
        || format!("{keys:?}, {runs:?} to {parts:?}, NaNs {nans}, values of {} bytes, seed {seed}", size_of::<V>());
    let members: Vec<_> = runs.iter().map(|_| OnDevice(&device, search_words(runs.len()))).collect();
    let total: usize = runs.iter().sum();
    let mut input: Vec<K> = keys.random(total, seed);
    let mut begin = 0;
    let (mut shares, mut plans, mut outs) = (vec![], vec![], vec![]);
    for (&run, &part) in runs.iter().zip(parts) {
        let here = begin..begin + run;
        input[here.clone()].sort_by(|a, b| a.compare_with(b, nans));
        let with_values = |len| if size_of::<V>() > 0 { len } else { 0 };
        let values: Vec<V> = here.clone().take(with_values(run)).map(|i| V::from_register(3 * i as u64)).collect();
        let value_bytes = size_of::<V>();
        let arrays = |keys, values, len| Arrays { keys, values, len, value_bytes };
        let (keys, values) = (device.array(&input[here]), device.array(&values));
        let out = (device.uninit::<K>(part), device.uninit::<V>(with_values(part)));
        let plan = ExchangePlan::with_pieces::<K>(runs.len(), part, value_bytes, least_piece_bytes);
        shares.push(Share {
            run: arrays(address(keys), address(values), run),
            part: arrays(address(out.0), address(out.1), part),
            workspace: device.workspace(plan.workspace_bytes::<K>()),
        });
        plans.push(plan);
        outs.push(out);
        begin += run;
    }
    // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
    with_nans!(nans, Ordered => unsafe { exchange_by_plans::<Ordered<K>, _>(&members, &shares, &plans).unwrap() });
    let mut order: Vec<usize> = (0..total).collect();
    order.sort_by(|&i, &j| input[i].compare_with(&input[j], nans));
    let expected: Vec<K> = order.iter().map(|&i| input[i]).collect();
    let merged: Vec<K> = outs.iter().flat_map(|out| device.read(out.0)).collect();
    assert!(raw_bits(&merged) == raw_bits(&expected), "keys: {}", what());
    if size_of::<V>() > 0 {
        let expected: Vec<V> = order.iter().map(|&i| V::from_register(3 * i as u64)).collect();
        let merged: Vec<V> = outs.iter().flat_map(|out| device.read(out.1)).collect();
        assert!(raw_bits(&merged) == raw_bits(&expected), "values: {}", what());
    }
}

#[test]
fn members_get_the_parts_of_a_stable_merge() {
    fn check_all<K: TestKey + GpuKey, V: Word>() {
        for keys in [Keys::Any, Keys::Few, Keys::Ends] {
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
        let device = Device::new(seed);
        let members = [OnDevice(&device, search_words(2)), OnDevice(&device, search_words(2))];
        let (mut shares, mut plans) = (vec![], vec![]);
        for (run, part) in [(700, 850), (900, 750)] {
            let keys: Vec<u32> = Keys::Any.random(run, seed + run as u64);
            let plan = ExchangePlan::with_pieces::<u32>(2, part, 0, 1 << 9);
            shares.push(Share {
                run: Arrays::keys(address(device.array(&keys)), run),
                part: Arrays::keys(address(device.uninit::<u32>(part)), part),
                workspace: device.workspace(plan.workspace_bytes::<u32>()),
            });
            plans.push(plan);
        }
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        unsafe { exchange_by_plans::<u32, _>(&members, &shares, &plans).unwrap() };
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
