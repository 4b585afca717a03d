//! Arrays in the memory of GPUs: work of several streams and threads, events, and captured streams.

use super::in_process;
use merge_host::{Error, Event, Gpu, MergeKernel, SortOrder, Stream, workspace};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::thread;

#[path = "../../../tests/examples/gpu_test/cuda.rs"]
#[expect(dead_code, reason = "the functions of a capture are used here")]
pub mod cuda;

/// Sorts two arrays on two streams, and merges them on the second one after an event of the first.
fn sort_and_merge(gpu: &Gpu, seed: u32) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let keys = |salt: u32| (0..2000).map(move |i: u32| (i ^ salt ^ seed).wrapping_mul(0x9e37_79b9) >> 12);
    let (one, other) = (gpu.stream()?, gpu.stream()?);
    let mut a = one.upload(&keys(1).collect::<Vec<_>>())?;
    let mut b = other.upload(&keys(2).collect::<Vec<_>>())?;
    let mut for_a = one.zeroed(workspace::sort::<u32, ()>(a.len()))?;
    let mut for_b = other.zeroed(workspace::sort::<u32, ()>(b.len()))?;
    one.sort(SortOrder::Ascending, &mut a, &mut for_a)?;
    other.sort(SortOrder::Ascending, &mut b, &mut for_b)?;
    // An array that moves makes its new stream wait for its old one.
    a.move_to(&other)?;
    let mut out = other.zeroed::<u32>(a.len() + b.len())?;
    let mut for_merge = other.zeroed(workspace::merge::<u32, ()>(MergeKernel::Auto, out.len()))?;
    let (begin, end) = (Event::new(&other)?, Event::new(&other)?);
    begin.record()?;
    other.merge(MergeKernel::Auto, &a, &b, &mut out, &mut for_merge)?;
    end.record()?;
    end.synchronize()?;
    end.elapsed_since(&begin)?;
    let mut expected: Vec<u32> = keys(1).chain(keys(2)).collect();
    expected.sort();
    Ok((out.download()?, expected))
}

#[test]
fn streams_of_several_threads_and_gpus_do_not_disturb_each_other() {
    in_process("streams::streams_of_several_threads_and_gpus_do_not_disturb_each_other", "devices=2", || {
        let gpus = [0, 1].map(|ordinal| Gpu::new(ordinal).unwrap());
        thread::scope(|scope| {
            for seed in 0..6 {
                let gpus = &gpus;
                scope.spawn(move || {
                    for round in 0..4 {
                        let (found, expected) = sort_and_merge(&gpus[seed as usize % 2], seed + 10 * round).unwrap();
                        assert_eq!(found, expected);
                    }
                });
            }
        });
    });
}

/// Captured work, and its stream.
pub struct Captured {
    executable: *mut c_void,
    stream: *mut c_void,
}

impl Captured {
    /// Puts the work on the stream.
    pub fn repeat(&self) {
        // SAFETY: the tests keep the arrays and the stream until the work has ended.
        assert_eq!(unsafe { cuda::cuGraphLaunch(self.executable, self.stream) }, 0);
    }
}

/// Work of a stream, to be repeated.
pub fn captured(stream: &Stream, work: impl FnOnce() -> Result<(), Error>) -> Captured {
    let (mut graph, mut executable) = (null_mut(), null_mut());
    // SAFETY: the stream lives until the end of the test, and the results have room.
    unsafe {
        assert_eq!(cuda::cuStreamBeginCapture_v2(stream.handle(), 0), 0);
        work().unwrap();
        assert_eq!(cuda::cuStreamEndCapture(stream.handle(), &mut graph), 0);
        assert_eq!(cuda::cuGraphInstantiate_v2(&mut executable, graph, null_mut(), null_mut(), 0), 0);
    }
    Captured { executable, stream: stream.handle() }
}

#[test]
fn a_captured_sort_can_be_repeated() {
    in_process("streams::a_captured_sort_can_be_repeated", "devices=1", || {
        let gpu = Gpu::new(0).unwrap();
        let stream = gpu.stream().unwrap();
        let mut keys = stream.zeroed::<u64>(3000).unwrap();
        let mut memory = stream.zeroed(workspace::sort::<u64, ()>(keys.len())).unwrap();
        gpu.prepare::<u64>().unwrap();
        let sort = captured(&stream, || stream.sort(SortOrder::Descending, &mut keys, &mut memory));
        for round in 0..3u64 {
            let mut expected: Vec<u64> = (0..3000).map(|i| (i ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            keys.upload(&expected).unwrap();
            sort.repeat();
            expected.sort_by(|a, b| b.cmp(a));
            assert_eq!(keys.download().unwrap(), expected);
        }
    });
}
