//! Sorts key-value pairs that the crate cudarc owns, on a stream of cudarc, without a copy and without a wait on the
//! host.
//!
//! ```sh
//! cargo run --release --manifest-path examples/foreign_pointers/Cargo.toml
//! ```
//!
//! Other libraries have the same two numbers: the address of an array and the handle of a stream. A Python library
//! written with PyO3 gets them as integers. In PyTorch they are
//!
//! ```text
//! keys.data_ptr(), keys.numel(), workspace.data_ptr(), torch.cuda.current_stream().cuda_stream
//! ```
//!
//! where `keys` is contiguous and `workspace` is `torch.empty(bytes, dtype=torch.uint8, device="cuda")`. Both must be
//! kept until the stream has completed the sort. PyTorch's allocator does so by itself if the tensors belong to that
//! stream, and otherwise after `keys.record_stream(stream)` and `workspace.record_stream(stream)`.
//!
//! [`Gpu::stream_from_handle`] and [`DeviceArray::from_address`] make a stream and arrays of them, which own nothing.
//! Only these two are unsafe. The stream then has the same methods as one of the library's own.

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut};
use merge_host::{DeviceArray, Gpu, SortOrder, Stream, workspace};
use std::error::Error;
use std::process::ExitCode;

/// The number of pairs.
const N: usize = 10_000_000;

fn main() -> ExitCode {
    // cudarc panics where there is no driver, so this comes first.
    let gpu = match Gpu::new(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("this example needs a GPU, and nothing was sorted: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(&gpu) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Sorts pairs of random keys and their indices, and checks the result.
fn run(gpu: &Gpu) -> Result<(), Box<dyn Error>> {
    // cudarc retains the primary context of the GPU, which is also the context of `gpu`.
    let stream = CudaContext::new(gpu.ordinal())?.new_stream()?;
    // SAFETY: the stream is of this GPU's primary context, because the ordinals are the same. `borrowed` is dropped
    // before `stream`. `gpu` outlives both, and the downloads below wait for the work.
    let borrowed = unsafe { gpu.stream_from_handle(stream.cu_stream().cast()) };
    let keys: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ (i >> 7)).collect();
    let values: Vec<u32> = (0..N as u32).collect();
    let (mut on_gpu, mut values_on_gpu) = (stream.clone_htod(&keys)?, stream.clone_htod(&values)?);
    let mut workspace = stream.alloc_zeros::<u8>(workspace::sort::<u32, u32>(N))?;

    sort_pairs((&stream, &borrowed), &mut on_gpu, &mut values_on_gpu, &mut workspace)?;

    let (sorted, permutation) = (stream.clone_dtoh(&on_gpu)?, stream.clone_dtoh(&values_on_gpu)?);
    assert!(sorted.is_sorted(), "the keys are not sorted");
    assert!(permutation.iter().zip(&sorted).all(|(&i, &key)| keys[i as usize] == key), "a value lost its key");
    println!("{N} pairs of cudarc's were sorted on a stream of cudarc's");
    Ok(())
}

/// Sorts keys with their values, ascending. Returns before the sort is done: later work on the stream finds its result.
/// `borrowed` is `stream` for this library.
///
/// # Panics
/// If they are different streams.
fn sort_pairs(
    (stream, borrowed): (&CudaStream, &Stream),
    keys: &mut CudaSlice<u32>,
    values: &mut CudaSlice<u32>,
    workspace: &mut CudaSlice<u8>,
) -> Result<(), merge_host::Error> {
    assert_eq!(borrowed.handle(), stream.cu_stream().cast(), "the handles of the streams");
    let (n, value_count, workspace_bytes) = (keys.len(), values.len(), workspace.len());
    // Each call makes `stream` wait for work on the array by cudarc's other streams. When its second result is dropped,
    // after the call below, cudarc records that `stream` uses the array, and its other streams wait for that.
    let (keys, _keys_in_use) = keys.device_ptr_mut(stream);
    let (values, _values_in_use) = values.device_ptr_mut(stream);
    let (workspace, _workspace_in_use) = workspace.device_ptr_mut(stream);
    // SAFETY: the addresses and lengths are those of three slices in this GPU's memory, which are borrowed mutably.
    // cudarc orders its later accesses after the work on the stream, frees included.
    let (mut keys, mut values, mut workspace) = unsafe {
        (
            DeviceArray::<u32>::from_address(borrowed, keys, n)?,
            DeviceArray::<u32>::from_address(borrowed, values, value_count)?,
            DeviceArray::from_address(borrowed, workspace, workspace_bytes)?,
        )
    };
    borrowed.sort(SortOrder::Ascending, (&mut keys, &mut values), &mut workspace)
}
