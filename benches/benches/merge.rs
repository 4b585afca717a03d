//! Merge: by size, key type, distribution and kernel, and with values, on the CPU engine and on a GPU.

use benches::Group;
use criterion::{Criterion, criterion_group, criterion_main};

fn merge(criterion: &mut Criterion) {
    benches::bench(criterion, Group::Merge);
}

criterion_group!(group, merge);
criterion_main!(group);
