//! Keys of 1 and 2 bytes, in the emulator, against the standard library.

use crate::common::*;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use kernels_gpu::kernels::narrow::Narrow;
use kernels_gpu::kernels::narrow::count_keys::{self, count_keys};
use kernels_gpu::kernels::narrow::fill_keys::{self, fill_keys};
use kernels_gpu::kernels::narrow::scan_counts::{self, scan_counts};
use kernels_gpu::kernels::narrow::widen::{THREADS, TILE, narrow_keys, widen_keys};
use kernels_gpu::key::Coding;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// An integer of 1 or 2 bytes.
trait Integer: Copy + Ord + std::fmt::Debug + 'static {
    type Bits: Narrow + std::fmt::Debug;
    const CODING: Coding<Self::Bits>;
    const LEAST: Self;
    const GREATEST: Self;
    fn bits(self) -> Self::Bits;
    fn of(bits: Self::Bits) -> Self;
}

macro_rules! integers {
    ($($t:ident as $bits:ident: $coding:ident;)*) => {$(
        impl Integer for $t {
            type Bits = $bits;
            const CODING: Coding<$bits> = Coding::$coding;
            const LEAST: Self = $t::MIN;
            const GREATEST: Self = $t::MAX;
            fn bits(self) -> $bits {
                self as $bits
            }
            fn of(bits: $bits) -> Self {
                bits as $t
            }
        }
    )*};
}
integers! {
    u8 as u8: NONE;
    i8 as u8: SIGNED;
    u16 as u16: NONE;
    i16 as u16: SIGNED;
}

/// Distributions of keys.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Any,
    Few,
    Equal,
    /// Most keys are equal, so that counters overflow while others do not.
    Mostly,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Any, Self::Few, Self::Equal, Self::Mostly];

    fn keys<K: Integer>(self, n: usize, seed: u64) -> Vec<K> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut any = move || Narrow::of_value(random.random());
        let few = [K::LEAST, K::GREATEST, K::of(any()), K::of(any()), K::of(any())];
        (0..n)
            .map(|i| match self {
                Self::Any => K::of(any()),
                Self::Few => few[any().value() as usize % few.len()],
                Self::Equal => few[2],
                Self::Mostly if i % 10 == 3 => K::of(any()),
                Self::Mostly => few[1],
            })
            .collect()
    }
}

/// Sorts the keys of `array` from index `begin` on, as the library does.
fn sort<K: Integer, const NT: usize, const SCAN_NT: usize, const EACH: usize>(
    emulator: &mut Emulator,
    array: Buffer<K::Bits>,
    (begin, n): (usize, usize),
    (blocks, coding): (u32, Coding<K::Bits>),
) -> Result<(), Fault> {
    let (counts, offsets) = (emulator.buffer(&vec![0; K::Bits::VALUES]), emulator.uninit::<u32>(K::Bits::VALUES));
    let keys = array.as_mut_ptr().wrapping_add(begin);
    let bytes = count_keys::shared_bytes(size_of::<K>());
    // SAFETY: `array` has `begin + n` keys. The emulator reports every access outside of the buffers.
    emulator.launch("count_keys", blocks, NT as u32, bytes, || unsafe {
        count_keys::<K::Bits, NT>(keys, n, counts.as_mut_ptr());
    })?;
    // SAFETY: both arrays have `VALUES` words, and the launch is one block.
    emulator.launch("scan_counts", 1, SCAN_NT as u32, scan_counts::SHARED_BYTES, || unsafe {
        scan_counts::<K::Bits, SCAN_NT, EACH>(counts.as_ptr(), offsets.as_mut_ptr(), coding);
    })?;
    let blocks = n.div_ceil(K::Bits::IN_WORD * fill_keys::BLOCK_WORDS) as u32;
    // SAFETY: `array` has `begin + n` keys, and the blocks have words for all of them.
    emulator.launch("fill_keys", blocks, fill_keys::THREADS, 0, || unsafe {
        fill_keys::<K::Bits>(keys, n, offsets.as_ptr(), coding);
    })
}

fn check_sort<K: Integer, const NT: usize, const SCAN_NT: usize, const EACH: usize>(n: usize, blocks: u32) {
    let seed = fresh_seed();
    for (i, kind) in Kind::ALL.into_iter().enumerate() {
        let (begin, descending) = ((seed as usize + i) % 9, ((seed >> 8) as usize + i) & 1 == 1);
        let keys: Vec<K> = kind.keys(begin + n + 3, seed);
        let mut expected = keys.clone();
        expected[begin..begin + n].sort();
        if descending {
            expected[begin..begin + n].reverse();
        }
        let coding = if descending { K::CODING.reversed() } else { K::CODING };
        let sorted = emulated(seed, |emulator| {
            let array = emulator.buffer(&keys.iter().map(|key| key.bits()).collect::<Vec<_>>());
            sort::<K, NT, SCAN_NT, EACH>(emulator, array, (begin, n), (blocks, coding))?;
            emulator.read(array)
        });
        let sorted: Vec<K> = sorted.into_iter().map(K::of).collect();
        assert!(sorted == expected, "{kind:?}, n = {n}, begin = {begin}, descending = {descending}, seed {seed}");
    }
}

#[test]
fn keys_of_one_byte_are_sorted_by_counting() {
    for n in [1, 2, 7, 8, 9, 31, 255, 16_383, 16_384, 16_391, 70_000] {
        check_sort::<u8, 512, 256, 1>(n, 3);
        check_sort::<i8, 512, 256, 1>(n, 2);
    }
}

#[test]
fn keys_of_two_bytes_are_sorted_by_counting() {
    // A tile has 16,384 keys, and a counter is emptied every 32,768 keys.
    for n in [1, 3, 4, 5, 2000, 16_384, 16_390, 100_003] {
        check_sort::<u16, 1024, 1024, 16>(n, 1);
        check_sort::<i16, 1024, 1024, 16>(n, 2);
    }
}

#[test]
fn all_keys_widen_in_order_and_narrow_back() {
    fn check<K: Integer>(coding: Coding<K::Bits>) {
        let (n, count) = (K::Bits::VALUES + 1, K::Bits::VALUES - 5);
        let keys: Vec<K::Bits> = (0..n).map(|i| K::Bits::of_value(i as u32)).collect();
        let blocks = n.div_ceil(TILE) as u32;
        let (wide, back) = emulated(1, |emulator| {
            let (keys, wide) = (emulator.buffer(&keys), emulator.uninit(n));
            let (back, counted) = (emulator.buffer(&vec![K::Bits::of_value(0); n]), emulator.buffer(&[count as u64]));
            // SAFETY: all arrays have `n` elements, and the blocks have `TILE` keys each.
            emulator.launch("widen_keys", blocks, THREADS, 0, || unsafe {
                widen_keys(keys.as_ptr(), n, wide.as_mut_ptr(), coding);
            })?;
            // SAFETY: all arrays have `n` elements, `count` is below `n`, and the blocks have `TILE` keys each.
            emulator.launch("narrow_keys", blocks, THREADS, 0, || unsafe {
                narrow_keys(wide.as_ptr(), n, counted.as_ptr(), back.as_mut_ptr(), coding);
            })?;
            Ok((emulator.read(wide)?, emulator.read(back)?))
        });
        assert!(back[..count] == keys[..count]);
        assert!(back[count..].iter().all(|key| key.value() == 0), "keys behind the count are left alone");
        let mut in_order: Vec<usize> = (0..K::Bits::VALUES).collect();
        in_order.sort_by_key(|&i| wide[i]);
        let in_order: Vec<K> = in_order.into_iter().map(|i| K::of(keys[i])).collect();
        let is_descending = in_order[0] == K::GREATEST;
        let expected = coding != K::CODING;
        assert_eq!(is_descending, expected);
        assert!(in_order.is_sorted_by(|a, b| if is_descending { a > b } else { a < b }));
    }
    check::<u8>(u8::CODING);
    check::<i8>(i8::CODING.reversed());
    check::<u16>(u16::CODING.reversed());
    check::<i16>(i16::CODING);
}
