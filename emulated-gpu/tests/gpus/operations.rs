//! Operations on slices in host memory, on one GPU and on three, against the CPU engine.

use super::{in_process, random};
use bytemuck::{cast_slice, zeroed_vec};
use merge_host::{
    Bound, Engine, GpuKey, Gpus, MergeKernel, Reduction, SetOperation, SortKernel, SortOptions, SortOrder, f16,
};
use rand::Rng;
use rand::rngs::StdRng;
use std::time::{Duration, Instant};
use tests::distribution::key;

/// The values of keys alone.
const NO_VALUES: [u32; 0] = [];

/// What an operation has written, as bytes.
type Outputs = Vec<(String, Vec<u8>)>;

/// The arguments of all operations.
struct Input<K> {
    keys: Vec<K>,
    values: Vec<u32>,
    wide_values: Vec<u64>,
    /// Two sorted arrays of any lengths, which have all keys together.
    sorted: [Vec<K>; 2],
    /// Offsets of runs in `keys` and in `runs`, in which all runs are sorted.
    offsets: Vec<usize>,
    runs: Vec<K>,
    /// Offsets of groups of runs.
    groups: Vec<usize>,
    order: SortOrder,
}

/// Offsets from 0 to `len` of runs of random lengths. Some runs are empty.
fn random_offsets(random: &mut StdRng, runs: usize, len: usize) -> Vec<usize> {
    let mut offsets: Vec<usize> = (1..runs).map(|_| random.random_range(0..=len)).collect();
    offsets.extend([0, len]);
    offsets.sort();
    offsets
}

impl<K: GpuKey> Input<K> {
    fn new(random: &mut StdRng) -> Self {
        let len = match random.random_range(0..4) {
            0 => random.random_range(0..40),
            1 => [1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097][random.random_range(0..8)],
            _ => random.random_range(0..5000),
        };
        let different = [u64::MAX, 7, 300][random.random_range(0..3)];
        let keys: Vec<K> = (0..len).map(|_| key(tests::distribution::mix(random.random_range(0..different)))).collect();
        let sorted = |keys: &[K]| {
            let mut keys = keys.to_vec();
            Engine::cpu().sort(&mut keys).unwrap();
            keys
        };
        let (a, b) = keys.split_at(random.random_range(0..=len));
        let run_count = 1 + random.random_range(0..40);
        let offsets = random_offsets(random, run_count, len);
        let runs = offsets.windows(2).flat_map(|ends| sorted(&keys[ends[0]..ends[1]])).collect();
        let group_count = 1 + random.random_range(0..5);
        Self {
            sorted: [sorted(a), sorted(b)],
            values: (0..len as u32).collect(),
            wide_values: (0..len as u64).map(|i| i << 33 | i).collect(),
            groups: random_offsets(random, group_count, run_count),
            order: [SortOrder::Ascending, SortOrder::Descending][random.random_range(0..2)],
            keys,
            offsets,
            runs,
        }
    }

    /// Values that a GPU does not move.
    fn pairs(&self) -> Vec<[u16; 2]> {
        self.values.iter().map(|value| [*value as u16, !*value as u16]).collect()
    }

    /// The outputs of sorts and selections.
    fn sorts(&self, engine: &Engine) -> Outputs {
        let Self { keys, values, wide_values, offsets, order, .. } = self;
        let mut outputs = Outputs::new();
        for kernel in SortKernel::ALL {
            let options = SortOptions::from(*order).kernel(kernel);
            let (mut sorted, mut moved, mut indices) = (keys.clone(), values.clone(), values.clone());
            engine.sort_with(options, &mut sorted).unwrap();
            add(&mut outputs, &format!("sort by {kernel}"), &sorted, &NO_VALUES);
            sorted.copy_from_slice(keys);
            engine.sort_with(options, (&mut sorted, &mut moved)).unwrap();
            add(&mut outputs, &format!("sort of pairs by {kernel}"), &sorted, &moved);
            engine.argsort(options, keys, &mut indices).unwrap();
            add(&mut outputs, &format!("argsort by {kernel}"), keys, &indices);
        }
        let (mut sorted, mut moved) = (keys.clone(), wide_values.clone());
        engine.sort_segments(*order, &mut sorted, offsets).unwrap();
        add(&mut outputs, "segments", &sorted, &NO_VALUES);
        sorted.copy_from_slice(keys);
        engine.sort_segments(*order, (&mut sorted, &mut moved), offsets).unwrap();
        add(&mut outputs, "segments of pairs", &sorted, &moved);
        let (mut sorted, mut moved) = (keys.clone(), values.clone());
        let (count, _) = engine.sort_unique(*order, (&mut sorted, &mut moved)).unwrap();
        add(&mut outputs, "unique sort", &sorted[..count], &moved[..count]);
        for k in [0, 1, keys.len() / 7, keys.len()].into_iter().filter(|k| *k <= keys.len()) {
            let (mut first, mut moved): (Vec<K>, Vec<u64>) = (zeroed_vec(k), vec![0; k]);
            engine.top_k(*order, keys, &mut first).unwrap();
            add(&mut outputs, &format!("top {k}"), &first, &NO_VALUES);
            engine.top_k(*order, (keys, wide_values), (&mut first, &mut moved)).unwrap();
            add(&mut outputs, &format!("top {k} with values"), &first, &moved);
        }
        outputs.extend(self.selections_from_segments(engine));
        outputs
    }

    /// The outputs of selections from segments, some of which are shorter than k.
    fn selections_from_segments(&self, engine: &Engine) -> Outputs {
        let Self { keys, values, offsets, order, .. } = self;
        let (pairs, mut outputs) = (self.pairs(), Outputs::new());
        for k in [0, 1, 50, 3000] {
            let len = (offsets.len() - 1) * k;
            let (mut first, mut moved, mut moved_pairs): (Vec<K>, _, _) =
                (zeroed_vec(len), vec![7; len], vec![[7; 2]; len]);
            engine.top_k_segments(*order, keys, offsets, k, &mut first).unwrap();
            add(&mut outputs, &format!("top {k} of segments"), &first, &NO_VALUES);
            engine.top_k_segments(*order, (keys, values), offsets, k, (&mut first, &mut moved)).unwrap();
            add(&mut outputs, &format!("top {k} of segments with values"), &first, &moved);
            engine.top_k_segments(*order, (keys, &pairs), offsets, k, (&mut first, &mut moved_pairs)).unwrap();
            add(&mut outputs, &format!("top {k} of segments with pairs"), &first, &moved_pairs);
        }
        outputs
    }

    /// The outputs of merges.
    fn merges(&self, engine: &Engine) -> Outputs {
        let Self { keys, values, sorted: [a, b], offsets, runs, groups, .. } = self;
        let (mut out, mut moved, mut outputs) = (keys.clone(), values.clone(), Outputs::new());
        let (of_a, of_b) = values.split_at(a.len());
        for kernel in MergeKernel::ALL {
            engine.merge_with(kernel, a, b, &mut out).unwrap();
            add(&mut outputs, &format!("merge by {kernel}"), &out, &NO_VALUES);
        }
        engine.merge((a, of_a), (b, of_b), (&mut out, &mut moved)).unwrap();
        add(&mut outputs, "merge of pairs", &out, &moved);
        let (pairs, mut moved_pairs) = (self.pairs(), self.pairs());
        let (of_a, of_b) = pairs.split_at(a.len());
        engine.merge((a, of_a), (b, of_b), (&mut out, &mut moved_pairs)).unwrap();
        add(&mut outputs, "merge with pairs", &out, &moved_pairs);
        let each: Vec<&[K]> = offsets.windows(2).map(|ends| &runs[ends[0]..ends[1]]).collect();
        engine.merge_many(&each, &mut out).unwrap();
        add(&mut outputs, "merge of runs", &out, &NO_VALUES);
        let pairs: Vec<_> =
            offsets.windows(2).map(|ends| (&runs[ends[0]..ends[1]], &values[ends[0]..ends[1]])).collect();
        engine.merge_many(&pairs, (&mut out, &mut moved)).unwrap();
        add(&mut outputs, "merge of runs of pairs", &out, &moved);
        engine.merge_many_ragged((runs, values), (offsets, groups), (&mut out, &mut moved)).unwrap();
        add(&mut outputs, "merge of groups of runs", &out, &moved);

        let (mut out, mut moved): (Vec<K>, Vec<u32>) = (zeroed_vec(2 * keys.len()), vec![0; 2 * keys.len()]);
        engine.merge_ragged((runs, offsets), (runs, offsets), &mut out).unwrap();
        add(&mut outputs, "ragged batch", &out, &NO_VALUES);
        let side = || ((runs, values), &offsets[..]);
        engine.merge_ragged(side(), side(), (&mut out, &mut moved)).unwrap();
        add(&mut outputs, "ragged batch of pairs", &out, &moved);
        outputs.extend(self.batches(engine));
        outputs
    }

    /// The outputs of merges of many pairs of equal lengths.
    fn batches(&self, engine: &Engine) -> Outputs {
        let [a, _] = &self.sorted;
        let mut outputs = Outputs::new();
        for d in [2, 30, 64, 1000, 1024] {
            // Pairs of equal runs, each the half of a pair. Parts of a sorted array are sorted.
            let part = &a[..a.len() / (d / 2) * (d / 2)];
            let mut out: Vec<K> = zeroed_vec(2 * part.len());
            engine.merge_batch(part, part, &mut out, d, d / 2).unwrap();
            add(&mut outputs, &format!("batch of {d}"), &out, &NO_VALUES);
        }
        outputs
    }

    /// The outputs of operations on sorted keys.
    fn sets(&self, engine: &Engine) -> Outputs {
        let Self { sorted: [a, b], wide_values, .. } = self;
        let (mut outputs, mut out) = (Outputs::new(), Vec::new());
        let all = [
            SetOperation::Union,
            SetOperation::Intersection,
            SetOperation::Difference,
            SetOperation::SymmetricDifference,
        ];
        for operation in all {
            engine.set_operation(operation, a, b, &mut out).unwrap();
            add(&mut outputs, &format!("{operation}"), &out, &NO_VALUES);
        }
        engine.unique(a, &mut out).unwrap();
        add(&mut outputs, "unique", &out, &NO_VALUES);
        let mut numbers = Vec::new();
        engine.run_lengths(a, (&mut out, &mut numbers)).unwrap();
        add(&mut outputs, "run lengths", &out, &numbers);
        for reduction in Reduction::ALL {
            engine.reduce_by_key(reduction, (a, &wide_values[..a.len()]), (&mut out, &mut numbers)).unwrap();
            add(&mut outputs, &format!("{reduction} by key"), &out, &numbers);
        }
        let mut bounds = vec![0u32; a.len()];
        for bound in [Bound::Lower, Bound::Upper] {
            engine.bounds(bound, a, b, &mut bounds).unwrap();
            add(&mut outputs, &format!("{bound:?} bounds"), a, &bounds);
        }
        outputs
    }

    fn outputs(&self, engine: &Engine) -> Outputs {
        [self.sorts(engine), self.merges(engine), self.sets(engine)].concat()
    }
}

/// Adds the output of an operation.
fn add<K: GpuKey, V: bytemuck::Pod>(outputs: &mut Outputs, what: &str, keys: &[K], values: &[V]) {
    outputs.push((what.to_owned(), [cast_slice::<K, u8>(keys), cast_slice(values)].concat()));
}

/// Compares all operations on one random input.
fn check<K: GpuKey>(random: &mut StdRng, gpus: &[Engine]) {
    let input = Input::<K>::new(random);
    let expected = input.outputs(&Engine::cpu());
    for gpu in gpus {
        for (found, expected) in input.outputs(gpu).iter().zip(&expected) {
            let what = format!("{} of {} {} on {gpu:?}", expected.0, input.keys.len(), K::NAME);
            assert!(found == expected, "{what}");
        }
    }
}

#[test]
fn operations_write_what_the_cpu_writes() {
    in_process("operations::operations_write_what_the_cpu_writes", "devices=3", || {
        let gpus = [Engine::gpu(1).unwrap(), Engine::gpu(Gpus::All).unwrap()];
        let (mut random, begin) = (random(), Instant::now());
        let mut rounds = 0;
        while begin.elapsed() < Duration::from_secs(8) || rounds == 0 {
            check::<u8>(&mut random, &gpus);
            check::<i16>(&mut random, &gpus);
            check::<f16>(&mut random, &gpus);
            check::<u32>(&mut random, &gpus);
            check::<f32>(&mut random, &gpus);
            check::<i64>(&mut random, &gpus);
            check::<f64>(&mut random, &gpus);
            rounds += 1;
        }
        println!("{rounds} rounds");
    });
}
