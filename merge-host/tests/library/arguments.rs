//! All forms of the arguments that are keys, alone or with values: slices, arrays, vectors and boxed slices, in any
//! combination, without annotations.

use merge_host::{
    Bound, Engine, Error, MergeKernel, Reduction, SortOptions, SortOrder, TopK, descending, descending_mut,
};

const DOWN: SortOrder = SortOrder::Descending;

#[test]
fn keys_alone_are_in_any_container() {
    let engine = Engine::cpu();
    let (mut array, mut vector, mut boxed) = ([3, 1, 2], vec![3.5, 1.5, 2.5], vec![3u8, 1, 2].into_boxed_slice());
    engine.sort(&mut [3, 1, 2]).unwrap();
    engine.sort(&mut vec![3u64, 1, 2]).unwrap();
    engine.sort(&mut array).unwrap();
    engine.sort(&mut vector).unwrap();
    engine.sort(&mut boxed).unwrap();
    assert_eq!((array, &vector[..], &boxed[..]), ([1, 2, 3], &[1.5, 2.5, 3.5][..], &[1, 2, 3][..]));
    engine.sort_with(DOWN, &mut array[1..]).unwrap();
    engine.sort_with(SortOptions::default().order(DOWN), &mut vector[..2]).unwrap();
    engine.sort_with(DOWN, &mut boxed[..]).unwrap();
    assert_eq!((array, &vector[..], &boxed[..]), ([1, 3, 2], &[2.5, 1.5, 3.5][..], &[3, 2, 1][..]));
    engine.sort(descending_mut(&mut array)).unwrap();
    assert_eq!(array, [3, 2, 1]);
    let slice: &mut [i32] = &mut array;
    engine.sort(&mut *slice).unwrap();
    engine.sort(slice).unwrap();
    assert_eq!(array, [1, 2, 3]);
}

#[test]
fn values_are_in_a_container_of_their_own() {
    let engine = Engine::cpu();
    let names = ["three", "one", "two"];
    let (mut keys, mut values) = ([3u32, 1, 2], names.to_vec());
    engine.sort((&mut keys, &mut values)).unwrap();
    assert_eq!((keys, &values[..]), ([1, 2, 3], &["one", "two", "three"][..]));
    let (mut keys, mut values) = (vec![3u32, 1, 2], names);
    engine.sort((&mut keys, &mut values)).unwrap();
    assert_eq!(values, ["one", "two", "three"]);
    engine.sort_with(DOWN, (&mut keys[1..], &mut values[1..])).unwrap();
    assert_eq!(values, ["one", "three", "two"]);
    let (mut keys, mut values) = (vec![3u32, 1, 2].into_boxed_slice(), [(), (), ()]);
    engine.sort((&mut keys, &mut values)).unwrap();
    assert_eq!(keys[..], [1, 2, 3]);
    let (keys, values): (&mut [u32], &mut [&str]) = (&mut [2, 1], &mut ["b", "a"]);
    engine.sort((&mut *keys, &mut *values)).unwrap();
    assert_eq!((keys, values), (&mut [1, 2][..], &mut ["a", "b"][..]));
    let mut owned = ["b", "a"].map(String::from);
    engine.sort_owned(SortOrder::Ascending, (&mut vec![2u32, 1], &mut owned)).unwrap();
    assert_eq!(owned, ["a", "b"]);
}

#[test]
fn inputs_and_outputs_differ_in_form() {
    let engine = Engine::cpu();
    let (a, b) = (vec![1u32, 5], [2, 5]);
    let (mut out, mut values) = ([0; 4], vec![0u64; 4]);
    engine.merge(&a, &b, &mut out).unwrap();
    assert_eq!(out, [1, 2, 5, 5]);
    engine.merge_with(MergeKernel::Basic, &a[..], &b, &mut out[..]).unwrap();
    engine.merge(&a, &[], &mut out[..2]).unwrap();
    assert_eq!(out, [1, 5, 5, 5]);
    engine.merge((&a, &[1, 2]), (&b[..], &vec![3, 4]), (&mut out, &mut values)).unwrap();
    assert_eq!((out, &values[..]), ([1, 2, 5, 5], &[1, 3, 2, 4][..]));
    engine.merge(descending(&[5, 1]), descending(&b[1..]), descending_mut(&mut out[..3])).unwrap();
    assert_eq!(out[..3], [5, 5, 1]);

    engine.merge_many(&[&a, &a], &mut out).unwrap();
    engine.merge_many(&[&a[..], &b, &[]], &mut out).unwrap();
    engine.merge_many(&a.chunks(1).chain(b.chunks(1)).collect::<Vec<_>>(), &mut out).unwrap();
    engine.merge_many(&[(&a, &[1, 2]), (&a, &[3, 4])], (&mut out, &mut values)).unwrap();
    engine.merge_batch(&a, &b, &mut out, 2, 1).unwrap();
    engine.merge_batch((&a, &[1, 2]), (&b, &[3, 4]), (&mut out, &mut vec![0u64; 4]), 2, 1).unwrap();
    let offsets = vec![0, 2];
    engine.merge_ragged((&a, &offsets), (&b, &[0, 2]), &mut out).unwrap();
    engine.merge_ragged(((&a, &[1, 2]), &offsets), ((&b, &[3, 4]), &[0, 2]), (&mut out, &mut [0u64; 4])).unwrap();
    engine.merge_many_ragged(&a, (&offsets, &[0, 1]), &mut out[..2]).unwrap();
    engine.merge_many_ragged((&a, &[7, 8]), (&offsets, &[0, 1]), (&mut out[..2], &mut [0u64; 2])).unwrap();
    assert_eq!(out[..2], [1, 5]);
}

#[test]
fn operations_take_the_same_forms() {
    let engine = Engine::cpu();
    let (mut keys, mut values) = (vec![2u32, 1, 2, 1], [10u64, 20, 30, 40]);
    engine.sort_segments(SortOrder::Ascending, &mut keys, &[0, 2, 4]).unwrap();
    engine.sort_segments(DOWN, (&mut keys, &mut values), &[0, 2, 4]).unwrap();
    assert_eq!((&keys[..], values), (&[2, 1, 2, 1][..], [20, 10, 40, 30]));
    let (count, _) = engine.sort_unique(DOWN, (&mut keys, &mut values)).unwrap();
    assert_eq!((&keys[..count], &values[..count]), (&[2, 1][..], &[20, 10][..]));
    assert_eq!(engine.sort_unique(SortOptions::default(), &mut [2u32, 2]).unwrap().0, 1);

    let (from, numbers) = ([5u32, 7, 6], vec![50u64, 70, 60]);
    let (mut first, mut numbered, mut indices) = ([0; 2], [0; 2], vec![0u64; 2]);
    engine.top_k(DOWN, &from, &mut first).unwrap();
    engine.top_k(DOWN, (&from, &numbers), (&mut first, &mut numbered)).unwrap();
    engine.top_k(DOWN, &from, (&mut first, &mut indices)).unwrap();
    assert_eq!((first, numbered, &indices[..]), ([7, 6], [70, 60], &[1, 2][..]));
    let (mut top, mut pairs) = (TopK::new(DOWN, 1), TopK::new(DOWN, 1));
    top.add(&engine, vec![1u32, 2]).unwrap();
    pairs.add(&engine, (&from, &numbers)).unwrap();
    assert_eq!(top.into_sorted(&engine).unwrap().0, [2]);
    assert_eq!(pairs.into_sorted(&engine).unwrap().1, [70]);

    let (mut out, mut totals) = (Vec::new(), Vec::new());
    engine.reduce_by_key(Reduction::Sum, (&[1u32, 1], &vec![2u32, 3]), (&mut out, &mut totals)).unwrap();
    assert_eq!((out, totals), (vec![1], vec![5]));
    engine.bounds(Bound::Upper, &[1u32], &[1, 1], &mut [0u32]).unwrap();
}

#[test]
fn the_lengths_of_keys_and_values_are_checked_by_name() {
    let engine = Engine::cpu();
    let (keys, values, mut out, mut out_values) = ([1u32, 2], [1u32, 2, 3], [0; 4], [0; 4]);
    let error = |what, keys, values| Err(Error::ValuesMismatch { what, keys, values });
    assert_eq!(engine.sort((&mut [1u32, 2], &mut [1u32])), error("the input", 2, 1));
    assert_eq!(engine.merge((&keys, &values), (&keys, &keys), (&mut out, &mut out_values)), error("a", 2, 3));
    assert_eq!(engine.merge((&keys, &keys), (&keys, &values), (&mut out, &mut out_values)), error("b", 2, 3));
    assert_eq!(engine.merge((&keys, &keys), (&keys, &keys), (&mut out, &mut out_values[..3])), error("out", 4, 3));
    let textbook = engine.merge_with(MergeKernel::Tiled, (&keys, &keys), (&keys, &keys), (&mut out, &mut out_values));
    assert_eq!(textbook, Err(Error::KeysAlone { kernel: "tiled" }));
    assert_eq!((out, out_values), ([0; 4], [0; 4]));
}
