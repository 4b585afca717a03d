//! Whether a result is right.

use crate::input::{Input, Value, in_parts, mix};
use crate::{Case, Failure, Op};
use merge_host::Key;

/// Checks a result against nothing but the input, and returns the checksum of its keys.
///
/// Within a run keys are in order, equal ones in the order of their values, and what came out is what went in: for keys
/// alone by a checksum, with values because each has the key that it had in the input. There is only one such result, as
/// all equal keys have equal bits and values are places in the input, which is `sorted` if there are values.
pub(crate) fn verify<K: Key, V: Value>(case: Case, input: &Input<K>, keys: &[K], values: &[V]) -> Result<u64, Failure> {
    let starts = Starts::of(case, input);
    let ascend = |i: usize| {
        let (before, this) = (keys[i - 1].to_ordered(), keys[i].to_ordered());
        before < this || before == this && (values.is_empty() || values[i - 1] < values[i])
    };
    let is_misplaced = |&i: &usize| i > 0 && !ascend(i) && !starts.contain(i);
    let belong = |&i: &usize| {
        let place: u64 = values[i].into();
        let b = &input.b.keys;
        let key = input.a.keys.get(place as usize).or_else(|| b.get(place as usize - input.a.keys.len()));
        key.is_some_and(|key| key.to_ordered() == keys[i].to_ordered())
    };
    let first = |is_bad: &(dyn Fn(&usize) -> bool + Sync)| {
        in_parts(keys.len(), |mut part| part.find(|i| is_bad(i))).into_iter().flatten().next()
    };
    if let Some(i) = first(&is_misplaced) {
        return Err(format!("wrong result: key {i} of {} is out of order", keys.len()).into());
    }
    if let Some(i) = (!values.is_empty()).then(|| first(&|i| !belong(i))).flatten() {
        return Err(format!("wrong result: value {i} of {} does not belong to its key", keys.len()).into());
    }
    let found = sum(keys);
    if found != sum(&input.a.keys).wrapping_add(sum(&input.b.keys)) {
        return Err("wrong result: the keys are not those of the input".into());
    }
    Ok(found)
}

/// The sum of the keys' mixed bits.
fn sum<K: Key>(keys: &[K]) -> u64 {
    let bits = |key: &K| {
        let mut bytes = [0; 8];
        bytes[..size_of::<K>()].copy_from_slice(bytemuck::bytes_of(key));
        u64::from_le_bytes(bytes)
    };
    let parts = in_parts(keys.len(), |part| keys[part].iter().fold(0u64, |sum, key| sum.wrapping_add(mix(bits(key)))));
    parts.into_iter().fold(0, u64::wrapping_add)
}

/// Where runs of the output begin.
enum Starts {
    One,
    Every(usize),
    At(Vec<usize>),
}

impl Starts {
    fn of<K>(case: Case, input: &Input<K>) -> Self {
        match case.op {
            Op::Merge(_) | Op::Sort => Starts::One,
            Op::Batch { d, .. } => Starts::Every(d),
            Op::Ragged => Starts::At(input.a.offsets.iter().zip(&input.b.offsets).map(|(a, b)| a + b).collect()),
        }
    }

    fn contain(&self, i: usize) -> bool {
        match self {
            Starts::One => i == 0,
            Starts::Every(d) => i.is_multiple_of(*d),
            Starts::At(starts) => starts.binary_search(&i).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::OnCpu;
    use crate::{Group, Place, Scale, Type};
    use merge_host::{Engine, MergeKernel};

    #[test]
    fn every_case_of_a_small_scale_is_right() {
        for place in [Place::cpu(), Place::gpu().unwrap_or_else(|_| Place::cpu())] {
            for case in Group::ALL.iter().flat_map(|group| group.cases(&Scale::gpu(12))) {
                let mut work = place.set_up(case).expect("it fits into memory");
                work.time().expect("the engine works");
                work.verify().unwrap_or_else(|failure| panic!("{case}: {failure}"));
            }
        }
    }

    #[test]
    fn wrong_results_are_found() {
        let case = Case {
            op: Op::Merge(MergeKernel::Auto),
            key: Type::U64,
            value: Some(Type::U32),
            n: 10_000,
            distribution: crate::input::Distribution::Dups16,
        };
        let engine = Engine::cpu();
        let mut work = OnCpu::<u64, u32>::new(&engine, case).expect("it fits into memory");
        work.run().expect("the engine works");
        let input = Input::new(case, &engine).expect("the engine works");
        let (keys, values) = (&work.keys, &work.values);
        let failure = |keys: &[u64], values: &[u32]| verify(case, &input, keys, values).err().map(|e| e.to_string());
        assert_eq!(failure(keys, values), None);

        let unstable = (1..case.n).find(|&i| keys[i - 1] == keys[i]).expect("there are only sixteen keys");
        let mut swapped = values.clone();
        swapped.swap(unstable - 1, unstable);
        assert!(failure(keys, &swapped).is_some_and(|failure| failure.contains("out of order")));

        let first_of_next = (1..case.n).find(|&i| keys[i - 1] != keys[i]).expect("there are sixteen keys");
        let mut swapped = values.clone();
        swapped.swap(0, first_of_next);
        assert!(failure(keys, &swapped).is_some());

        let mut lost = keys.clone();
        lost[case.n - 1] += 1;
        assert!(failure(&lost, &[]).is_some_and(|failure| failure.contains("not those of the input")));
    }
}
