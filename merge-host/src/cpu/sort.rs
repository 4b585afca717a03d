//! Choice of the method that sorts keys.
//!
//! | keys | method |
//! | --- | --- |
//! | up to 128 of up to 8 bytes alone, or up to 1024 by networks | insertion, one run at sight, `vector`, or std |
//! | up to 64 of 16 bytes, alone | insertion or one run at sight; `few_keys` |
//! | up to 64 with values of up to 16 bytes, or with indices | `few_keys` |
//! | one run, ascending or descending, or, except for 2 bytes alone, up to 8 long runs | `presorted` |
//! | of 4 bytes or more, alone, on up to 3 threads, up to 1/64 of them out of place | `misplaced` |
//! | up to 16 distinct ones | `few_values` |
//! | up to 128 with values of up to 16 bytes; up to 128 of 1, 2 or 16 bytes with indices | `few_keys` |
//! | 1 or 2 bytes alone, enough for a histogram | `counting` |
//! | 1 or 2 bytes, fewer | `vector`, or as keys of 4 bytes |
//! | 4 or 8 bytes without values, on x86-64 | `vector`, except for those that `radix` sorts in less time |
//! | 16 bytes without values that differ in the last 8 | as keys of 8 bytes |
//! | 16 bytes without values, up to 4096, on x86-64 | `key_index` |
//! | others without values, up to 1024 | the standard library |
//! | others | `radix` on one thread, `parallel_radix` on several |
//!
//! Keys are encoded as unsigned integers that have the order of the keys, or the opposite order for a descending sort.
//!
//! ```text
//!   keys  -3 1 2   ─ encode ─►  2^31 - 3   2^31 + 1   2^31 + 2   ─ sort, decode ─►  -3 1 2
//! ```

use super::blocks::{for_each_block_of_keys, reverse};
use super::few_values::{self, FewValues};
use super::presorted::{self, Runs, is_run};
use super::radix::Workspace;
use super::run::RunMut;
use super::scratch::Scratch;
use super::workers::timed_whole;
use super::{
    Workers, counting, digit, few_keys, key_index, limit, memory, misplaced, parallel_radix, radix, sort_pairs, vector,
};
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::timing::Steps;
use crate::{Error, Key, SortOrder, Word};
use std::any::TypeId;

/// The greatest number of keys that are sorted by comparisons: they are faster than radix passes, and need no scratch
/// memory on the heap.
const MAX_COMPARED_KEYS: usize = 1 << 10;
/// The greatest number of keys alone that are sorted without a look at their distribution.
const FEW_ALONE: usize = 1 << 7;
/// The greatest number of keys of up to 2 bytes whose copies are on the stack.
const KEYS_ON_STACK: usize = 1 << 8;
/// Bytes of keys that the calling thread looks at before it wakes others.
const LOOKED_AT_BYTES: usize = 1 << 24;
/// Bytes of keys alone that the calling thread reads and writes in the time that it takes to wake others.
const SORTED_ALONE_BYTES: usize = 1 << 23;
/// The number of keys of a block that a thread encodes.
const ENCODE_BLOCK: usize = 1 << 14;

/// Sorts keys, with their values if these have any bytes. Stable.
#[inline]
pub(crate) fn sort<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    run: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    if const { size_of::<V>() == 0 } && are_few_alone::<K>(order, run.keys.len()) {
        sort_few_keys(order, run.keys);
        Ok(())
    } else if const { size_of::<V>() > 0 }
        && few_keys::can_sort::<V>(run.keys.len())
        && run.keys.len() <= few_keys::MOST_SHORT
    {
        few_keys::sort(order, run);
        Ok(())
    } else {
        sort_many(order, run, threads)
    }
}

/// Whether [`sort_few_keys`] sorts this number of keys alone. More keys than networks sort are worth a look at their
/// distribution.
#[inline]
fn are_few_alone<K: Key>(order: KeyOrder, keys: usize) -> bool {
    if const { size_of::<K>() > size_of::<u64>() } {
        return keys <= few_keys::MOST_SHORT;
    }
    keys <= FEW_ALONE || order.inverts_bits::<K>() && keys <= vector::most_of_networks::<K>()
}

/// Sorts keys of a number that [`are_few_alone`] accepts.
fn sort_few_keys<K: Key>(order: KeyOrder, keys: &mut [K]) {
    if sort_runs_of_few(order, keys) {
        return;
    }
    if order.inverts_bits::<K>() && vector::has_vectors::<K>() {
        vector::sort(order.direction, keys);
    } else if const { size_of::<K>() <= 2 } {
        sort_widened(order, keys, &mut [0; FEW_ALONE]);
    } else if const { size_of::<K>() > size_of::<u64>() } {
        few_keys::sort(order, RunMut::of_keys(keys));
    } else {
        in_order(order, keys, 1, sort_numbers);
    }
}

/// Sorts keys that ascend or descend, or few that change between both at most twice. Returns `false`, and has moved
/// nothing, for others.
fn sort_runs_of_few<K: Key>(order: KeyOrder, keys: &mut [K]) -> bool {
    if order.is_of::<K>() {
        // The most frequent order takes less time if it is compiled by itself.
        sort_runs_by(keys, Key::to_ordered)
    } else {
        sort_runs_by(keys, |key| order.encode(key))
    }
}

/// [`sort_runs_of_few`] of keys that `encode` encodes.
#[inline(always)]
fn sort_runs_by<K: Key>(keys: &mut [K], encode: impl Fn(K) -> K::Bits + Copy) -> bool {
    if keys.len() <= const { most_inserted::<K>() } {
        return insert_turns(keys, encode);
    }
    if is_run(keys, encode, |before, bits| before <= bits) {
        return true;
    }
    // Few arrays begin with four descending keys, so that the branch is predicted.
    let begins = match *keys {
        [a, b, c, d, ..] if const { size_of::<K>() <= size_of::<u64>() } => {
            let (a, b, c, d) = (encode(a), encode(b), encode(c), encode(d));
            // A sum, since the compiler makes branches of a conjunction.
            u32::from(a < b) + u32::from(b < c) + u32::from(c < d) == 0
        }
        _ => true,
    };
    begins && turn_descending(keys, encode)
}

/// The greatest number of keys alone that are sorted by insertion if they are nearly in order. The standard library
/// sorts up to 20 keys by insertion.
const fn most_inserted<K>() -> usize {
    if size_of::<K>() <= size_of::<u64>() { 12 } else { 20 }
}

/// [`sort_runs_by`] of up to [`most_inserted`] keys. Insertion sort takes less time than a network if its branches can
/// be predicted: if one key is out of place, or if the keys ascend and then descend.
#[inline(always)]
fn insert_turns<K: Key>(keys: &mut [K], encode: impl Fn(K) -> K::Bits + Copy) -> bool {
    if keys.len() < 2 {
        return true;
    }
    // A bit for each pair of neighbours, set if they descend.
    let (mut descents, mut before) = (0u32, encode(keys[0]));
    for &key in &keys[1..] {
        let bits = encode(key);
        descents = (descents << 1) + u32::from(before > bits);
        before = bits;
    }
    if descents == 0 {
        return true;
    }
    let all = (1 << (keys.len() - 1)) - 1;
    let turns = (descents ^ descents >> 1) & all >> 1;
    let without_one = turns & turns.wrapping_sub(1);
    if descents == all {
        keys.reverse();
    } else if without_one & without_one.wrapping_sub(1) == 0 {
        keys.sort_unstable_by_key(|key| encode(*key));
    } else {
        return false;
    }
    true
}

/// Turns descending keys round. Returns `false`, and has moved nothing, for others.
#[inline(never)]
fn turn_descending<K: Key>(keys: &mut [K], encode: impl Fn(K) -> K::Bits + Copy) -> bool {
    let descends = is_run(keys, encode, |before, bits| before >= bits);
    if descends {
        keys.reverse();
    }
    descends
}

/// [`sort`] of fewer than [`UNTIMED_KEYS`](super::UNTIMED_KEYS) keys on the calling thread. Compiled once for all forms
/// of arguments.
#[inline(never)]
pub(crate) fn sort_untimed<K: Key, V: Copy + Send + Sync>(order: KeyOrder, run: RunMut<K, V>) -> Result<(), Error> {
    limit::check()?;
    sort(order, run, 1)
}

/// What a first look at an array has found.
enum Sight {
    /// The array is sorted now.
    Sorted,
    /// Several long runs.
    Runs(Runs),
    /// Neither. Keys alone may be in another order than before.
    Other,
}

/// [`sort`] on the threads of `workers`. The calling thread begins, because to wake another thread takes as long as to
/// sort many arrays at sight.
pub(crate) fn sort_on<K: Key, V: Copy + Send + Sync>(
    workers: &Workers,
    order: KeyOrder,
    mut run: RunMut<K, V>,
) -> Result<Steps, Error> {
    let (len, bytes) = (run.keys.len(), size_of_val(run.keys));
    if !is_worth_a_look(workers, run.keys) {
        return workers.sort(len, |threads| sort(order, run, threads));
    }
    timed_whole(|| {
        let sight = look(order, run.part(0..len), 1)?;
        if !is_sorted_alone::<V>(bytes, &sight) {
            return workers.sort(len, |threads| sort_rest(order, run, &sight, threads));
        }
        if sort_seen(order, run.part(0..len), &sight, 1)? {
            return Ok(Steps::default());
        }
        workers.sort(len, |threads| sort_unseen(order, run, threads))
    })
}

/// Whether the calling thread looks at `keys` before it wakes the threads of `workers`.
pub(super) fn is_worth_a_look<K: Key>(workers: &Workers, keys: &[K]) -> bool {
    size_of_val(keys) <= LOOKED_AT_BYTES && workers.threads_to_sort(keys.len()) > 1
}

/// Whether the calling thread sorts an array of these bytes of keys alone. To move values takes longer than to wake
/// another thread.
fn is_sorted_alone<V>(bytes: usize, sight: &Sight) -> bool {
    let passes = match sight {
        Sight::Sorted => return true,
        Sight::Runs(runs) => runs.passes(),
        Sight::Other => 1,
    };
    size_of::<V>() == 0 && passes * bytes <= SORTED_ALONE_BYTES
}

/// [`sort`] of more than a few keys.
fn sort_many<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    mut run: RunMut<K, V>,
    threads: usize,
) -> Result<(), Error> {
    let len = run.keys.len();
    let sight = look(order, run.part(0..len), threads)?;
    sort_rest(order, run, &sight, threads)
}

/// Sorts keys of one run. Sorts keys alone if few are out of place. Returns what it has found.
fn look<K: Key, V: Copy + Send + Sync>(order: KeyOrder, run: RunMut<K, V>, threads: usize) -> Result<Sight, Error> {
    if let Some(runs) = Runs::of(order, run.keys, presorted::most_runs::<K, V>(run.keys.len()), threads) {
        if !runs.is_one() {
            return Ok(Sight::Runs(runs));
        }
        merge_runs(order, run, &runs, threads)?;
    } else if const { size_of::<V>() > 0 || size_of::<K>() <= 2 }
        || threads > misplaced::MOST_THREADS
        || !misplaced::sort(order, run.keys)?
    {
        return Ok(Sight::Other);
    }
    Ok(Sight::Sorted)
}

/// Sorts an array after [`look`] has returned `sight`.
fn sort_rest<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    mut run: RunMut<K, V>,
    sight: &Sight,
    threads: usize,
) -> Result<(), Error> {
    let len = run.keys.len();
    if sort_seen(order, run.part(0..len), sight, threads)? { Ok(()) } else { sort_unseen(order, run, threads) }
}

/// Sorts an array that is sorted, has few distinct keys or several runs, or is sorted by counting. Returns `false`, and
/// has moved nothing, for others.
fn sort_seen<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    run: RunMut<K, V>,
    sight: &Sight,
    threads: usize,
) -> Result<bool, Error> {
    if let Sight::Sorted = sight {
        // There is nothing to do.
    } else if const { few_values::can_sort::<K, V>() }
        && let Some(values) = FewValues::of(order, run.keys, threads)?
    {
        values.sort(order, run, threads)?;
    } else if const { size_of::<V>() == 0 && counting::supports::<K>() } && counting::can_sort::<K>(run.keys.len()) {
        counting::sort(order, run.keys, threads)?;
    } else if let Sight::Runs(runs) = sight {
        merge_runs(order, run, runs, threads)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Sorts an array that [`sort_seen`] cannot sort.
fn sort_unseen<K: Key, V: Copy + Send + Sync>(order: KeyOrder, run: RunMut<K, V>, threads: usize) -> Result<(), Error> {
    // A constant, so that the other way is not compiled.
    if const { size_of::<V>() == 0 } {
        sort_keys(order, run.keys, threads)
    } else if few_keys::can_sort::<V>(run.keys.len()) {
        few_keys::sort(order, run);
        Ok(())
    } else {
        sort_pairs::sort(order, run, threads)
    }
}

/// Sorts an array that has these runs.
fn merge_runs<K: Key, V: Copy + Send + Sync>(
    order: KeyOrder,
    run: RunMut<K, V>,
    runs: &Runs,
    threads: usize,
) -> Result<(), Error> {
    if runs.is_ascending() {
        return Ok(());
    }
    if runs.is_one() {
        if const { size_of::<V>() > 0 } {
            presorted::turn(run.keys, run.values, |x, y| order.encode(x) == order.encode(y));
        }
        reverse(run.keys, threads);
        return Ok(());
    }
    // SAFETY: the merge writes only copies of the values, which are initialised.
    let values = unsafe { memory::as_uninit_mut(run.values) };
    let mut result = Ok(());
    in_order(order, run.keys, threads, |bits| result = runs.merge(RunMut::new((bits, values)), threads));
    result
}

/// Sorts keys alone, which are not in order and not few.
fn sort_keys<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    if const { size_of::<K>() <= 2 } {
        if order.inverts_bits::<K>() && vector::has_vectors::<K>() {
            vector::sort(order.direction, keys);
        } else if keys.len() <= KEYS_ON_STACK {
            sort_widened(order, keys, &mut [0; KEYS_ON_STACK]);
        } else {
            sort_widened(order, keys, &mut Scratch::init(keys.len())?);
        }
        return Ok(());
    }
    if !order.inverts_bits::<K>() {
        // Vectors and radix passes sort the encoded keys.
        let mut result = Ok(());
        in_order(order, keys, threads, |bits| result = sort_keys(KeyOrder::ASCENDING, bits, threads));
        return result;
    }
    let differing = || digit::differing_or_more(keys, vector::NARROW_BITS);
    let are_narrow = |range| digit::are_narrow(keys, differing(), range);
    let digits = vector::Digits { are_narrow, are_even: || digit::is_even(keys) };
    if vector::can_sort_on::<K>(threads, keys.len(), digits) {
        vector::sort_on(order.direction, keys, threads);
        return Ok(());
    }
    if const { size_of::<K>() > size_of::<u64>() } && sort_narrowed(order, keys, threads)? {
        return Ok(());
    }
    if const { size_of::<K>() > size_of::<u64>() } && key_index::can_sort::<K>(keys.len()) {
        return key_index::sort(order, keys, threads);
    }
    if keys.len() <= MAX_COMPARED_KEYS {
        // Equal keys have equal bits, so a stable sort gives the same result.
        in_order(order, keys, 1, |bits| bits.sort_unstable());
        return Ok(());
    }
    let mut scratch = Scratch::to_scatter(keys.len())?;
    in_order(order, keys, threads, |keys| sort_bits(RunMut::of_keys(keys), RunMut::of_keys(&mut scratch), threads));
    Ok(())
}

/// Sorts keys of up to 2 bytes as numbers of 4 bytes, on one thread. `numbers` has at least the length of `keys`.
fn sort_widened<K: Key>(order: KeyOrder, keys: &mut [K], numbers: &mut [u32]) {
    let numbers = &mut numbers[..keys.len()];
    numbers.iter_mut().zip(&*keys).for_each(|(number, key)| *number = order.encode(*key).low() as u32);
    sort_numbers(numbers);
    keys.iter_mut().zip(numbers).for_each(|(key, number)| *key = order.decode(K::Bits::from_low(*number as usize)));
}

/// Sorts numbers by vectors, or by the standard library if the processor has no vectors for them.
#[inline(always)]
pub(super) fn sort_numbers<W: Word>(numbers: &mut [W]) {
    if vector::has_vectors::<W>() {
        vector::sort(SortOrder::Ascending, numbers);
    } else {
        numbers.sort_unstable();
    }
}

/// Sorts keys of 16 bytes that differ only in the last 8 bytes of their ordered bits, as numbers of 8 bytes. Returns
/// `false`, and has moved nothing, for others.
fn sort_narrowed<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize) -> Result<bool, Error> {
    let Some(first) = keys.first() else { return Ok(true) };
    let upper = |key: K| order.encode(key).widened() >> u64::BITS;
    let same = upper(*first);
    if keys.iter().any(|key| upper(*key) != same) {
        return Ok(false);
    }
    let mut numbers = Scratch::<u64>::init(keys.len())?;
    for_each_block_of_keys(&mut numbers, ENCODE_BLOCK, threads, |begin, numbers| {
        numbers.iter_mut().zip(&keys[begin..]).for_each(|(to, key)| *to = order.encode(*key).widened() as u64);
    });
    sort(KeyOrder::ASCENDING, RunMut::of_keys(&mut numbers), threads)?;
    for_each_block_of_keys(keys, ENCODE_BLOCK, threads, |begin, keys| {
        for (key, number) in keys.iter_mut().zip(&numbers[begin..]) {
            *key = order.decode(K::Bits::narrowed(same << u64::BITS | u128::from(*number)));
        }
    });
    Ok(true)
}

/// Encodes `keys`, sorts their bits by `sort`, which sorts in ascending order, and decodes them. So a sort is compiled
/// for each width and not for each type, and floats take the time of integers.
pub(super) fn in_order<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize, sort: impl FnOnce(&mut [K::Bits])) {
    if order.is_of::<K>() && TypeId::of::<K>() == TypeId::of::<K::Bits>() {
        return sort(bytemuck::cast_slice_mut(keys));
    }
    replace_each(keys, threads, |key| bytemuck::cast(order.encode(key)));
    sort(bytemuck::cast_slice_mut(keys));
    replace_each(keys, threads, |bits| order.decode(bytemuck::cast(bits)));
}

/// Replaces each key by the result of `of`.
fn replace_each<K: Key>(keys: &mut [K], threads: usize, of: impl Fn(K) -> K + Sync) {
    for_each_block_of_keys(keys, ENCODE_BLOCK, threads, |_, keys| {
        vector::wide(|| keys.iter_mut().for_each(|key| *key = of(*key)));
    });
}

/// Sorts `run` in ascending order. Stable. `scratch` has the same length.
pub(super) fn sort_bits<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    if threads == 1 {
        radix::sort(run, scratch, false, None, &mut Workspace::new());
    } else {
        parallel_radix::sort(run, scratch, threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NanOrder;
    use crate::cpu::fresh_seed;
    use crate::cpu::sort_by_key::sort_by_key;
    use half::f16;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use rayon::ThreadPool;

    /// Ordered bits of the keys of an array, as fractions of all values.
    fn arrays(len: usize, random: &mut StdRng) -> Vec<(&'static str, Vec<u128>)> {
        let at = |i: usize| (u128::MAX / len.max(1) as u128).saturating_mul(i as u128);
        let any: [u128; 16] = random.random();
        let mut of = |name, key: &mut dyn FnMut(usize, u128) -> u128| {
            (name, (0..len).map(|i| key(i, random.random())).collect::<Vec<u128>>())
        };
        let mut arrays = vec![
            of("random", &mut |_, random| random),
            of("ascending", &mut |i, _| at(i)),
            of("descending", &mut |i, _| at(len - 1 - i)),
            of("descending, each twice", &mut |i, _| at((len - 1 - i) / 2 * 2)),
            of("one value", &mut |_, _| any[0]),
            of("three values", &mut |_, random| any[random as usize % 3]),
            of("16 values", &mut |_, random| any[random as usize % 16]),
            of("16 values and another", &mut |i, random| if i + 1 == len { random } else { any[random as usize % 16] }),
            of("up and down", &mut |i, _| at(if i < len / 2 { 2 * i } else { 2 * (len - 1 - i) })),
            of("five runs", &mut |i, _| at(i % len.div_ceil(5) * 4)),
            of("runs of which two descend", &mut |i, random| {
                let run = len.div_ceil(4);
                let key = at(if (i / run).is_multiple_of(2) { i % run } else { run - i % run } * 3);
                if random % 9 == 0 { key } else { key >> 120 << 120 }
            }),
            of("few bits differ", &mut |_, random| {
                any[1] ^ (random & 0x5000_0000_0000_0003 | (random >> 90) << 90 & 7 << 100)
            }),
            of("last bits differ", &mut |_, random| any[2] ^ (random & 0xffff_ffff)),
            of("first and last bits of 4, 8 and 16 bytes differ", &mut |_, random| {
                any[2] ^ (random & (1 << 127 | 0x3f << 96 | 0x3f << 64 | 0x3f))
            }),
        ];
        let mut nearly = arrays[1].1.clone();
        nearly.iter_mut().step_by(100).for_each(|key| *key = random.random());
        arrays.push(("nearly ascending", nearly));
        arrays
    }

    /// Compares every sort of these keys with the standard library's stable sort.
    fn check<K: Key>(bits: &[u128], what: &str, order: KeyOrder, pool: &ThreadPool, threads: usize) {
        let shift = u128::BITS - <K::Bits as Bits>::COUNT;
        let keys: Vec<K> = bits.iter().map(|bits| K::from_ordered(K::Bits::narrowed(*bits >> shift))).collect();
        let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
        expected.sort_by_key(|i| order.encode(keys[*i as usize]));
        let what = format!("{what}, {} of {}, {order:?}, {threads} threads", keys.len(), K::NAME);
        let is_right = |sorted: &[K]| {
            let mut pairs = sorted.iter().zip(&expected);
            pairs.all(|(key, i)| key.to_ordered() == keys[*i as usize].to_ordered())
        };
        pool.install(|| {
            let mut sorted = keys.clone();
            sort(order, RunMut::of_keys(&mut sorted), threads).unwrap();
            assert!(is_right(&sorted), "{what}");
            let mut indices = vec![u32::MAX; keys.len()];
            sort_pairs::argsort(order, &keys, &mut indices, threads).unwrap();
            assert!(indices == expected, "argsort, {what}");
            let mut records: Vec<(K, u32)> = keys.iter().copied().zip(0..).collect();
            sort_by_key(&mut records, &|record| record.0, threads).unwrap();
            if order.is_of::<K>() {
                assert!(records.iter().map(|record| record.1).eq(expected.iter().copied()), "by key, {what}");
            }
            let (mut sorted, mut values) = (keys.clone(), (0..keys.len() as u32).collect::<Vec<_>>());
            sort(order, RunMut::new((&mut sorted, &mut values)), threads).unwrap();
            assert!(is_right(&sorted) && values == expected, "with values, {what}");
            // Large values, which move once.
            let (mut sorted, mut values) = (keys.clone(), (0..keys.len() as u32).map(|i| [i; 5]).collect::<Vec<_>>());
            sort(order, RunMut::new((&mut sorted, &mut values)), threads).unwrap();
            assert!(
                is_right(&sorted) && values.iter().map(|value| value[3]).eq(expected.iter().copied()),
                "large values, {what}"
            );
        });
    }

    fn check_all<K: Key>(lengths: &[usize], threads: usize) {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let nans_last = KeyOrder { direction: SortOrder::Descending, nans: NanOrder::Last };
        let orders = [KeyOrder::ASCENDING, SortOrder::Descending.into(), nans_last];
        for &len in lengths {
            for (i, (name, bits)) in arrays(len, &mut random).into_iter().enumerate() {
                let what = format!("{name}, seed {seed}");
                check::<K>(&bits, &what, orders[i % 3], &pool, threads);
                check::<K>(&bits, &what, KeyOrder::ASCENDING, &pool, threads);
            }
        }
    }

    /// Compares sorts that the calling thread begins with the standard library's stable sort.
    fn check_on<K: Key>(keys: usize) {
        let seed = fresh_seed();
        let workers = Workers::exactly(2).unwrap();
        for (name, bits) in arrays(keys, &mut StdRng::seed_from_u64(seed)) {
            let shift = u128::BITS - <K::Bits as Bits>::COUNT;
            let keys: Vec<K> = bits.iter().map(|bits| K::from_ordered(K::Bits::narrowed(*bits >> shift))).collect();
            let mut expected: Vec<(K::Bits, u32)> = keys.iter().map(|key| key.to_ordered()).zip(0..).collect();
            expected.sort_by_key(|pair| pair.0);
            let is_right = |sorted: &[K]| sorted.iter().zip(&expected).all(|(key, pair)| key.to_ordered() == pair.0);
            let mut sorted = keys.clone();
            sort_on(&workers, KeyOrder::ASCENDING, RunMut::of_keys(&mut sorted)).unwrap();
            assert!(is_right(&sorted), "{name}, {}, seed {seed}", K::NAME);
            let (mut sorted, mut values) = (keys.clone(), (0..keys.len() as u32).collect::<Vec<_>>());
            sort_on(&workers, KeyOrder::ASCENDING, RunMut::new((&mut sorted, &mut values))).unwrap();
            let indices = expected.iter().map(|pair| pair.1);
            assert!(
                is_right(&sorted) && values.into_iter().eq(indices.clone()),
                "pairs, {name}, {}, seed {seed}",
                K::NAME
            );
            let mut found = vec![u32::MAX; keys.len()];
            sort_pairs::argsort_on(&workers, KeyOrder::ASCENDING, &keys, &mut found).unwrap();
            assert!(found.into_iter().eq(indices), "argsort, {name}, {}, seed {seed}", K::NAME);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no time for so many keys")]
    fn arrays_that_the_calling_thread_looks_at() {
        // The bytes are below and above what the calling thread sorts alone.
        check_on::<u8>((1 << 19) + 1);
        check_on::<f32>((1 << 19) + 5);
        check_on::<u128>((1 << 19) + 3);
    }

    /// Lengths around every threshold of a sort on one thread. Miri has time for a few only.
    fn lengths() -> Vec<usize> {
        if cfg!(miri) {
            vec![0, 1, 2, 17, 66, 300]
        } else {
            (0..20).chain([31, 33, 63, 64, 65, 127, 255, 256, 257, 511, 512, 1023, 1025, 2049, 4097, 16_385]).collect()
        }
    }

    #[test]
    fn arrays_of_narrow_keys() {
        check_all::<u8>(&lengths(), 1);
        check_all::<i16>(&lengths(), 1);
        check_all::<f16>(&lengths(), 1);
    }

    #[test]
    fn arrays_of_keys_of_4_and_8_bytes() {
        check_all::<u32>(&lengths(), 1);
        check_all::<f64>(&lengths(), 1);
    }

    #[test]
    fn arrays_of_wide_keys() {
        check_all::<u128>(&lengths(), 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no time for so many keys")]
    fn arrays_for_several_threads() {
        check_all::<u8>(&[3000, 1 << 19], 2);
        check_all::<i16>(&[(1 << 19) + 3], 3);
        check_all::<u32>(&[3000, (1 << 19) + 5], 2);
        check_all::<f64>(&[(1 << 19) + 7], 2);
    }
}
