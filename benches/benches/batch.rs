//! Batch merge: by the length of the pairs, and of pairs of random lengths, on the CPU engine and on a GPU.

use benches::Group;
use criterion::{Criterion, criterion_group, criterion_main};

fn batch(criterion: &mut Criterion) {
    benches::bench(criterion, Group::Batch);
}

criterion_group!(group, batch);
criterion_main!(group);
