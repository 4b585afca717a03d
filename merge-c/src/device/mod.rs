//! Operations on arrays in a GPU's memory, on a stream of the caller.

use crate::format::*;
use crate::objects::{free, make, object, place};
use crate::status::{Outcome, gmerge_status, guard, invalid};
use bytemuck::Pod;
use merge_host::{Counted, DeviceArray, DeviceOffsets, Gpu, GpuKey, Stream};
use std::ffi::c_void;

mod merge;
mod sort;
mod sorted;

pub use merge::*;
pub use sort::*;
pub use sorted::*;

/// A GPU with the kernels of this library. It may be used by several threads at the same time.
pub struct gmerge_gpu(Gpu);

/// A stream of the caller, with what this library needs for it. One thread at a time uses it.
pub struct gmerge_stream(Stream);

/// Elements in a GPU's memory: `count` keys of 4 or 8 bytes, and a value for each if `format.value_size` is not 0. A
/// value has 4 or 8 bytes. The type has no GMERGE_U128 and no other type without kernels.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_device_elements {
    /// The address of the keys.
    pub keys: u64,
    /// The address of the values. Ignored if `format.value_size` is 0.
    pub values: u64,
    /// The number of keys.
    pub count: usize,
    /// 0, or the address of a `uint64_t` in the GPU's memory: the number of elements, of which `count` is the most. So
    /// the host need not know it, and launches of a graph may find another number there. Only the first elements count
    /// then, and those behind them are unspecified in elements that are sorted or written. A call writes the number of
    /// a result. Only the functions that say so take such elements.
    pub number: u64,
}

/// Offsets of segments or runs in a GPU's memory. Launches of a graph may find other numbers there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_device_offsets {
    /// The address of `count + 1` numbers of type `uint64_t`: 0 first, at most the number of keys last, and none is
    /// less than the one before. Kernels do not check them. Keys behind the last offset are in no segment or run. They
    /// are unspecified in elements that are sorted or written.
    pub address: u64,
    /// The number of segments or runs.
    pub count: usize,
}

/// Memory of a GPU for a call. Its contents are unspecified afterwards, and later calls of the stream may use it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gmerge_workspace {
    /// The address, a multiple of 16.
    pub address: u64,
    /// The number of bytes, at least what the function for the call has said.
    pub bytes: usize,
}

/// Evaluates an expression with `$K` as the type of the keys of a format, among the types with kernels.
macro_rules! with_gpu_key {
    ($format:expr, $K:ident => $body:expr) => {
        $crate::format::with_number!(
            "format.key_type" is $format.key_type, ", for which there are kernels", $K => $body
        )
    };
}
use with_gpu_key;

/// Evaluates an expression with `$V` as a type of the size of a format's values.
macro_rules! with_values {
    ($format:expr, $V:ident => $body:expr) => {
        match $format.value_size {
            0 => {
                type $V = ();
                $body
            }
            4 => {
                type $V = u32;
                $body
            }
            8 => {
                type $V = u64;
                $body
            }
            found => Err(invalid(format!("format.value_size is {found}, expected 0, 4 or 8 on a GPU"))),
        }
    };
}
use with_values;

/// Evaluates an expression with `$I` as a type of indices of this many bytes.
macro_rules! with_index {
    ($size:expr, $I:ident => $body:expr) => {
        match $size {
            4 => {
                type $I = u32;
                $body
            }
            8 => {
                type $I = u64;
                $body
            }
            found => Err(invalid(format!("index_size is {found}, expected 4 or 8"))),
        }
    };
}
use with_index;

/// Evaluates an expression with `$K` as the type of keys in the order of a format. Calls that take no order take keys
/// of such a type.
macro_rules! with_ordered_key {
    ($format:expr, $Ordered:ident => $body:expr) => {
        with_gpu_key!($format, K => {
            macro_rules! ordered {
                ($key:ty) => {{
                    type $Ordered = $key;
                    $body
                }};
            }
            $format.options()?;
            match $format.order {
                $crate::format::GMERGE_ASCENDING => ordered!(K),
                $crate::format::GMERGE_DESCENDING => ordered!(merge_host::Descending<K>),
                $crate::format::GMERGE_NANS_LAST => ordered!(merge_host::NanLast<K>),
                $crate::format::GMERGE_NANS_FIRST => ordered!(merge_host::NanFirst<K>),
                // A descending order is the reverse of an ascending one with its NaNs at the other end.
                $crate::device::DESCENDING_NANS_LAST => ordered!(merge_host::Descending<merge_host::NanFirst<K>>),
                _ => ordered!(merge_host::Descending<merge_host::NanLast<K>>),
            }
        })
    };
}
use with_ordered_key;

const DESCENDING_NANS_LAST: gmerge_order = GMERGE_DESCENDING | GMERGE_NANS_LAST;

/// Opens the GPU with this number, counted from 0.
///
/// # Safety
/// `gpu` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_gpu_open(ordinal: usize, gpu: *mut *mut gmerge_gpu) -> gmerge_status {
    // SAFETY: `gpu` is null or valid for a write, by `# Safety`.
    unsafe { make("gpu", gpu, || Ok(gmerge_gpu(Gpu::new(ordinal)?))) }
}

/// Loads the kernels for keys of a type, so that no later call does. Needed before a capture of a graph.
///
/// # Safety
/// `gpu` is null or a GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_gpu_prepare(gpu: *const gmerge_gpu, format: gmerge_format) -> gmerge_status {
    guard(|| {
        // SAFETY: `gpu` is null or a GPU, by `# Safety`.
        let gpu = unsafe { object("gpu", gpu) }?;
        with_gpu_key!(format, K => Ok(gpu.0.prepare::<K>()?))
    })
}

/// Frees a GPU. Does nothing if it is null. The kernels stay loaded until its streams are freed, too.
///
/// # Safety
/// `gpu` is null, or a GPU that has not been freed and that no call uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_gpu_free(gpu: *mut gmerge_gpu) {
    // SAFETY: `gpu` is null or a GPU that no call uses any more, by `# Safety`.
    unsafe { free(gpu) }
}

/// Prepares a stream of the caller for this library: a `cudaStream_t` or `CUstream`, of the primary context, which the
/// runtime and most libraries use. Null is the default stream. Call this once for a stream, and not for each call.
///
/// # Safety
/// `gpu` is null or a GPU. `stream` is null or valid for a write. `handle` is a stream of this GPU that is destroyed
/// after `*stream` has been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_stream_open(
    gpu: *const gmerge_gpu,
    handle: *mut c_void,
    stream: *mut *mut gmerge_stream,
) -> gmerge_status {
    let new = || {
        // SAFETY: `gpu` is null or a GPU, by `# Safety`.
        let gpu = unsafe { object("gpu", gpu) }?;
        // SAFETY: the handle is a stream of this GPU that outlives the result, by `# Safety`.
        Ok(gmerge_stream(unsafe { gpu.0.stream_from_handle(handle) }))
    };
    // SAFETY: `stream` is null or valid for a write, by `# Safety`.
    unsafe { make("stream", stream, new) }
}

/// Frees what this library needs for a stream, which itself stays. Does nothing if `stream` is null.
///
/// # Safety
/// `stream` is null, or comes from `gmerge_stream_open`, has not been freed, and no call uses it. The work that calls
/// have put on it is done, and no graph that has captured such work is launched again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_stream_free(stream: *mut gmerge_stream) {
    // SAFETY: `stream` is null or a stream that nothing uses any more, by `# Safety`.
    unsafe { free(stream) }
}

/// Keys and values, and their number if it is in the GPU's memory.
struct Elements<K, V> {
    keys: DeviceArray<K>,
    values: DeviceArray<V>,
    number: Option<DeviceArray<u64>>,
}

/// Keys and values that a call reads, and those that it writes.
type Read<'a, K, V> = (&'a DeviceArray<K>, &'a DeviceArray<V>);
type Written<'a, K, V> = (&'a mut DeviceArray<K>, &'a mut DeviceArray<V>);

impl<K, V> Elements<K, V> {
    /// Elements that a call reads.
    fn read(&self) -> Counted<Read<'_, K, V>, Option<&DeviceArray<u64>>> {
        Counted((&self.keys, &self.values), self.number.as_ref())
    }

    /// Elements that a call sorts.
    fn sorted(&mut self) -> Counted<Written<'_, K, V>, Option<&DeviceArray<u64>>> {
        Counted((&mut self.keys, &mut self.values), self.number.as_ref())
    }

    /// Elements that a call writes, with their number.
    fn written(&mut self) -> Counted<Written<'_, K, V>, Option<&mut DeviceArray<u64>>> {
        Counted((&mut self.keys, &mut self.values), self.number.as_mut())
    }
}

/// A call of a stream, with its workspace.
struct Call<'a> {
    stream: &'a Stream,
    workspace: DeviceArray<u8>,
}

impl<'a> Call<'a> {
    /// # Safety
    /// `stream` is null, or a stream that is not freed during `'a`. The workspace, and every array that is passed to a
    /// method, is in memory that the stream's GPU can access, has the given length, and is used by nothing else until
    /// the work is done. Offsets begin with 0, do not decrease and end with at most the given number.
    unsafe fn new(stream: *const gmerge_stream, workspace: gmerge_workspace) -> Outcome<Self> {
        // SAFETY: `stream` is null or a stream, by `# Safety`.
        let stream = &unsafe { object("stream", stream) }?.0;
        // SAFETY: the memory has `bytes` bytes, which nothing else uses until the work is done, by `# Safety`.
        let workspace = unsafe { DeviceArray::from_address(stream, workspace.address, workspace.bytes) }?;
        Ok(Self { stream, workspace })
    }

    /// The keys and values of an argument.
    fn elements<K: GpuKey, V: Pod>(&self, elements: gmerge_device_elements) -> Outcome<Elements<K, V>> {
        // Values without bytes have no address.
        let of_values = if const { size_of::<V>() == 0 } { elements.keys } else { elements.values };
        let number = if elements.number == 0 { None } else { Some(self.number(elements.number)?) };
        // SAFETY: the arrays have `count` elements, by the contract of `new`.
        unsafe {
            let keys = DeviceArray::from_address(self.stream, elements.keys, elements.count)?;
            let values = DeviceArray::from_address(self.stream, of_values, elements.count)?;
            Ok(Elements { keys, values, number })
        }
    }

    /// The keys and values of an argument whose number the host has to know.
    fn all<K: GpuKey, V: Pod>(&self, elements: gmerge_device_elements) -> Outcome<(DeviceArray<K>, DeviceArray<V>)> {
        match self.elements(elements)? {
            Elements { keys, values, number: None } => Ok((keys, values)),
            _ => Err(invalid("elements have a number in the GPU's memory, which this argument cannot have".to_owned())),
        }
    }

    /// The number at an address.
    fn number(&self, address: u64) -> Outcome<DeviceArray<u64>> {
        // SAFETY: there is a number, by the contract of `new`.
        Ok(unsafe { DeviceArray::from_address(self.stream, address, 1) }?)
    }

    /// The offsets of `keys` keys.
    fn offsets(&self, offsets: gmerge_device_offsets, keys: usize) -> Outcome<DeviceOffsets> {
        let count = offsets.count.saturating_add(1);
        // SAFETY: there are `count` offsets, which are right, by the contract of `new`.
        unsafe {
            let array = DeviceArray::from_address(self.stream, offsets.address, count)?;
            Ok(DeviceOffsets::from_array(array, keys, usize::MAX)?)
        }
    }
}

/// The greatest number of elements, runs or groups: more than any GPU's memory has.
const MOST: usize = 1 << 48;

/// Writes the result of `find`, which depends on `counts`, to `bytes`.
///
/// # Safety
/// `bytes` is null or valid for a write.
unsafe fn bytes_of(bytes: *mut usize, counts: &[usize], find: impl FnOnce() -> Outcome<usize>) -> gmerge_status {
    guard(|| {
        // SAFETY: `bytes` is null or valid for a write, by `# Safety`.
        let to = unsafe { place("bytes", bytes) }?;
        if let Some(count) = counts.iter().find(|count| **count > MOST) {
            return Err(invalid(format!("a number of elements, runs or groups is {count}, expected at most {MOST}")));
        }
        match find()? {
            usize::MAX => Err(invalid("there are more elements than one call of a GPU can have".to_owned())),
            found => {
                to.write(found);
                Ok(())
            }
        }
    })
}
