//! Instances of the operations for common types of keys and values, which the compiler shares with dependents.
//!
//! At the optimisation levels of tests, rustc uses an instance of a generic function that a dependency contains. So the
//! programs of a workspace's tests share the instances of this module. Without it, each program compiles its own.

use crate::{
    Bound, Engine, Error, Index, Key, MergeKernel, SelectedAs, SetOperation, SortOptions, TopK, first_unsorted, unique,
};

/// Keys, and a value for each.
type Pairs<'a, K, V> = (&'a mut Vec<K>, &'a mut Vec<V>);

/// Calls the operations on keys of type `K` with values of type `V`.
fn with_values<K: Key, V: Copy + Send + Sync + SelectedAs<V>>(
    engine: &Engine,
    (keys, values): Pairs<K, V>,
    (out, of_out): Pairs<K, V>,
) -> Result<(), Error> {
    let options = SortOptions::default();
    engine.sort_with(options, (&mut keys[..], &mut values[..]))?;
    engine.sort_unique(options, (&mut keys[..], &mut values[..]))?;
    engine.sort_segments(options, (&mut keys[..], &mut values[..]), &[0])?;
    let run = (&keys[..], &values[..]);
    engine.merge_with(MergeKernel::default(), run, run, (&mut out[..], &mut of_out[..]))?;
    engine.merge_many(&[run, run], (&mut out[..], &mut of_out[..]))?;
    engine.merge_batch(run, run, (&mut out[..], &mut of_out[..]), 2, 1)?;
    engine.merge_ragged((run, &[0]), (run, &[0]), (&mut out[..], &mut of_out[..]))?;
    engine.merge_many_ragged(run, (&[0], &[0]), (&mut out[..], &mut of_out[..]))?;
    engine.top_k_segments(options, run, &[0], 1, (&mut out[..], &mut of_out[..]))?;
    let mut top = TopK::<K, V>::new(options, 1);
    top.add(engine, run)?;
    top.into_sorted(engine).map(drop)
}

/// Calls the operations on keys of type `K` without values.
fn without_values<K: Key>(engine: &Engine, keys: &mut [K], out: &mut Vec<K>) -> Result<(), Error> {
    let options = SortOptions::default();
    engine.sort_with(options, &mut keys[..])?;
    engine.sort_unique(options, &mut keys[..])?;
    engine.sort_segments(options, &mut keys[..], &[0])?;
    engine.merge_with(MergeKernel::default(), &keys[..], &keys[..], &mut out[..])?;
    engine.merge_many(&[&keys[..], &keys[..]], &mut out[..])?;
    engine.merge_batch(&keys[..], &keys[..], &mut out[..], 2, 1)?;
    engine.merge_ragged((&keys[..], &[0]), (&keys[..], &[0]), &mut out[..])?;
    engine.merge_many_ragged(&keys[..], (&[0], &[0]), &mut out[..])?;
    engine.top_k(options, &keys[..], &mut out[..])?;
    engine.top_k_segments(options, &keys[..], &[0], 1, &mut out[..])?;
    engine.set_operation(SetOperation::Union, keys, keys, out)?;
    engine.unique(keys, out)?;
    engine.run_lengths(keys, (out, &mut Vec::new()))?;
    first_unsorted(keys);
    unique(keys, &mut [], 0, None);
    let mut top = TopK::<K>::new(options, 1);
    top.add(engine, &keys[..])?;
    top.into_sorted(engine).map(drop)
}

/// Calls the operations that return indices of keys.
fn indices<K: Key, I: Index>(engine: &Engine, keys: &[K], indices: &mut [I]) -> Result<(), Error> {
    engine.argsort(SortOptions::default(), keys, indices)?;
    engine.bounds(Bound::Lower, keys, keys, indices).map(drop)
}

/// Calls all operations, so that their instances are compiled in this package. Nothing calls it.
#[doc(hidden)]
pub fn instances(engine: &Engine) -> Result<(), Error> {
    macro_rules! instances {
        ($($K:ty: $($V:ty)*;)*) => {$(
            without_values::<$K>(engine, &mut [], &mut Vec::new())?;
            indices::<$K, u32>(engine, &[], &mut [])?;
            $(with_values::<$K, $V>(
                engine,
                (&mut Vec::new(), &mut Vec::new()),
                (&mut Vec::new(), &mut Vec::new()),
            )?;)*
        )*};
    }
    instances! {
        u8: u32 u64;
        u16: u32 u64;
        u32: u32 u64;
        u64: u32 u64;
        u128: u32 u64;
        f32: u64;
        i64: u32;
        f64:;
    }
    Ok(())
}
