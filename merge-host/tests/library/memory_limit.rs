//! Calls in a process with limited memory, from too little up to enough. Each call succeeds, or returns an error for
//! the lack of memory, and loses no element. The process is never aborted.

use crate::common::is_tried;
use crate::external::slices::{Calls, FromSlice, ToVec, pairs};
use merge_host::external::{self, Options};
use merge_host::permutation::{self, permute, permute_in_place, permuted};
use merge_host::records::{self, Field, RecordKey};
use merge_host::{Engine, Error, Reduction, SetOperation, SortOrder, TopK, release_memory};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::mem;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Identifies the child process.
const CHILD: &str = "MEMORY_LIMIT_TEST";
/// A number of elements that is worth two threads.
const COUNT: usize = 540_000;
/// The difference of two limits in bytes.
const STEP: u64 = 7200 << 10;
/// More bytes than any call needs.
const MOST: u64 = 256 << 20;

/// The number of bytes of this process's address space in use.
fn used() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

/// Calls `work` while the system provides at most `room` more bytes.
fn within<T>(room: u64, work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(used() + room), ..before }).unwrap();
    let result = work();
    setrlimit(Resource::As, before).unwrap();
    result
}

/// Calls `work` on fresh data with more and more memory until it has succeeded twice. `check` receives whether it has
/// succeeded, and the data. Half of the calls of a run are tried, at random, or all.
fn check_all<D>(
    name: &str,
    make: impl Fn() -> D,
    work: impl Fn(&mut D) -> Result<(), Error>,
    check: impl Fn(bool, D) -> bool,
) {
    if !is_tried() {
        return;
    }
    let (mut failed, mut succeeded) = (0, 0);
    // Each run of the tests has other limits.
    let first = u64::from(std::process::id()) * 4096 % STEP;
    for room in (first..MOST).step_by(STEP as usize) {
        let mut data = make();
        release_memory();
        let result = within(room, || work(&mut data));
        match &result {
            Ok(()) => succeeded += 1,
            Err(Error::OutOfHostMemory { .. } | Error::Threads { .. }) => failed += 1,
            Err(error) => panic!("{name}, {room} bytes: {error}"),
        }
        assert!(check(result.is_ok(), data), "{name}, {room} bytes: {result:?}");
        if succeeded == 2 {
            println!("{name}: {failed} failed, enough are {room} bytes");
            return;
        }
    }
    panic!("{name}: {MOST} bytes are not enough");
}

/// The number of elements that exist.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// An element that owns memory. [`ALIVE`] counts the elements.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owned(Box<u64>);

impl Owned {
    fn new(number: u64) -> Self {
        ALIVE.fetch_add(1, Relaxed);
        Self(Box::new(number))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Relaxed);
    }
}

/// A permutation of the numbers below `COUNT`.
fn number(i: usize) -> u64 {
    // The factor and `COUNT` have no common divisor: the factor is odd and not a multiple of 3 or 5.
    (i * 77_773 % COUNT) as u64
}

fn numbers() -> Vec<u64> {
    (0..COUNT).map(number).collect()
}

fn owned() -> Vec<Owned> {
    numbers().into_iter().map(Owned::new).collect()
}

/// Whether `found` has each number below `COUNT` once, in order if `is_sorted`.
fn are_numbers(is_sorted: bool, found: Vec<u64>) -> bool {
    let mut is_missing = vec![true; COUNT];
    (found.is_sorted() || !is_sorted)
        && found.len() == COUNT
        && found.iter().all(|&number| is_missing.get_mut(number as usize).is_some_and(mem::take))
}

/// [`are_numbers`] of elements, and whether each element is dropped once.
fn are_owned(is_sorted: bool, found: Vec<Owned>) -> bool {
    let is_right = are_numbers(is_sorted, found.iter().map(|element| *element.0).collect());
    drop(found);
    is_right && ALIVE.load(Relaxed) == 0
}

fn check_sorts(engine: &dyn Fn() -> Engine) {
    let sort = |keys: &mut Vec<u64>| engine().sort(keys).map(drop);
    check_all("sort u64", numbers, sort, are_numbers);
    let floats = || numbers().iter().map(|&number| number as f32).collect::<Vec<_>>();
    let sort = |keys: &mut Vec<f32>| engine().sort(keys).map(drop);
    check_all("sort f32", floats, sort, |ok, keys| are_numbers(ok, keys.iter().map(|&key| key as u64).collect()));
    let shorts = || numbers().iter().map(|&number| number as u16).collect::<Vec<_>>();
    let sort = |keys: &mut Vec<u16>| engine().sort_with(SortOrder::Descending, keys).map(drop);
    let sum = |keys: &[u16]| keys.iter().map(|&key| u64::from(key)).sum::<u64>();
    check_all("sort u16", shorts, sort, |ok, keys| {
        sum(&keys) == sum(&shorts()) && (!ok || keys.is_sorted_by(|a, b| a >= b))
    });
    let wide = || numbers().iter().map(|&number| u128::from(number) << 60).collect::<Vec<_>>();
    let sort = |keys: &mut Vec<u128>| engine().sort(keys).map(drop);
    check_all("sort u128", wide, sort, |ok, keys| are_numbers(ok, keys.iter().map(|key| (key >> 60) as u64).collect()));

    let with_values = || (numbers(), numbers());
    let sort = |data: &mut (Vec<u64>, Vec<u64>)| engine().sort_with(SortOrder::Ascending, (&mut data.0, &mut data.1));
    check_all(
        "sort with values",
        with_values,
        |data| sort(data).map(drop),
        |ok, (keys, values)| keys == values && are_numbers(ok, keys),
    );
    let large = || (numbers(), numbers().iter().map(|&number| [number; 4]).collect::<Vec<_>>());
    let sort = |data: &mut (Vec<u64>, Vec<_>)| engine().sort_with(SortOrder::Ascending, (&mut data.0, &mut data.1));
    check_all(
        "sort with large values",
        large,
        |data| sort(data).map(drop),
        |ok, (keys, values)| {
            (!ok || keys.iter().zip(&values).all(|(key, value)| *value == [*key; 4])) && are_numbers(ok, keys)
        },
    );
    let argsort = |data: &mut (Vec<u64>, Vec<u32>)| engine().argsort(SortOrder::Ascending, &data.0, &mut data.1);
    check_all(
        "argsort",
        || (numbers(), vec![0; COUNT]),
        |data| argsort(data).map(drop),
        |ok, (keys, indices)| !ok || are_numbers(true, indices.iter().map(|&index| keys[index as usize]).collect()),
    );
    let unique = |keys: &mut Vec<u64>| engine().sort_unique(SortOrder::Ascending, keys).map(drop);
    check_all("sort_unique", numbers, unique, are_numbers);
    let offsets = [0, 3, 300, 300, COUNT - 10_000, COUNT];
    let ranges = || offsets.windows(2).map(|ends| ends[0]..ends[1]);
    let are_sorted = |keys: &[u64]| ranges().all(|range| keys[range].is_sorted());
    let sort = |keys: &mut Vec<u64>| engine().sort_segments(SortOrder::Ascending, keys, &offsets).map(drop);
    check_all("sort_segments", numbers, sort, |ok, keys| (!ok || are_sorted(&keys)) && are_numbers(false, keys));
    let sort = |(keys, values): &mut (Vec<u64>, Vec<u64>)| {
        engine().sort_segments(SortOrder::Ascending, (keys, values), &offsets).map(drop)
    };
    check_all("sort_segments with values", with_values, sort, |ok, (keys, values)| {
        keys == values && (!ok || are_sorted(&keys)) && are_numbers(false, keys)
    });
    for k in [3, 200_000] {
        let with_out = || (numbers(), vec![0; (offsets.len() - 1) * k]);
        let select = |(keys, out): &mut (Vec<u64>, Vec<u64>)| {
            engine().top_k_segments(SortOrder::Ascending, &*keys, &offsets, k, out).map(drop)
        };
        check_all("top_k_segments", with_out, select, |ok, (keys, out)| {
            let first = ranges().zip(out.chunks(k)).all(|(range, first)| first[..k.min(range.len())].is_sorted());
            (!ok || first) && keys == numbers()
        });
    }
    check_all(
        "sort_streamed",
        || (numbers(), Mutex::new(vec![0; COUNT])),
        |data| {
            let (keys, written) = &*data;
            let read = |begin: usize, part: &mut [u64]| {
                part.copy_from_slice(&keys[begin..][..part.len()]);
                Ok::<_, Error>(())
            };
            let write = |begin: usize, part: &[u64]| {
                written.lock().unwrap()[begin..][..part.len()].copy_from_slice(part);
                Ok(())
            };
            engine().sort_streamed(SortOrder::Ascending, keys.len(), read, write).map(drop)
        },
        |ok, (_, written)| !ok || are_numbers(true, written.into_inner().unwrap()),
    );
}

fn check_elements(engine: &dyn Fn() -> Engine) {
    check_all("sort_by", owned, |items| engine().sort_by(items, Ord::cmp).map(drop), are_owned);
    check_all("sort_by_key", owned, |items| engine().sort_by_key(items, |item| *item.0).map(drop), are_owned);
    check_all(
        "sort_by_bytes",
        owned,
        |items| engine().sort_by_bytes(items, |item| bytemuck::bytes_of(&*item.0)).map(drop),
        |ok, mut items| {
            let is_sorted = items.is_sorted_by_key(|item| bytemuck::bytes_of(&*item.0).to_vec());
            // After an error, all elements are there in any order.
            items.sort();
            (!ok || is_sorted) && are_owned(true, items)
        },
    );
    check_all(
        "sort_by_key of few large elements",
        || vec![[0u64; 4096]; 100],
        |items| {
            items.iter_mut().enumerate().for_each(|(i, item)| item[0] = number(i));
            engine().sort_by_key(items, |item| item[0]).map(drop)
        },
        |ok, items| !ok || items.is_sorted(),
    );
    let is_argsort = |ok: bool, (keys, indices): (Vec<u64>, Vec<u32>)| {
        !ok || are_numbers(true, indices.iter().map(|&index| keys[index as usize]).collect())
    };
    let argsort = |data: &mut (Vec<u64>, Vec<u32>)| engine().argsort_by_key(&data.0, &mut data.1, |key| *key).map(drop);
    check_all("argsort_by_key", || (numbers(), vec![0; COUNT]), argsort, is_argsort);
    let sort = |data: &mut (Vec<u64>, Vec<Owned>)| {
        engine().sort_owned(SortOrder::Ascending, (&mut data.0, &mut data.1)).map(drop)
    };
    check_all(
        "sort_owned",
        || (numbers(), owned()),
        sort,
        |ok, (keys, values)| {
            keys.iter().eq(values.iter().map(|value| &*value.0)) && are_numbers(ok, keys) && are_owned(ok, values)
        },
    );
    // Without enough memory the elements are dropped.
    let runs = || {
        let (a, b) = (0..COUNT as u64).partition(|number| number % 3 == 0);
        [a, b].map(|run: Vec<u64>| run.into_iter().map(Owned::new).collect::<Vec<_>>())
    };
    let merge = |data: &mut [Vec<Owned>; 2]| {
        let [a, b] = std::mem::take(data);
        data[0] = engine().merge_by(a, b, Ord::cmp)?.0;
        Ok(())
    };
    check_all("merge_by", runs, merge, |ok, [merged, _]| match ok {
        true => are_owned(true, merged),
        false => merged.is_empty() && ALIVE.load(Relaxed) == 0,
    });
    let with_order = || (owned(), (0..COUNT as u32).rev().collect::<Vec<u32>>());
    let check = |_, (items, _): (_, _)| are_owned(false, items);
    check_all("permute", with_order, |data| permute(&mut data.0, &data.1), check);
    check_all("permute_in_place", with_order, |data| permute_in_place(&mut data.0, &data.1), check);
    let move_all = |data: &mut (Vec<Owned>, Vec<u32>)| {
        data.0 = permuted(std::mem::take(&mut data.0), &data.1)?;
        Ok(())
    };
    check_all("permuted", with_order, move_all, |ok, (items, _)| match ok {
        true => are_owned(false, items),
        false => items.is_empty() && ALIVE.load(Relaxed) == 0,
    });
}

fn check_records(engine: &dyn Fn() -> Engine) {
    // Large groups and small groups of equal first words, with different next words.
    let record = |i: usize| {
        let number = number(i);
        let group = if number < COUNT as u64 / 2 { 0 } else { number / 40 };
        let mut record = [0u8; 24];
        record[..8].copy_from_slice(&group.to_be_bytes());
        record[8..16].copy_from_slice(&number.to_be_bytes());
        record
    };
    let make = || (0..COUNT).flat_map(record).collect::<Vec<u8>>();
    let key = RecordKey::new(&[Field::bytes(0, 20)]);
    let number_of = |record: &[u8]| u64::from_be_bytes(record[8..16].try_into().unwrap());
    let sort = |data: &mut Vec<u8>| records::sort(&engine(), &key, 24, data).map(drop);
    check_all("records::sort", make, sort, |ok, data| {
        are_numbers(ok, data.chunks(24).map(number_of).collect()) && (ok || data == make())
    });
    let argsort =
        |data: &mut (Vec<u8>, Vec<u32>)| records::argsort(&engine(), &key, 24, &data.0, &mut data.1).map(drop);
    check_all(
        "records::argsort",
        || (make(), vec![0; COUNT]),
        argsort,
        |ok, (data, indices)| {
            !ok || are_numbers(true, indices.iter().map(|&index| number_of(&data[index as usize * 24..])).collect())
        },
    );
}

fn check_merges(engine: &dyn Fn() -> Engine) {
    let sorted = || (0..COUNT as u64).collect::<Vec<_>>();
    // 100 runs are merged in two passes.
    let offsets: Vec<usize> = (0..=100).map(|run| run * COUNT / 100).collect();
    let of_runs = || (0..100).flat_map(|run| (0..COUNT as u64 / 100).map(move |i| i * 100 + run)).collect::<Vec<_>>();
    let all_runs = of_runs();
    let list: Vec<&[u64]> = offsets.windows(2).map(|ends| &all_runs[ends[0]..ends[1]]).collect();
    let is_merged = |ok: bool, out: Vec<u64>| !ok || are_numbers(true, out);
    let merge = |out: &mut Vec<u64>| engine().merge_many(&list, out).map(drop);
    check_all("merge_many", || vec![0; COUNT], merge, is_merged);
    let values: Vec<[u64; 4]> = of_runs().iter().map(|&key| [key; 4]).collect();
    let pairs: Vec<(&[u64], &[[u64; 4]])> =
        list.iter().zip(values.chunks(COUNT / 100)).map(|(keys, values)| (*keys, values)).collect();
    let merge = |(out, values): &mut (Vec<u64>, Vec<[u64; 4]>)| engine().merge_many(&pairs, (out, values)).map(drop);
    check_all(
        "merge_many with values",
        || (vec![0; COUNT], vec![[0; 4]; COUNT]),
        merge,
        |ok, (out, values)| {
            (!ok || out.iter().zip(&values).all(|(key, value)| *value == [*key; 4])) && is_merged(ok, out)
        },
    );
    let merge = |out: &mut Vec<u64>| engine().merge_many_ragged(&all_runs, (&offsets, &[0, 0, 100]), out).map(drop);
    check_all("merge_many_ragged", || vec![0; COUNT], merge, is_merged);
    let (keys, half) = (sorted(), COUNT / 2);
    let (a, b) = keys.split_at(half);
    let merge =
        |out: &mut Vec<u64>| engine().merge_ragged((a, &[0, 0, half]), (b, &[0, 5, COUNT - half]), out).map(drop);
    check_all("merge_ragged", || vec![0; COUNT], merge, |_, _| true);
    let union =
        |out: &mut Vec<u64>| engine().set_operation(SetOperation::Union, &keys[..half], &keys[half..], out).map(drop);
    check_all("set_operation", Vec::new, union, is_merged);
    check_all("unique", Vec::new, |out| engine().unique(&keys, out).map(drop), is_merged);
    let lengths = |(out, lengths): &mut (Vec<u64>, Vec<u64>)| engine().run_lengths(&keys, (out, lengths)).map(drop);
    check_all("run_lengths", || (vec![], vec![]), lengths, |ok, (out, _)| is_merged(ok, out));
    let reduce = |(out, totals): &mut (Vec<u64>, Vec<u64>)| {
        engine().reduce_by_key(Reduction::Sum, (&keys, &keys), (out, totals)).map(drop)
    };
    check_all(
        "reduce_by_key",
        || (vec![], vec![]),
        reduce,
        |ok, (out, totals)| is_merged(ok, out) && is_merged(ok, totals),
    );
    let shuffled = numbers();
    let k = COUNT / 2;
    let top = |out: &mut Vec<u64>| engine().top_k(SortOrder::Ascending, &shuffled, out).map(drop);
    check_all("top_k", || vec![0; k], top, |ok, out| !ok || out.into_iter().eq(0..k as u64));
    let top = |out: &mut Vec<u64>| {
        let mut top = TopK::new(SortOrder::Ascending, k);
        top.add(&engine(), (&shuffled, &shuffled))?;
        *out = top.into_sorted(&engine())?.1;
        Ok(())
    };
    check_all("TopK with values", Vec::new, top, |ok, out| !ok || out.into_iter().eq(0..k as u64));
}

fn check_external(engine: &dyn Fn() -> Engine) {
    for width in [0, 12] {
        let input = pairs::<u32>(COUNT, 1 << 31, width);
        let options = Options { width, ..Options::new(512 << 10) };
        let expected = input.sorted(&options);
        let make = || (FromSlice::new(input.clone(), width), ToVec::new(width, Calls::default()));
        let make = || {
            let (source, mut target) = make();
            target.pairs.keys.reserve(COUNT);
            target.pairs.payload.reserve(COUNT * width);
            (Some(source), Some(target))
        };
        let sort = |(source, target): &mut (Option<FromSlice<u32>>, Option<ToVec<u32>>)| {
            let (source, to) = (source.take().unwrap(), target.take().unwrap());
            match external::sort(&options, source, || Ok(to), &mut &engine(), &mut ()) {
                Ok((to, _)) => {
                    *target = Some(to);
                    Ok(())
                }
                Err(
                    external::Error::Engine(error) | external::Error::Scratch(external::ScratchError::Memory(error)),
                ) => Err(error),
                Err(external::Error::Thread(error)) => Err(Error::Threads { threads: 1, reason: error.to_string() }),
                Err(error) => panic!("{error}"),
            }
        };
        check_all("external::sort", make, sort, |ok, (_, target)| !ok || target.unwrap().pairs == expected);
    }
}

/// Runs the test `name` again in a new process, which sees `value` in the variable [`CHILD`], and expects success.
fn pass_in_a_process(name: &str, value: &str, variables: &[(&str, &str)]) {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", &format!("memory_limit::{name}"), "--nocapture"]);
    let output = child.envs(variables.iter().copied()).env(CHILD, value).output().unwrap();
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success() && text.contains("1 passed"), "{value}, {variables:?}: {text}{errors}");
}

#[test]
fn the_threads_of_loops_start_with_any_memory_or_not_at_all() {
    const NAME: &str = "the_threads_of_loops_start_with_any_memory_or_not_at_all";
    let fill = |indices: &mut [u32]| {
        permutation::fill_identity(indices);
        assert!(indices.iter().copied().eq(0..indices.len() as u32));
    };
    if let Ok(room) = env::var(CHILD) {
        let mut indices = vec![0u32; 1 << 16];
        within(room.parse().unwrap(), || fill(&mut indices));
        return;
    }
    // Enough for small allocations, and up to more than the stacks of two threads. Each run has other limits.
    let first = u64::from(std::process::id()) % 8 * 4096;
    for room in (first + (256 << 10)..7 << 20).step_by(32 << 10) {
        pass_in_a_process(NAME, &room.to_string(), &[]);
    }
}

#[test]
fn too_little_memory_is_an_error_and_loses_nothing() {
    if env::var(CHILD).is_err() {
        // By its default thresholds the allocator would reuse freed memory, so that fewer allocations fail.
        let strict = [
            ("MALLOC_ARENA_MAX", "1"),
            ("MALLOC_MMAP_THRESHOLD_", "32768"),
            ("MALLOC_TOP_PAD_", "0"),
            ("MALLOC_TRIM_THRESHOLD_", "0"),
        ];
        for thresholds in [&strict[..], &[]] {
            pass_in_a_process("too_little_memory_is_an_error_and_loses_nothing", "1", thresholds);
        }
        return;
    }
    let (one, all) = (Engine::cpu_with_threads(1).unwrap(), Engine::cpu());
    all.sort(&mut numbers()).unwrap();
    let engines: [&dyn Fn() -> Engine; 3] =
        [&|| one.clone(), &|| all.clone(), &|| Engine::cpu_with_threads(2).unwrap()];
    for engine in engines {
        check_sorts(engine);
        check_elements(engine);
        check_records(engine);
        check_merges(engine);
        check_external(engine);
    }
}
