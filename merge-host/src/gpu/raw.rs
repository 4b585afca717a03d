//! Work on arrays by their addresses: the layer for arrays and streams that other libraries own.

use super::launch::{Arrays, OnStream, align, batch, bounds, groups, merge, sets, sort, top_k};
use super::{Address, Gpu};
use crate::engine::{check_batch, check_capacity, check_k, check_length, check_offset_counts, check_values};
use crate::index::check_index_range;
use crate::{BatchKernel, Error, GpuKey, Index, MergeKernel, Reduction, SetOperation, SortKernel, SortOrder, Summand};
use cust::stream::Stream;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, transmute};

/// An array in a GPU's memory, by its address and its length: an argument of the functions of [`Gpu`] whose names end
/// in `_raw`.
///
/// It neither owns nor borrows the memory. The address is what CUDA calls a device pointer (`CUdeviceptr`).
///
/// ```
/// use merge_host::RawArray;
///
/// let keys = RawArray::<f32>::new(0x7f00_0000_0000, 1000);
/// assert_eq!(keys.part(10, 5), RawArray::new(0x7f00_0000_0028, 5));
/// ```
pub struct RawArray<T> {
    /// The address of the first element.
    pub address: u64,
    /// The number of elements.
    pub len: usize,
    // An address is sent to and used by any thread, whatever `T` is.
    elements: PhantomData<fn() -> T>,
}

impl<T> RawArray<T> {
    /// The array of `len` elements at `address`. Nothing is checked. The address of an empty array may be 0.
    pub const fn new(address: u64, len: usize) -> Self {
        Self { address, len, elements: PhantomData }
    }

    /// The `len` elements from index `begin` on.
    ///
    /// # Panics
    /// If the array has no such elements.
    pub const fn part(self, begin: usize, len: usize) -> Self {
        assert!(begin <= self.len && len <= self.len - begin, "the part exceeds the array");
        Self::new(self.address + (begin * size_of::<T>()) as u64, len)
    }

    /// Its name, address and length as those of an argument.
    pub(super) fn named(self, name: &'static str) -> Result<Argument, Error> {
        let Self { address, len, .. } = self;
        if len > 0 && (address == 0 || !address.is_multiple_of(align_of::<T>() as u64)) {
            return Err(Error::BadAddress { what: name, address, align: align_of::<T>() });
        }
        let end = address.saturating_add(len.saturating_mul(size_of::<T>()) as u64);
        Ok(Argument { name, begin: address, end })
    }

    pub(super) fn keys(self) -> Arrays {
        Arrays::keys(self.address, self.len)
    }
}

impl RawArray<u8> {
    /// Where the first 16-byte boundary of this workspace is, if there are `needed` bytes from there on.
    pub(super) fn workspace(self, needed: usize) -> Result<Address, Error> {
        let padding = (self.address.wrapping_neg() % align(1) as u64) as usize;
        let found = self.len.saturating_sub(padding);
        if found < needed {
            Err(Error::WorkspaceTooSmall { needed, found })
        } else {
            Ok(self.address.saturating_add(padding as u64))
        }
    }
}

impl<T> Clone for RawArray<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RawArray<T> {}

impl<T> PartialEq for RawArray<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.address, self.len) == (other.address, other.len)
    }
}

impl<T> Eq for RawArray<T> {}

impl<T> std::fmt::Debug for RawArray<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements of {} bytes at {:#x}", self.len, size_of::<T>(), self.address)
    }
}

/// The bytes of an argument.
#[derive(Clone, Copy)]
pub(super) struct Argument {
    name: &'static str,
    begin: u64,
    end: u64,
}

impl Argument {
    fn overlaps(self, other: Self) -> bool {
        // An empty range has no byte in common with another one, wherever it is.
        self.begin.max(other.begin) < self.end.min(other.end)
    }
}

/// Checks that no argument that is written overlaps another one.
pub(super) fn check_apart(written: &[Argument], read: &[Argument]) -> Result<(), Error> {
    for (i, one) in written.iter().enumerate() {
        if let Some(other) = written[i + 1..].iter().chain(read).find(|other| one.overlaps(**other)) {
            return Err(Error::Overlap { what: one.name, other: other.name });
        }
    }
    Ok(())
}

/// Values that the kernels move are of 4 or 8 bytes, and aligned as numbers of that size are.
pub(super) const fn value_bytes<V>() -> usize {
    assert!(size_of::<V>() == 4 || size_of::<V>() == 8, "values have 4 or 8 bytes");
    assert!(align_of::<V>() == size_of::<V>(), "values are aligned to their size");
    size_of::<V>()
}

/// Keys and values, if there is a value for each key.
pub(super) fn pairs<K, V>(what: &'static str, keys: RawArray<K>, values: RawArray<V>) -> Result<Arrays, Error> {
    check_values(what, keys.len, values.len)?;
    Ok(Arrays { values: values.address, value_bytes: const { value_bytes::<V>() }, ..keys.keys() })
}

/// Keys and their values.
pub(super) type RawPairs<K, V> = (RawArray<K>, RawArray<V>);

/// The arrays of a merge of keys with values, if each has a value for each key, and all that are written, and the
/// workspace, are apart from each other and from those that are read.
fn check_pairs<K, V>(
    a: RawPairs<K, V>,
    b: RawPairs<K, V>,
    out: RawPairs<K, V>,
    workspace: RawArray<u8>,
    offsets: &[Argument],
) -> Result<[Arrays; 3], Error> {
    let at = [pairs("a", a.0, a.1)?, pairs("b", b.0, b.1)?, pairs("out", out.0, out.1)?];
    let written = [out.0.named("out")?, out.1.named("values of out")?, workspace.named("workspace")?];
    let read = [a.0.named("a")?, a.1.named("values of a")?, b.0.named("b")?, b.1.named("values of b")?];
    check_apart(&written, &read)?;
    check_apart(&written, offsets)?;
    Ok(at)
}

/// Where the workspace for groups of `keys` keys is, if `out` has capacity for as many groups, and `count` for their
/// number.
fn workspace_of_groups<K: GpuKey>(
    keys: usize,
    out: usize,
    count: usize,
    workspace: RawArray<u8>,
) -> Result<Address, Error> {
    check_capacity("out", keys, out)?;
    check_length("count", 1, count, "one number")?;
    workspace.workspace(Gpu::groups_workspace_bytes::<K>(keys))
}

/// A stream by its handle, in `cust`'s type, whose functions take no handles. Not destroyed when this is dropped.
struct BorrowedStream(ManuallyDrop<Stream>);

impl BorrowedStream {
    /// # Safety
    /// The stream is not destroyed while this lives.
    unsafe fn of(handle: *mut c_void) -> Self {
        // SAFETY: `Stream` has one field, the handle. The compiler checks that both types have the same size, so that
        // the field is all of it. Every handle is a value of the field, and the caller keeps the stream alive.
        Self(ManuallyDrop::new(unsafe { transmute::<*mut c_void, Stream>(handle) }))
    }
}

/// # The raw layer
///
/// Functions for arrays and streams of any library, by their addresses and handles. Each puts work on the stream and
/// returns while the GPU works. None allocates memory or waits for the GPU, except that a kernel is loaded by the first
/// call that needs it, unless [`prepare`](Self::prepare) has loaded it.
///
/// ## Safety of the raw layer
///
/// All of these functions are unsafe for the same reason: the GPU uses the arrays after the function has returned. The
/// caller guarantees, for each call:
///
/// - **Stream**: `stream` is a `CUstream` (or the `cudaStream_t` of CUDA's runtime, which is the same) of this GPU's primary context,
///   the one that CUDA's runtime and most libraries use. It is not destroyed during the call. 0 is the legacy default stream.
/// - **Arrays**: each array lies in memory of this GPU (or in memory that it can access), holds the elements that its [`RawArray`]
///   states, and is not freed before the stream has completed the work.
/// - **Accesses**: from the call until the stream has completed the work, nothing else writes any of the arrays, and nothing else
///   reads `out`, the arrays that are sorted, and the workspace. What is put on the same stream before the call or after its return
///   is in order with it and needs nothing more. Work on another stream, a copy by the host, and the memory pool of another library
///   need an event or a wait between them and the call.
/// - **Workspace**: it begins at a multiple of 16, or has 15 bytes more than needed. Its content is unspecified before and after the
///   call. Calls on one stream, one after the other, may share one.
/// - **Lifetime**: this `Gpu` or a clone of it lives until the stream has completed the work, because the last one unloads the
///   kernels.
///
/// What can be checked is: lengths, the size of the workspace, addresses that are 0 or not aligned to the elements, and
/// overlaps of an array that is written with any other. These are errors, and nothing has been put on the stream then.
///
/// The GPU's context need not be current. The calls make it current on the calling thread, and the one before it when
/// they return.
///
/// ## Graphs
///
/// A call can be captured in a CUDA graph, if its kernels are loaded ([`prepare`](Self::prepare)). The guarantees are
/// then for each launch of the graph, from the launch until it has completed, and the `Gpu` lives as long as the graph
/// is launched. Sorts of many keys put some of their work on a second stream, which waits for `stream` and is waited
/// for by it: on `stream`, and in a graph, that is one piece of work like any other.
///
/// ## Streams and arrays of other libraries
///
/// | library | address | stream |
/// | --- | --- | --- |
/// | cudarc | `slice.device_ptr(&stream).0` | `stream.cu_stream().cast()` |
/// | PyTorch | `tensor.data_ptr()` | `torch.cuda.current_stream().cuda_stream` |
/// | CuPy | `array.data.ptr` | `cupy.cuda.get_current_stream().ptr` |
/// | cuDF, RAPIDS | `column.head()` (C++) | `rmm::cuda_stream_view::value()` |
///
/// PyTorch frees a tensor's memory for use by later work on the tensor's stream. If `stream` is another one, call
/// `tensor.record_stream` for it. The tensor must be contiguous. The folder `examples/foreign_pointers` has a program
/// that sorts an array of cudarc's.
impl Gpu {
    /// Sorts `keys` in the total order of their type, or descending. O(n log n).
    ///
    /// # Errors
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than [`sort_workspace_bytes`](Self::sort_workspace_bytes),
    /// [`Error::Overlap`] if the two overlap, [`Error::BadAddress`] if an address is 0 or not aligned,
    /// [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn sort_raw<K: GpuKey>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: RawArray<K>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        check_apart(&[keys.named("keys")?, workspace.named("workspace")?], &[])?;
        let workspace = workspace.workspace(Self::sort_workspace_bytes::<K>(keys.len))?;
        // SAFETY: the caller's guarantees; there are as many bytes of workspace as the sort needs.
        unsafe { self.on(stream, |queue| sort::sort::<K>(queue, (kernel, order), keys.keys(), false, workspace)) }
    }

    /// Sorts `keys` with as many `values` of 4 or 8 bytes, which is checked at compile time, in the total order of the
    /// keys' type or descending. Stable: equal keys stay in their order. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, [`Error::WorkspaceTooSmall`] if `workspace`
    /// has fewer than [`sort_pairs_workspace_bytes`](Self::sort_pairs_workspace_bytes), and those of
    /// [`sort_raw`](Self::sort_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn sort_pairs_raw<K: GpuKey, V>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: RawArray<K>,
        values: RawArray<V>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let at = pairs("keys", keys, values)?;
        check_apart(&[keys.named("keys")?, values.named("values")?, workspace.named("workspace")?], &[])?;
        let workspace = workspace.workspace(Self::sort_pairs_workspace_bytes::<K, V>(keys.len))?;
        // SAFETY: as for `sort_raw`.
        unsafe { self.on(stream, |queue| sort::sort::<K>(queue, (kernel, order), at, false, workspace)) }
    }

    /// Sorts `keys` in the total order of their type or descending, and sets `indices` to the index of each before the
    /// sort. Stable: equal keys stay in their order. What is in `indices` before is not read. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many indices as keys, [`Error::TooManyKeys`] if there are more
    /// than 2^32 and the indices are `u32`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`argsort_workspace_bytes`](Self::argsort_workspace_bytes), and those of [`sort_raw`](Self::sort_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn argsort_raw<K: GpuKey, I: Index>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: RawArray<K>,
        indices: RawArray<I>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let at = pairs("keys", keys, indices)?;
        check_index_range::<I>(keys.len)?;
        check_apart(&[keys.named("keys")?, indices.named("indices")?, workspace.named("workspace")?], &[])?;
        let workspace = workspace.workspace(Self::argsort_workspace_bytes::<K, I>(keys.len))?;
        // SAFETY: as for `sort_raw`.
        unsafe { self.on(stream, |queue| sort::sort::<K>(queue, (kernel, order), at, true, workspace)) }
    }

    /// Sets `out` to the first `out.len` of `keys` in the total order of their type, or descending: sorted. `keys`
    /// stays as it is. Reads each key twice as a rule. O(n + k log k).
    ///
    /// # Errors
    /// [`Error::TooFewKeys`] if `out` is longer than `keys`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`top_k_workspace_bytes`](Self::top_k_workspace_bytes), and those of [`merge_raw`](Self::merge_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn top_k_raw<K: GpuKey>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        out: RawArray<K>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        check_k(keys.len, out.len)?;
        check_apart(&[out.named("out")?, workspace.named("workspace")?], &[keys.named("keys")?])?;
        let workspace = workspace.workspace(Self::top_k_workspace_bytes::<K>(keys.len, out.len))?;
        // SAFETY: the caller's guarantees; there is as much workspace as the selection needs.
        unsafe { self.on(stream, |queue| top_k::top_k::<K>(queue, order, keys.keys(), out.keys(), workspace)) }
    }

    /// As [`top_k_raw`](Self::top_k_raw), with a value for each key. Stable: of equal keys, the first ones are taken,
    /// and they stay in their order.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, and those of
    /// [`top_k_raw`](Self::top_k_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn top_k_pairs_raw<K: GpuKey, V>(
        &self,
        order: SortOrder,
        from: (RawArray<K>, RawArray<V>),
        out: (RawArray<K>, RawArray<V>),
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let at = [pairs("keys", from.0, from.1)?, pairs("out", out.0, out.1)?];
        check_k(from.0.len, out.0.len)?;
        let read = [from.0.named("keys")?, from.1.named("values")?];
        check_apart(&[out.0.named("out")?, out.1.named("values of out")?, workspace.named("workspace")?], &read)?;
        let workspace = workspace.workspace(Self::top_k_pairs_workspace_bytes::<K, V>(from.0.len, out.0.len))?;
        // SAFETY: as for `top_k_raw`.
        unsafe { self.on(stream, |queue| top_k::top_k::<K>(queue, order, at[0], at[1], workspace)) }
    }

    /// As [`top_k_pairs_raw`](Self::top_k_pairs_raw), with the index of each key for a value.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`] if there are more than 2^32 and the indices are `u32`, and those of
    /// [`top_k_pairs_raw`](Self::top_k_pairs_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn top_k_indices_raw<K: GpuKey, I: Index>(
        &self,
        order: SortOrder,
        keys: RawArray<K>,
        out: (RawArray<K>, RawArray<I>),
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let to = pairs("out", out.0, out.1)?;
        check_k(keys.len, out.0.len)?;
        check_index_range::<I>(keys.len)?;
        let written = [out.0.named("out")?, out.1.named("indices")?, workspace.named("workspace")?];
        check_apart(&written, &[keys.named("keys")?])?;
        let workspace = workspace.workspace(Self::top_k_pairs_workspace_bytes::<K, I>(keys.len, out.0.len))?;
        // SAFETY: as for `top_k_raw`.
        unsafe { self.on(stream, |queue| top_k::top_k::<K>(queue, order, keys.keys(), to, workspace)) }
    }

    /// Merges `a` and `b`, both ascending, into `out`, which has `a.len + b.len` keys. Stable: of equal keys, `a`'s go
    /// first. O(n).
    ///
    /// If `a` or `b` is not ascending, `out` gets keys of both in an unspecified order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::Overlap`] if `out` or `workspace` overlaps
    /// another array, [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`merge_workspace_bytes`](Self::merge_workspace_bytes), [`Error::BadAddress`] if an address is 0 or not aligned,
    /// [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn merge_raw<K: GpuKey>(
        &self,
        kernel: MergeKernel,
        a: RawArray<K>,
        b: RawArray<K>,
        out: RawArray<K>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let total = a.len.saturating_add(b.len);
        check_length("out", total, out.len, "|a| + |b|")?;
        check_apart(&[out.named("out")?, workspace.named("workspace")?], &[a.named("a")?, b.named("b")?])?;
        let workspace = workspace.workspace(Self::merge_workspace_bytes::<K>(kernel, total))?;
        let (a, b, out) = (a.keys(), b.keys(), out.address);
        // SAFETY: the caller's guarantees; `out` is as long as both, and there is as much workspace as the merge needs.
        unsafe { self.on(stream, |queue| merge::merge::<K>(queue, kernel, a, b, out, workspace)) }
    }

    /// Merges keys with values: the pairs of `a` and of `b`, both ascending by key, into `out`. Stable: of pairs with
    /// equal keys, `a`'s go first. O(n).
    ///
    /// Each argument is keys and as many values of 4 or 8 bytes, which is checked at compile time. `out` has `|a| +
    /// |b|` pairs.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, [`Error::WorkspaceTooSmall`] if
    /// `workspace` has fewer than [`merge_pairs_workspace_bytes`](Self::merge_pairs_workspace_bytes), and those of
    /// [`merge_raw`](Self::merge_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn merge_pairs_raw<K: GpuKey, V>(
        &self,
        a: (RawArray<K>, RawArray<V>),
        b: (RawArray<K>, RawArray<V>),
        out: (RawArray<K>, RawArray<V>),
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let total = a.0.len.saturating_add(b.0.len);
        check_length("out", total, out.0.len, "|a| + |b|")?;
        let [a, b, out] = check_pairs(a, b, out, workspace, &[])?;
        let workspace = workspace.workspace(Self::merge_pairs_workspace_bytes::<K>(total))?;
        // SAFETY: as for `merge_raw`.
        unsafe { self.on(stream, |queue| merge::merge_pairs::<K>(queue, a, b, out, workspace)) }
    }

    /// Solves many merge problems of one length: merges run `p` of `a` with run `p` of `b` into run `p` of `out`.
    /// Lengths are as in [`Engine::merge_batch`](crate::Engine::merge_batch). Needs no workspace. O(n log d).
    ///
    /// # Errors
    /// Those of [`Engine::merge_batch`](crate::Engine::merge_batch), [`Error::Overlap`] if `out` overlaps `a` or `b`,
    /// and [`Error::BadAddress`] if an address is 0 or not aligned.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn merge_batch_raw<K: GpuKey>(
        &self,
        kernel: BatchKernel,
        a: RawArray<K>,
        b: RawArray<K>,
        out: RawArray<K>,
        d: usize,
        a_len: usize,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let problems = check_batch(a.len, b.len, out.len, d, a_len)?;
        check_apart(&[out.named("out")?], &[a.named("a")?, b.named("b")?])?;
        let (at, lengths) = ([a.address, b.address, out.address], batch::Lengths { problems, d, a_len });
        // SAFETY: the caller's guarantees; the arrays hold whole runs.
        unsafe { self.on(stream, |queue| batch::merge_batch::<K>(queue, kernel, at, lengths)) }
    }

    /// As [`merge_batch_raw`](Self::merge_batch_raw), with a value for each key, as in
    /// [`merge_pairs_raw`](Self::merge_pairs_raw).
    ///
    /// # Errors
    /// Those of [`merge_batch_raw`](Self::merge_batch_raw), and [`Error::ValuesMismatch`] if an argument has not as
    /// many values as keys.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn merge_batch_pairs_raw<K: GpuKey, V>(
        &self,
        a: (RawArray<K>, RawArray<V>),
        b: (RawArray<K>, RawArray<V>),
        out: (RawArray<K>, RawArray<V>),
        d: usize,
        a_len: usize,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let problems = check_batch(a.0.len, b.0.len, out.0.len, d, a_len)?;
        let (arrays, lengths) =
            (check_pairs(a, b, out, RawArray::new(0, 0), &[])?, batch::Lengths { problems, d, a_len });
        // SAFETY: as for `merge_batch_raw`.
        unsafe { self.on(stream, |queue| batch::merge_batch_pairs::<K>(queue, arrays, lengths)) }
    }

    /// Solves many merge problems of any lengths. Each side is its keys and their offsets. The runs of problem `p` are
    /// the keys `a_offsets[p] .. a_offsets[p + 1]` of `a` and those of `b` accordingly; in `out` it begins at
    /// `a_offsets[p] + b_offsets[p]`. O(n log n).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys, [`Error::OffsetsMismatch`] if the two sides have
    /// different numbers of offsets, [`Error::NoOffsets`] if they have none, [`Error::Overlap`] if `out` or `workspace`
    /// overlaps another array, [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`merge_ragged_workspace_bytes`](Self::merge_ragged_workspace_bytes), [`Error::BadAddress`] if an address is 0
    /// or not aligned, [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer). Offsets are read on the GPU and not checked: those of
    /// each side begin with 0, never decrease, and end with the number of its keys.
    pub unsafe fn merge_ragged_raw<K: GpuKey>(
        &self,
        a: (RawArray<K>, RawArray<u64>),
        b: (RawArray<K>, RawArray<u64>),
        out: RawArray<K>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let total = a.0.len.saturating_add(b.0.len);
        check_length("out", total, out.len, "|a| + |b|")?;
        let problems = check_offset_counts(a.1.len, b.1.len)?;
        let read = [a.0.named("a")?, a.1.named("offsets of a")?, b.0.named("b")?, b.1.named("offsets of b")?];
        check_apart(&[out.named("out")?, workspace.named("workspace")?], &read)?;
        let workspace = workspace.workspace(Self::merge_ragged_workspace_bytes::<K>(total))?;
        let (a, b, out) = ((a.0.keys(), a.1.address), (b.0.keys(), b.1.address), out.keys());
        // SAFETY: the caller's guarantees, also for the offsets; lengths and workspace have been checked.
        unsafe { self.on(stream, |queue| batch::merge_ragged::<K>(queue, a, b, problems, out, workspace)) }
    }

    /// As [`merge_ragged_raw`](Self::merge_ragged_raw), with a value for each key, as in
    /// [`merge_pairs_raw`](Self::merge_pairs_raw). Each side is its keys, their values and their offsets.
    ///
    /// # Errors
    /// Those of [`merge_ragged_raw`](Self::merge_ragged_raw), and [`Error::ValuesMismatch`] if an argument has not as
    /// many values as keys.
    ///
    /// # Safety
    /// As for [`merge_ragged_raw`](Self::merge_ragged_raw).
    pub unsafe fn merge_ragged_pairs_raw<K: GpuKey, V>(
        &self,
        a: (RawArray<K>, RawArray<V>, RawArray<u64>),
        b: (RawArray<K>, RawArray<V>, RawArray<u64>),
        out: (RawArray<K>, RawArray<V>),
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let total = a.0.len.saturating_add(b.0.len);
        check_length("out", total, out.0.len, "|a| + |b|")?;
        let problems = check_offset_counts(a.2.len, b.2.len)?;
        let offsets = [a.2.named("offsets of a")?, b.2.named("offsets of b")?];
        let (a_offsets, b_offsets) = (a.2.address, b.2.address);
        let [a, b, out] = check_pairs((a.0, a.1), (b.0, b.1), out, workspace, &offsets)?;
        let workspace = workspace.workspace(Self::merge_ragged_workspace_bytes::<K>(total))?;
        let (a, b) = ((a, a_offsets), (b, b_offsets));
        // SAFETY: as for `merge_ragged_raw`.
        unsafe { self.on(stream, |queue| batch::merge_ragged::<K>(queue, a, b, problems, out, workspace)) }
    }

    /// Writes the keys of `a` and `b`, both ascending, that `operation` keeps to `out`, in ascending order, and their
    /// number to `count`, which has one element. `out` has at least [`SetOperation::most_keys`] keys; those after the
    /// keys kept are unspecified. O(n).
    ///
    /// If `a` or `b` is not ascending, `out` gets keys of both in an unspecified number and order.
    ///
    /// # Errors
    /// [`Error::CapacityTooSmall`] if `out` has fewer keys than the result may have, [`Error::LengthMismatch`] if
    /// `count` has not one element, [`Error::Overlap`] if `out`, `count` or `workspace` overlaps another array,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`set_operation_workspace_bytes`](Self::set_operation_workspace_bytes), [`Error::BadAddress`] if an address is 0
    /// or not aligned, [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn set_operation_raw<K: GpuKey>(
        &self,
        operation: SetOperation,
        a: RawArray<K>,
        b: RawArray<K>,
        out: RawArray<K>,
        count: RawArray<u64>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        check_capacity("out", operation.most_keys(a.len, b.len), out.len)?;
        check_length("count", 1, count.len, "one number")?;
        let written = [out.named("out")?, count.named("count")?, workspace.named("workspace")?];
        check_apart(&written, &[a.named("a")?, b.named("b")?])?;
        let workspace = workspace.workspace(Self::set_operation_workspace_bytes::<K>(a.len.saturating_add(b.len)))?;
        let (a, b, out, count) = (a.keys(), b.keys(), out.keys(), count.address);
        // SAFETY: the caller's guarantees; `out` is as long as the result may be, and there is as much workspace as
        // needed.
        unsafe { self.on(stream, |queue| sets::set_operation::<K>(queue, operation, a, b, out, count, workspace)) }
    }

    /// As [`set_operation_raw`](Self::set_operation_raw), with a value for each key, as in
    /// [`merge_pairs_raw`](Self::merge_pairs_raw). A key that is kept has its value. Of a pair of equal keys the one of
    /// `a` is kept, as in C++'s `std::set_union` and `std::set_intersection`.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, and those of
    /// [`set_operation_raw`](Self::set_operation_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn set_operation_pairs_raw<K: GpuKey, V>(
        &self,
        operation: SetOperation,
        a: (RawArray<K>, RawArray<V>),
        b: (RawArray<K>, RawArray<V>),
        out: (RawArray<K>, RawArray<V>),
        count: RawArray<u64>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let total = a.0.len.saturating_add(b.0.len);
        check_capacity("out", operation.most_keys(a.0.len, b.0.len), out.0.len)?;
        check_length("count", 1, count.len, "one number")?;
        let named = [count.named("count")?];
        let [a, b, out] = {
            let read = [a.0.named("a")?, a.1.named("values of a")?, b.0.named("b")?, b.1.named("values of b")?];
            let written = [out.0.named("out")?, out.1.named("values of out")?, workspace.named("workspace")?];
            check_apart(&named, &[&read[..], &written].concat())?;
            check_pairs(a, b, out, workspace, &[])?
        };
        let workspace = workspace.workspace(Self::set_operation_workspace_bytes::<K>(total))?;
        let count = count.address;
        // SAFETY: as for `set_operation_raw`.
        unsafe { self.on(stream, |queue| sets::set_operation::<K>(queue, operation, a, b, out, count, workspace)) }
    }

    /// Writes the first key of each group of equal keys that are next to each other to `out`, and the number of groups
    /// to `count`, which has one element. `out` has at least as many elements as `keys`; those after the groups are
    /// unspecified. Two keys are equal if their bits are. O(n).
    ///
    /// # Errors
    /// [`Error::CapacityTooSmall`] if `out` has fewer elements than `keys`, [`Error::LengthMismatch`] if `count` has
    /// not one element, [`Error::Overlap`] if `out`, `count` or `workspace` overlaps another array,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`groups_workspace_bytes`](Self::groups_workspace_bytes), [`Error::BadAddress`] if an address is 0 or not
    /// aligned, [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn unique_raw<K: GpuKey>(
        &self,
        keys: RawArray<K>,
        out: RawArray<K>,
        count: RawArray<u64>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let written = [out.named("out")?, count.named("count")?, workspace.named("workspace")?];
        check_apart(&written, &[keys.named("keys")?])?;
        let workspace = workspace_of_groups::<K>(keys.len, out.len, count.len, workspace)?;
        let (keys, out, count) = (keys.keys(), out.keys(), count.address);
        // SAFETY: the caller's guarantees; `out` is as long as the result may be, and there is as much workspace as
        // needed.
        unsafe { self.on(stream, |queue| groups::unique::<K>(queue, keys, out, count, workspace)) }
    }

    /// As [`unique_raw`](Self::unique_raw), with a value of 4 or 8 bytes for each key: the first one of each group is
    /// kept.
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if an argument has not as many values as keys, and those of
    /// [`unique_raw`](Self::unique_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn unique_pairs_raw<K: GpuKey, V>(
        &self,
        (keys, values): (RawArray<K>, RawArray<V>),
        out: (RawArray<K>, RawArray<V>),
        count: RawArray<u64>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let (at, to) = (pairs("keys", keys, values)?, pairs("out", out.0, out.1)?);
        let written =
            [out.0.named("out")?, out.1.named("values of out")?, count.named("count")?, workspace.named("workspace")?];
        check_apart(&written, &[keys.named("keys")?, values.named("values")?])?;
        let workspace = workspace_of_groups::<K>(keys.len, to.len, count.len, workspace)?;
        let count = count.address;
        // SAFETY: as for `unique_raw`.
        unsafe { self.on(stream, |queue| groups::unique::<K>(queue, at, to, count, workspace)) }
    }

    /// Writes the first key of each group of equal keys that are next to each other to `out`, the number of the group's
    /// keys to `lengths`, and the number of groups to `count`. Otherwise as [`unique_raw`](Self::unique_raw).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if `lengths` has not as many elements as `out`, and those of
    /// [`unique_raw`](Self::unique_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn run_lengths_raw<K: GpuKey>(
        &self,
        keys: RawArray<K>,
        (out, lengths): (RawArray<K>, RawArray<u64>),
        count: RawArray<u64>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let to = pairs("out", out, lengths)?;
        let written =
            [out.named("out")?, lengths.named("lengths")?, count.named("count")?, workspace.named("workspace")?];
        check_apart(&written, &[keys.named("keys")?])?;
        let workspace = workspace_of_groups::<K>(keys.len, to.len, count.len, workspace)?;
        let (keys, count) = (keys.keys(), count.address);
        // SAFETY: as for `unique_raw`.
        unsafe { self.on(stream, |queue| groups::run_lengths::<K>(queue, keys, to, count, workspace)) }
    }

    /// Writes the first key of each group of equal keys that are next to each other to `out`, with the reduction of the
    /// group's values, and the number of groups to `count`. Otherwise as [`unique_pairs_raw`](Self::unique_pairs_raw).
    ///
    /// The sum of floats is rounded at each addition, in an order that depends on the number of keys and on where the
    /// groups begin, and on nothing else: it is the same each time. If the sum is a NaN, its bits are unspecified.
    ///
    /// # Errors
    /// Those of [`unique_pairs_raw`](Self::unique_pairs_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn reduce_by_key_raw<K: GpuKey, V: Summand>(
        &self,
        reduction: Reduction,
        (keys, values): (RawArray<K>, RawArray<V>),
        out: (RawArray<K>, RawArray<V>),
        count: RawArray<u64>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let (at, to) = (pairs("keys", keys, values)?, pairs("out", out.0, out.1)?);
        let written =
            [out.0.named("out")?, out.1.named("values of out")?, count.named("count")?, workspace.named("workspace")?];
        check_apart(&written, &[keys.named("keys")?, values.named("values")?])?;
        let workspace = workspace_of_groups::<K>(keys.len, to.len, count.len, workspace)?;
        let count = count.address;
        // SAFETY: as for `unique_raw`.
        unsafe { self.on(stream, |queue| groups::reduce_by_key::<K, V>(queue, reduction, at, to, count, workspace)) }
    }

    /// Writes for each of the `needles` how many of the `keys` are less than it to `bounds`. Both are ascending. O(n),
    /// or O(m log n) for m needles where these are few.
    ///
    /// If `needles` or `keys` is not ascending, the bounds are unspecified.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many bounds as needles, [`Error::TooManyKeys`] if there are 2^32
    /// keys or more and the bounds are `u32`, [`Error::Overlap`] if `bounds` or `workspace` overlaps another array,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer bytes than
    /// [`bounds_workspace_bytes`](Self::bounds_workspace_bytes), [`Error::BadAddress`] if an address is 0 or not
    /// aligned, [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn lower_bounds_raw<K: GpuKey, I: Index>(
        &self,
        needles: RawArray<K>,
        keys: RawArray<K>,
        bounds: RawArray<I>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        // SAFETY: the caller's guarantees.
        unsafe { self.bounds_raw(true, needles, keys, bounds, workspace, stream) }
    }

    /// As [`lower_bounds_raw`](Self::lower_bounds_raw), for how many of the `keys` are less than or equal to each
    /// needle.
    ///
    /// # Errors
    /// Those of [`lower_bounds_raw`](Self::lower_bounds_raw).
    ///
    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    pub unsafe fn upper_bounds_raw<K: GpuKey, I: Index>(
        &self,
        needles: RawArray<K>,
        keys: RawArray<K>,
        bounds: RawArray<I>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        // SAFETY: the caller's guarantees.
        unsafe { self.bounds_raw(false, needles, keys, bounds, workspace, stream) }
    }

    /// # Safety
    /// [That of the raw layer](Self#safety-of-the-raw-layer).
    unsafe fn bounds_raw<K: GpuKey, I: Index>(
        &self,
        lower: bool,
        needles: RawArray<K>,
        keys: RawArray<K>,
        found: RawArray<I>,
        workspace: RawArray<u8>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        check_length("bounds", needles.len, found.len, "|needles|")?;
        // A bound is at most the number of keys, which has to be a value of the type.
        check_index_range::<I>(keys.len.saturating_add(1))?;
        let written = [found.named("bounds")?, workspace.named("workspace")?];
        check_apart(&written, &[needles.named("needles")?, keys.named("keys")?])?;
        let total = needles.len.saturating_add(keys.len);
        let workspace = workspace.workspace(Self::bounds_workspace_bytes::<K>(total))?;
        let (needles, keys, found) = (needles.keys(), keys.keys(), (found.address, size_of::<I>()));
        // SAFETY: the caller's guarantees; there is a bound for each needle, and as much workspace as needed.
        unsafe { self.on(stream, |queue| bounds::bounds::<K>(queue, lower, needles, keys, found, workspace)) }
    }

    /// Calls `work` with the queue that is the stream of that handle, while the GPU's context is current.
    ///
    /// # Safety
    /// The handle is that of a stream of the GPU's primary context, which is not destroyed meanwhile.
    pub(super) unsafe fn on(
        &self,
        stream: *mut c_void,
        work: impl FnOnce(&OnStream<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: the caller's promise; `stream` does not outlive this call.
        let stream = unsafe { BorrowedStream::of(stream) };
        work(&self.on_stream(&stream.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_written_are_apart_from_all_others() {
        let array = |address, len| RawArray::<u32>::new(address, len);
        let check = |written: [(u64, usize); 2], read: (u64, usize)| {
            let written = written.map(|(address, len)| array(address, len));
            let written = [written[0].named("out").unwrap(), written[1].named("workspace").unwrap()];
            check_apart(&written, &[array(read.0, read.1).named("a").unwrap()])
        };
        assert_eq!(check([(0x100, 4), (0x110, 4)], (0x120, 4)), Ok(()));
        assert_eq!(
            check([(0x100, 4), (0x10c, 4)], (0x120, 4)),
            Err(Error::Overlap { what: "out", other: "workspace" })
        );
        assert_eq!(check([(0x100, 4), (0x110, 4)], (0xfc, 2)), Err(Error::Overlap { what: "out", other: "a" }));
        assert_eq!(check([(0x100, 4), (0x110, 4)], (0x11c, 9)), Err(Error::Overlap { what: "workspace", other: "a" }));
        // An empty array is nowhere.
        assert_eq!(check([(0x100, 4), (0x104, 0)], (0x108, 0)), Ok(()));
        // The end of memory is no overflow.
        assert_eq!(check([(u64::MAX - 3, usize::MAX), (0, 0)], (0x100, 4)), Ok(()));
    }

    #[test]
    fn addresses_are_aligned_and_not_0() {
        let error = RawArray::<u64>::new(12, 1).named("keys").err().unwrap();
        assert_eq!(error.to_string(), "keys is at address 0xc, expected a multiple of 8 other than 0");
        assert!(RawArray::<u64>::new(0, 1).named("keys").is_err());
        assert!(RawArray::<u64>::new(0, 0).named("keys").is_ok());
    }

    #[test]
    fn a_workspace_begins_at_a_multiple_of_16() {
        let workspace = |address, len| RawArray::new(address, len).workspace(100);
        assert_eq!(workspace(0x100, 100), Ok(0x100));
        assert_eq!(workspace(0x101, 115), Ok(0x110));
        assert_eq!(workspace(0x101, 114), Err(Error::WorkspaceTooSmall { needed: 100, found: 99 }));
        assert_eq!(workspace(0x101, 3), Err(Error::WorkspaceTooSmall { needed: 100, found: 0 }));
        assert_eq!(RawArray::new(0, 0).workspace(0), Ok(0));
    }
}
