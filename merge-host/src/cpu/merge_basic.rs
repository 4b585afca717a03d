//! Basic.
use crate::Key;
use kernels_gpu::key::Key as _;
use kernels_gpu::sequential::merge_sequential;

pub(crate) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K]) {
    merge_sequential(a, b, |k, key| out[k] = K::from_ordered(key));
}
