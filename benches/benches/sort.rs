//! Sort: by size and key type, on the CPU engine and on a GPU.

use benches::Group;
use criterion::{Criterion, criterion_group, criterion_main};

fn sort(criterion: &mut Criterion) {
    benches::bench(criterion, Group::Sort);
}

criterion_group!(group, sort);
criterion_main!(group);
