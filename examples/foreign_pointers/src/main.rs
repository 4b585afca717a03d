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
//! kept until the stream has completed the sort. PyTorch's allocator keeps tensors of this stream by itself, and other
//! tensors after `keys.record_stream(stream)` and `workspace.record_stream(stream)`.

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut};
use merge_host::{Gpu, RawArray, SortKernel, SortOrder};
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
    let keys: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ (i >> 7)).collect();
    let values: Vec<u32> = (0..N as u32).collect();
    let (mut on_gpu, mut values_on_gpu) = (stream.clone_htod(&keys)?, stream.clone_htod(&values)?);
    let mut workspace = stream.alloc_zeros::<u8>(Gpu::sort_pairs_workspace_bytes::<u32, u32>(N))?;

    // SAFETY: the downloads wait for the stream, and `gpu` is borrowed until then.
    unsafe { sort_pairs(gpu, &stream, &mut on_gpu, &mut values_on_gpu, &mut workspace)? };

    let (sorted, permutation) = (stream.clone_dtoh(&on_gpu)?, stream.clone_dtoh(&values_on_gpu)?);
    assert!(sorted.is_sorted(), "the keys are not sorted");
    assert!(permutation.iter().zip(&sorted).all(|(&i, &key)| keys[i as usize] == key), "a value lost its key");
    println!("{N} pairs of cudarc's were sorted on a stream of cudarc's");
    Ok(())
}

/// Sorts keys with their values, ascending. Returns before the sort is done: later work on `stream` finds its result.
///
/// # Safety
/// `gpu` or a clone of it lives until `stream` has completed the sort.
///
/// # Panics
/// If `stream` belongs to another GPU.
unsafe fn sort_pairs(
    gpu: &Gpu,
    stream: &CudaStream,
    keys: &mut CudaSlice<u32>,
    values: &mut CudaSlice<u32>,
    workspace: &mut CudaSlice<u8>,
) -> Result<(), merge_host::Error> {
    assert_eq!(stream.context().ordinal(), gpu.ordinal(), "the ordinals of the GPUs");
    let (n, value_count, workspace_bytes) = (keys.len(), values.len(), workspace.len());
    // Each call makes `stream` wait for work on the array by cudarc's other streams. When its second result is dropped,
    // after the call below, cudarc records that `stream` uses the array, and its other streams wait for that.
    let (keys, _keys_in_use) = keys.device_ptr_mut(stream);
    let (values, _values_in_use) = values.device_ptr_mut(stream);
    let (workspace, _workspace_in_use) = workspace.device_ptr_mut(stream);
    let (keys, values) = (RawArray::<u32>::new(keys, n), RawArray::<u32>::new(values, value_count));
    let workspace = RawArray::new(workspace, workspace_bytes);
    let (kernel, order, stream) = (SortKernel::Auto, SortOrder::Ascending, stream.cu_stream().cast());
    // SAFETY: cudarc has allocated the three arrays with these addresses and lengths in this GPU's memory. The stream
    // belongs to the GPU's primary context, which cudarc uses. The arrays are borrowed mutably, so they do not overlap.
    // cudarc orders later work on the arrays, and freeing them, after the work on the stream. By the contract of this
    // function, the `Gpu` lives until then.
    unsafe { gpu.sort_pairs_raw(kernel, order, keys, values, workspace, stream) }
}
