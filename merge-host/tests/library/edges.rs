//! Arguments at the ends of their ranges: 0, the greatest numbers, elements without a size, empty slices, and lengths
//! that do not fit. Each call returns a result or an error.

use crate::external::slices::{Calls, FromSlice, ToVec, pairs};
use merge_host::external::window::{self, Window};
use merge_host::external::{self, Options, Shape};
use merge_host::parallel::{self, share_length};
use merge_host::records::{self, Field, RecordKey, Sorter};
use merge_host::splits::{InMemory, exact_splits};
use merge_host::{
    BatchKernel, Bound, CostModel, Engine, Error, Gpus, SetOperation, SortKernel, SortOrder, TopK, Work,
    first_unsorted, permutation, unique, unique_indices,
};
use std::cmp::Ordering;
use std::panic::catch_unwind;
use std::process::Command;
use std::{env, iter};

/// Numbers at the ends of the range, and around the sizes of addresses.
const ENDS: [usize; 9] =
    [0, 1, 2, 3, usize::MAX / 2, isize::MAX as usize + 1, usize::MAX - 7, usize::MAX - 1, usize::MAX];

fn engines() -> [Engine; 2] {
    [Engine::cpu_with_threads(1).unwrap(), Engine::cpu()]
}

#[test]
fn shapes_of_any_sizes() {
    for key in ENDS.into_iter().chain([4, 16]) {
        for width in ENDS {
            let shape = Shape { key, width };
            for number in [0, 1, 1 << 20, u64::from(u32::MAX) + 1, u64::MAX] {
                let _ = (shape.in_memory(number), shape.most_in_memory(number), shape.most_on_gpu(number));
                let _ = shape.spilled(number);
                let least = shape.least_memory();
                for limit in [None, Some(0), Some(usize::MAX)] {
                    match shape.fan_in(number, limit) {
                        Ok(runs) => assert!((2..=4096).contains(&runs) && number >= least, "{shape:?} {number}"),
                        Err(error) => assert_eq!((error.memory, error.needed), (number, least)),
                    }
                }
                for gpu in [None, Some(0), Some(1), Some(1 << 30), Some(u64::MAX)] {
                    match shape.chunk(number, gpu) {
                        Ok(keys) => assert!(keys > 0 && keys <= u32::MAX as usize && number >= least),
                        Err(error) => assert!(error.needed > error.memory || least == u64::MAX, "{error}"),
                    }
                }
            }
        }
    }
    assert_eq!(Shape { key: 0, width: 0 }.in_memory(10), 20);
}

#[test]
fn the_least_memory_is_enough_and_less_is_refused() {
    for width in [0, 1, 8, 5000] {
        let input = pairs::<u32>(20_000, 1 << 31, width);
        let least = Shape { key: 4, width }.least_memory();
        let sort = |memory: u64| {
            let options = Options { width, ..Options::new(memory) };
            let begin = || Ok(ToVec::new(width, Calls::default()));
            let source = FromSlice::new(input.clone(), width);
            let sorted = external::sort(&options, source, begin, &mut &Engine::cpu(), &mut ());
            let source = vec![FromSlice::new(input.sorted(&options), width)];
            let merged = external::merge(&options, source, begin, &Engine::cpu(), &mut ());
            (
                sorted.map(|(target, _)| target.pairs == input.sorted(&options)),
                merged.map(|(_, summary)| summary.keys_written),
            )
        };
        let (sorted, merged) = sort(least);
        assert_eq!((sorted.unwrap(), merged.unwrap()), (true, 20_000));
        for memory in [0, 1000, least - 1] {
            let (sorted, merged) = sort(memory);
            for error in [sorted.map(drop).unwrap_err(), merged.map(drop).unwrap_err()] {
                let external::Error::TooLittleMemory(error) = error else { panic!("{error}") };
                assert_eq!((error.memory, error.needed, error.key, error.width), (memory, least, 4, width));
            }
        }
        // Keys that fit in memory need no more than their memory.
        let few = pairs::<u32>(3, 1 << 31, width);
        let options = Options { width, ..Options::new(Shape { key: 4, width }.in_memory(3) as u64) };
        let begin = || Ok(ToVec::new(width, Calls::default()));
        external::sort(&options, FromSlice::new(few, width), begin, &mut &Engine::cpu(), &mut ()).unwrap();
    }
}

#[test]
fn options_of_any_size() {
    for width in [usize::MAX, usize::MAX / 4, 1 << 60] {
        for memory in [0, 1 << 20, u64::MAX] {
            let options = Options { width, fan_in: Some(usize::MAX), ..Options::new(memory) };
            let begin = || Ok(ToVec::<u32>::new(0, Calls::default()));
            // There are no keys to read, so there is no payload.
            let none = FromSlice::new(pairs(0, 1, 0), 0);
            let sorted = external::sort(&options, none, begin, &mut &Engine::cpu(), &mut ());
            assert_eq!(sorted.unwrap().1.keys_read, 0);
            let some = FromSlice::new(pairs(5, 9, 0), 0);
            assert!(external::sort(&options, some, begin, &mut &Engine::cpu(), &mut ()).is_err());
            let some = vec![FromSlice::new(pairs(5, 9, 0), 0)];
            assert!(external::merge(&options, some, begin, &Engine::cpu(), &mut ()).is_err());
        }
    }
    assert_eq!(window::splits::<u32>(&[]), [0; 0]);
    assert_eq!(window::splits(&[Window { keys: &[0u32; 0], continues: true }]), [0]);
}

#[test]
fn shares_of_any_length() {
    for total in ENDS {
        for block in ENDS {
            let length = share_length(total, block);
            assert!(length >= block.max(1), "{total} {block}");
            assert!(length == usize::MAX || length.is_multiple_of(block.max(1)), "{total} {block}");
        }
    }
    assert!(share_length(1000, 0) >= 1);
    parallel::for_each(iter::empty::<u8>(), |_| unreachable!());
    assert_eq!(parallel::map(iter::empty::<u8>(), |_| 1), [0; 0]);
    assert_eq!(parallel::find_first(0..0, Some), None);
    assert_eq!(parallel::try_for_each(iter::empty::<u8>(), |_| Err(5)), Ok(()));
}

#[test]
fn fields_anywhere_are_refused_where_records_do_not_have_them() {
    let kinds = [Field::unsigned, Field::signed, Field::float, Field::bytes];
    for engine in engines() {
        for field in kinds {
            for offset in ENDS {
                for size in ENDS {
                    let key = RecordKey::new(&[field(offset, size)]);
                    assert_eq!((key.end(), key.size()), (offset.saturating_add(size), size));
                    let fits = offset.checked_add(size).is_some_and(|end| end <= 4);
                    let is_float = field as usize == Field::float as fn(usize, usize) -> Field as usize;
                    let is_right = fits && (!is_float || [0, 2, 4, 8, 16].contains(&size));
                    let mut bytes = [4, 0, 0, 0, 3, 0, 0, 0];
                    let sorted = records::sort(&engine, &key, 4, &mut bytes);
                    assert_eq!(sorted.is_ok(), is_right, "{field:?} {offset} {size}: {sorted:?}");
                    assert_eq!(key.check(4), sorted.map(drop));
                    if !is_right {
                        assert_eq!(bytes, [4, 0, 0, 0, 3, 0, 0, 0]);
                        assert!(size == 0 || catch_unwind(|| key.compare(&bytes[..4], &bytes[4..])).is_err());
                    }
                }
            }
        }
        // Two fields that exceed the limit only in total.
        let key = RecordKey::new(&[Field::bytes(0, usize::MAX), Field::bytes(0, usize::MAX)]);
        assert_eq!((key.size(), key.end()), (usize::MAX, usize::MAX));
        let long = RecordKey::new(&[Field::bytes(0, 17 << 20)]);
        assert_eq!(long.check(usize::MAX), Err(Error::KeyTooLong { found: 17 << 20, most: 16 << 20 }));
        assert_eq!(RecordKey::new(&[Field::bytes(1, 16 << 20)]).check((16 << 20) + 1), Ok(()));
    }
    for size in 0..=17 {
        let is_right = [0, 2, 4, 8, 16].contains(&size);
        let expected = if is_right { Ok(()) } else { Err(Error::FloatSize { size }) };
        assert_eq!(RecordKey::new(&[Field::unsigned(0, 1), Field::float(1, size)]).check(100), expected);
    }
    let error = Error::FloatSize { size: 3 }.to_string();
    assert_eq!(error, "a field of the key is a floating-point number of 3 bytes, expected 2, 4, 8 or 16");
}

#[test]
fn records_of_any_size() {
    for engine in engines() {
        let key = RecordKey::new(&[]);
        for size in ENDS.into_iter().skip(2) {
            let sorted = records::sort(&engine, &key, size, &mut [1]);
            assert_eq!(sorted.unwrap_err(), Error::NotWholeRecords { found: 1, size });
            records::sort(&engine, &key, size, &mut []).unwrap();
            records::argsort::<u32>(&engine, &key, size, &[], &mut []).unwrap();
        }
    }
    // An index that is too great panics, even if its product with the size overflows to a valid offset.
    let gathered = |index: u64| catch_unwind(|| records::gather(b"aabb", 2, &[index], 0, &mut [0; 2]));
    assert!(gathered(1).is_ok());
    for index in [2, 1 << 63, u64::MAX] {
        assert!(gathered(index).is_err(), "{index}");
        let (key, mut words, mut indices) = (RecordKey::new(&[Field::bytes(0, 9)]), [7u64; 2], [0, index]);
        let sorter = Sorter { records: &[0; 32], size: 16, key: &key, kernel: SortKernel::Auto };
        let sort = move || sorter.sort::<u64, u64, ()>(&mut &Engine::cpu(), &mut words, &mut indices, &mut ()).is_ok();
        assert!(catch_unwind(std::panic::AssertUnwindSafe(sort)).is_err(), "{index}");
    }
    records::gather::<u32>(&[], 5, &[], 0, &mut []);
}

#[test]
fn permutations_of_nothing_and_of_what_is_not_there() {
    let gathered = |width, index: u64| {
        catch_unwind(move || {
            let mut out = vec![0; width];
            permutation::gather(width, &[b"aa", b"bb"], &[index], &mut out);
            out
        })
    };
    assert_eq!(gathered(2, 1).unwrap(), b"bb");
    for index in [2, 1 << 63, u64::MAX] {
        assert!(gathered(2, index).is_err(), "{index}");
    }
    for width in ENDS.into_iter().skip(1) {
        // Two values of this width do not fit one byte, even if the number of bytes overflows.
        assert!(catch_unwind(|| permutation::gather(width, &[&[0; 1]], &[0u32, 0], &mut [0])).is_err(), "{width}");
        assert!(catch_unwind(|| unique(&mut [1, 1], &mut [0], width, None)).is_err(), "{width}");
    }
    permutation::gather::<u32>(0, &[], &[], &mut []);
    permutation::gather::<u32>(usize::MAX, &[], &[], &mut []);
    permutation::permute::<String, u32>(&mut [], &[]).unwrap();
    permutation::permute(&mut [(); 3], &[2u32, 0, 1]).unwrap();
    permutation::permute_in_place(&mut [(); 3], &[2u64, 0, 1]).unwrap();
    assert!(permutation::permute(&mut [(); 3], &[2u32, 0, 3]).is_err());
    assert!(permutation::permute(units(usize::MAX).as_mut_slice(), &[0u32]).is_err());
    assert_eq!(unique::<u8>(&mut [], &mut [], usize::MAX, None), 0);
    assert_eq!(unique_indices::<u8, u32>(&[], &mut []), 0);
    assert_eq!(first_unsorted::<u8>(&[]), None);
}

/// `count` elements without a size.
fn units(count: usize) -> Vec<()> {
    vec![(); count]
}

#[test]
fn any_number_of_elements_without_a_size() {
    let compare = |_: &(), _: &()| Ordering::Less;
    for engine in engines() {
        for count in ENDS {
            engine.sort_by(&mut units(count), compare).unwrap();
            engine.sort_by_key(&mut units(count), |_| 5u32).unwrap();
            assert_eq!(engine.merge_by(units(count), units(0), compare).unwrap().0.len(), count);
            assert_eq!(engine.merge_by(units(0), units(count), compare).unwrap().0.len(), count);
            let both = engine.merge_by(units(count), units(count), compare);
            match count.checked_mul(2) {
                Some(sum) => assert_eq!(both.unwrap().0.len(), sum),
                None => assert_eq!(both.unwrap_err(), Error::OutOfHostMemory { needed: u64::MAX }),
            }
            if count > 1000 {
                assert!(engine.argsort_by_key(&units(count), &mut [0u64], |_| 1u8).is_err());
                let mismatch = engine.sort_owned(SortOrder::Ascending, (&mut [1u32], &mut units(count)));
                assert!(matches!(mismatch, Err(Error::ValuesMismatch { keys: 1, .. })));
                let run = (&[1u8; 2][..], &units(count)[..]);
                assert!(engine.merge(run, run, (&mut [0; 4], &mut units(4))).is_err());
                assert!(engine.sort_with(SortOrder::Ascending, (&mut [1u32; 2], &mut units(count))).is_err());
                assert!(engine.sort_segments(SortOrder::Ascending, (&mut [1u32], &mut units(count)), &[0, 1]).is_err());
                let mut top = TopK::new(SortOrder::Ascending, 2);
                assert!(top.add(&engine, (&[1u32], &units(count))).is_err());
            }
        }
        let (mut keys, mut values) = ([3u32, 1, 2], [(); 3]);
        engine.sort_with(SortOrder::Ascending, (&mut keys, &mut values)).unwrap();
        engine.sort_owned(SortOrder::Descending, (&mut keys, &mut values)).unwrap();
        assert_eq!(keys, [3, 2, 1]);
    }
}

#[test]
fn elements_without_a_size_are_dropped_once() {
    thread_local!(static DROPPED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
    struct Unit;
    impl Drop for Unit {
        fn drop(&mut self) {
            DROPPED.set(DROPPED.get() + 1);
        }
    }
    let (merged, _) = Engine::cpu().merge_by(vec![Unit, Unit], vec![Unit], |_, _| Ordering::Equal).unwrap();
    assert_eq!((merged.len(), DROPPED.get()), (3, 0));
    drop(merged);
    assert_eq!(DROPPED.get(), 3);
}

#[test]
fn any_number_of_first_keys() {
    for engine in engines() {
        for k in ENDS {
            let mut top = TopK::new(SortOrder::Descending, k);
            top.add(&engine, &[5u32, 9, 7]).unwrap();
            top.add(&engine, &[]).unwrap();
            assert_eq!(top.into_sorted(&engine).unwrap().0, [9, 7, 5][..k.min(3)]);
            assert!(TopK::<u64>::max_bytes(k) >= k);
            let mut top = TopK::new(SortOrder::Ascending, k);
            top.add(&engine, (&[5u32, 9, 7], &[1u64, 2, 3])).unwrap();
            assert_eq!(top.into_sorted(&engine).unwrap().1, [1, 3, 2][..k.min(3)]);
        }
        assert_eq!(
            engine.top_k(SortOrder::Ascending, &[1u8], &mut [0; 2]).unwrap_err(),
            Error::TooFewKeys { k: 2, found: 1 }
        );
        assert!(engine.top_k(SortOrder::Ascending, &[1u8; 2], (&mut [0; 1], &mut [0u32; 2])).is_err());
    }
}

#[test]
fn numbers_of_keys_threads_and_gpus() {
    for number in ENDS {
        for work in [
            Work::sort::<u128>(number),
            Work::merge::<u8>(number).with_values(number),
            Work::sort_segments::<u64>(usize::MAX, number),
            Work::sort_segments::<u64>(number, usize::MAX).with_values(usize::MAX),
            Work::set_operation::<u32>(number).with_values(1),
            Work::top_k::<()>(number).with_values(number).from_files(),
        ] {
            let (costs, _) = (CostModel::default(), (work.bytes(), work.keys()));
            for count in ENDS {
                let _ = (costs.on_cpu(&work, count), costs.on_gpu(&work, true), costs.on_gpus(&work, count, false));
            }
            for engine in engines().into_iter().chain([Engine::auto()]) {
                let _ = engine.start_for::<u8>(&work);
            }
        }
        match Engine::cpu_with_threads(number) {
            Ok(engine) => _ = engine.sort(&mut [2, 1]).unwrap(),
            Err(error) => assert!(matches!(error, Error::Threads { threads, .. } if threads == number)),
        }
        assert!(Engine::gpu(number).is_err() || number < 3);
        let engine = Engine::auto_with(CostModel::default(), Gpus::Of(vec![number; 2]));
        engine.sort(&mut [2, 1]).unwrap();
    }
    assert_eq!(Work::sort::<u64>(2).with_values(usize::MAX).bytes(), usize::MAX);
}

#[test]
fn lengths_of_batches_and_offsets() {
    for engine in engines() {
        for d in ENDS {
            for a_len in ENDS {
                for (a, b, out) in [(0, 0, 0), (1, 1, 2), (2, 0, 2)] {
                    let (a, b, mut out) = (vec![1u32; a], vec![2; b], vec![0; out]);
                    let batch = engine.merge_batch(&a, &b, &mut out, d, a_len);
                    let is_right = (1..=1024).contains(&d)
                        && a_len <= d
                        && out.len().is_multiple_of(d)
                        && (a.len(), b.len()) == (out.len() / d * a_len, out.len() / d * (d - a_len));
                    assert_eq!(batch.is_ok(), is_right, "{d} {a_len}: {batch:?}");
                    if d == 0 {
                        assert_eq!(batch.unwrap_err(), Error::BadBatchLength { d: 0 });
                    }
                }
            }
            let mut keys = [3u8, 2, 1];
            for offsets in [&[][..], &[0], &[d], &[0, d], &[d, 3], &[0, 3, d], &[0, d, 3]] {
                let is_right = offsets.is_sorted() && offsets.first() == Some(&0) && offsets.last() == Some(&3);
                assert_eq!(engine.sort_segments(SortOrder::Ascending, &mut keys, offsets).is_ok(), is_right);
                let ragged = engine.merge_ragged((&keys, offsets), (&[], &vec![0; offsets.len()]), &mut [0; 3]);
                assert_eq!(ragged.is_ok(), is_right, "{offsets:?}");
                let groups = engine.merge_many_ragged(&keys, (&[0, 3], offsets), &mut [0; 3]);
                assert_eq!(
                    groups.is_ok(),
                    offsets.first() == Some(&0) && offsets.last() == Some(&1) && offsets.is_sorted()
                );
            }
        }
        let mut out = Vec::new();
        engine.set_operation::<u8>(SetOperation::Union, &[], &[], &mut out).unwrap();
        engine.unique::<u8>(&[], &mut out).unwrap();
        engine.merge_many(&[&[0u8; 0]; 0], &mut []).unwrap();
        assert!(engine.merge_many(&[&[0u8; 0]; 0], &mut [1]).is_err());
        engine.bounds::<u8, u32>(Bound::Lower, &[], &[], &mut []).unwrap();
        assert!(engine.bounds::<u8, u32>(Bound::Upper, &[1], &[], &mut []).is_err());
    }
    assert!("".parse::<BatchKernel>().is_err());
}

#[test]
fn splits_at_any_rank() {
    let runs: [&[u32]; 3] = [&[1, 3, 3, 5], &[], &[2, 3, 8]];
    for bits in [1, 3, 16] {
        let splits = |ranks: &[u64]| exact_splits(&mut InMemory::new(&runs), ranks, bits).unwrap();
        assert_eq!(splits(&[]), [0; 0]);
        // A rank behind all keys gives the split at the end.
        for rank in [7, 8, u64::MAX] {
            assert_eq!(splits(&[rank, 0, rank]), [4, 0, 3, 0, 0, 0, 4, 0, 3], "{rank}");
        }
        assert_eq!(exact_splits(&mut InMemory::<u8>::new(&[]), &[0, u64::MAX], bits), Ok(vec![]));
        assert_eq!(exact_splits(&mut InMemory::<u8>::new(&[&[], &[]]), &[5], bits), Ok(vec![0, 0]));
    }
}

#[test]
fn a_variable_that_says_what_it_cannot_say_is_an_error() {
    const CHILD: &str = "EDGES_TEST_CHILD";
    let name = "edges::a_variable_that_says_what_it_cannot_say_is_an_error";
    let Ok(said) = env::var(merge_host::VECTORS.0).or_else(|_| env::var(CHILD)) else {
        for said in ["none", "avx2", "avx512", "", "sse", "AVX2", "avx2 ", "avx1024"] {
            let mut child = Command::new(env::current_exe().unwrap());
            child.args(["--exact", name]).env(merge_host::VECTORS.0, said).env(CHILD, said);
            let output = child.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{said:?}: {text}");
        }
        return;
    };
    for engine in engines().into_iter().chain([Engine::auto()]) {
        let mut keys = [2u32, 1];
        let sorted = engine.sort(&mut keys);
        if merge_host::VECTORS.1.contains(&&*said) {
            assert_eq!((sorted.map(drop), keys), (Ok(()), [1, 2]));
        } else {
            let error = sorted.unwrap_err();
            assert_eq!((&error, keys), (&Error::Vectors { found: said.clone() }, [2, 1]));
            let expected =
                format!("the environment variable MERGE_HOST_VECTORS is `{said}`, expected one of none, avx2, avx512");
            assert_eq!(error.to_string(), expected);
            assert!(engine.merge(&[1], &[2], &mut [0; 2]).is_err());
        }
    }
}
