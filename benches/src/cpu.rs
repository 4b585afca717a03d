//! Cases on the CPU engine.

use crate::case::with_types;
use crate::input::{Input, Value, values};
use crate::verify::verify;
use crate::{Case, Failure, Op, Work};
use merge_host::{Engine, Key};
use std::time::{Duration, Instant};

pub(crate) fn set_up(engine: &Engine, case: Case) -> Result<Box<dyn Work + '_>, Failure> {
    fn set_up<K: Key, V: Value>(engine: &Engine, case: Case) -> Result<Box<dyn Work + '_>, Failure> {
        Ok(Box::new(OnCpu::<K, V>::new(engine, case)?))
    }
    with_types!(case, set_up(engine, case))
}

/// A case in host memory.
pub(crate) struct OnCpu<'e, K, V> {
    engine: &'e Engine,
    case: Case,
    input: Input<K>,
    input_values: [Vec<V>; 2],
    pub keys: Vec<K>,
    pub values: Vec<V>,
}

impl<'e, K: Key, V: Value> OnCpu<'e, K, V> {
    pub fn new(engine: &'e Engine, case: Case) -> Result<Self, Failure> {
        let input = Input::new(case, engine)?;
        let (m, rest) = (input.a.keys.len(), input.b.keys.len());
        let input_values = [values(case, 0, m), values(case, m, rest)];
        let values = vec![V::zeroed(); if case.value.is_some() { case.n } else { 0 }];
        Ok(Self { engine, case, keys: vec![K::zeroed(); case.n], values, input, input_values })
    }

    pub fn run(&mut self) -> Result<Duration, Failure> {
        let (a, b) = (&self.input.a, &self.input.b);
        let [av, bv] = &self.input_values;
        let (engine, keys, values) = (self.engine, &mut self.keys[..], &mut self.values[..]);
        if self.case.op == Op::Sort {
            keys.copy_from_slice(&a.keys);
        }
        let start = Instant::now();
        match (self.case.op, self.case.value) {
            (Op::Merge(kernel), None) => engine.merge_with(kernel, &a.keys, &b.keys, keys),
            (Op::Merge(_), Some(_)) => engine.merge_pairs((&a.keys, av), (&b.keys, bv), (keys, values)),
            (Op::Batch { d, .. }, None) => engine.merge_batch(&a.keys, &b.keys, keys, d, d / 2),
            (Op::Batch { d, .. }, Some(_)) => {
                engine.merge_batch_pairs((&a.keys, av), (&b.keys, bv), (keys, values), d, d / 2)
            }
            (Op::Ragged, None) => engine.merge_ragged((&a.keys, &a.offsets), (&b.keys, &b.offsets), keys),
            (Op::Ragged, Some(_)) => {
                engine.merge_ragged_pairs((&a.keys, av, &a.offsets), (&b.keys, bv, &b.offsets), (keys, values))
            }
            (Op::Sort, _) => engine.sort(keys),
        }?;
        Ok(start.elapsed())
    }
}

impl<K: Key, V: Value> Work for OnCpu<'_, K, V> {
    fn time(&mut self) -> Result<Duration, Failure> {
        self.run()
    }

    fn verify(&self) -> Result<u64, Failure> {
        verify(self.case, &self.input, &self.keys, &self.values)
    }
}
