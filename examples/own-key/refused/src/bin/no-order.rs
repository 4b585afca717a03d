//! A type that does not implement an order.

use bytemuck::{Pod, Zeroable};
use kernels_gpu::own::kernels;
use merge_host::emulated;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
}

kernels! {
    point: Point;
}

fn main() {
    emulated::sort_by::<Point, ()>(&mut [], 1);
}
