//! The arguments of a stream's calls: keys in a GPU's memory, alone or with values.

use super::launch::{Arrays, OnStream, align};
use super::operation::Operation;
use super::{Address, DeviceArray, DeviceOffsets, Stream};
use crate::Error;
use crate::engine::{check_last_group, check_length, check_values};
use bytemuck::Pod;

/// Keys of type `K` in a GPU's memory that a call reads, with values of type `V`, or `()` for keys alone.
/// `&DeviceArray<K>` and `(&DeviceArray<K>, &DeviceArray<V>)` implement it, and no other type.
///
/// Value `i` belongs to key `i`. In calls for numbers, a value is plain data of 4 or 8 bytes, aligned to its size,
/// which is checked at compile time. Calls in a user's own order take values of the types that the order has kernels
/// for.
///
/// ```no_run
/// use merge_host::{Gpu, MergeKernel, workspace};
///
/// let stream = Gpu::new(0)?.stream()?;
/// let (a, b) = (stream.upload(&[1u32, 3])?, stream.upload(&[2u32])?);
/// let (a_values, b_values) = (stream.upload(&[0.5f32, 1.5])?, stream.upload(&[7.0f32])?);
/// let (mut keys, mut values) = (stream.zeroed(3)?, stream.zeroed(3)?);
/// let mut memory = stream.zeroed(workspace::merge::<u32, f32>(MergeKernel::Auto, 3))?;
/// stream.merge(MergeKernel::Auto, &a, &b, &mut keys, &mut memory)?;
/// stream.merge(MergeKernel::Auto, (&a, &a_values), (&b, &b_values), (&mut keys, &mut values), &mut memory)?;
/// assert_eq!(values.download()?, [0.5, 7.0, 1.5]);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as elements: expected `&keys` or `(&keys, &values)` of `DeviceArray`s",
    label = "expected `&keys` or `(&keys, &values)`"
)]
pub trait DeviceElements<K, V>: DeviceInput<K, V> {}

/// Elements that a call writes: `&mut DeviceArray<K>` or `(&mut DeviceArray<K>, &mut DeviceArray<V>)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as elements: expected `&mut keys` or `(&mut keys, &mut values)` of \
        `DeviceArray`s",
    label = "expected `&mut keys` or `(&mut keys, &mut values)`"
)]
pub trait DeviceElementsMut<K, V>: DeviceInOut<K, V> + DeviceOutput<K, V> {}

/// The first elements of arrays in a GPU's memory. Their number is the only element of another array, so that the host
/// need not know it: a CUDA graph puts one operation behind another whose number of results varies.
///
/// The host knows the capacity, the length of the arrays. A number above it counts as the capacity. Workspace is that
/// of the capacity, and so is the number of blocks of a launch; blocks without elements end at once. Elements behind
/// the first ones are unspecified after a sort, and in a result.
///
/// The second field is `&count` for elements that a call reads or sorts, and `&mut count` for a result, of which the
/// call writes the number. Either may be an `Option`, for callers that learn at run time whether there is a count.
/// `None` stands for all elements.
///
/// ```no_run
/// use merge_host::{Counted, Gpu, MergeKernel, SortOrder, workspace};
///
/// let stream = Gpu::new(0)?.stream()?;
/// let keys = stream.upload(&[7u32, 7, 3, 3, 3, 5])?;
/// let (mut heads, mut count) = (stream.zeroed(6)?, stream.zeroed(1)?);
/// let bytes = [
///     workspace::groups::<u32>(6),
///     workspace::sort::<u32, ()>(6),
///     workspace::merge::<u32, ()>(MergeKernel::MergePath, 8),
/// ];
/// let mut memory = stream.zeroed(bytes.into_iter().max().unwrap_or(0))?;
/// // One head of each group of equal neighbours, sorted, and merged with other keys.
/// stream.unique(&keys, &mut heads, &mut count, &mut memory)?;
/// stream.sort(SortOrder::Ascending, Counted(&mut heads, &count), &mut memory)?;
/// let (others, mut out, mut total) = (stream.upload(&[4, 9])?, stream.zeroed(8)?, stream.zeroed(1)?);
/// let out_and_total = Counted(&mut out, &mut total);
/// stream.merge(MergeKernel::Auto, Counted(&heads, &count), &others, out_and_total, &mut memory)?;
/// assert_eq!(total.download()?, [5]);
/// assert_eq!(out.download()?[..5], [3, 4, 5, 7, 9]);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counted<E, C>(pub E, pub C);

/// [`DeviceElements`], or the first of them, [`Counted`], that a call reads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as elements: expected `&keys`, `(&keys, &values)`, or `Counted` of these and \
        `&count`",
    label = "expected `&keys`, `(&keys, &values)` or `Counted(…, &count)`"
)]
pub trait DeviceInput<K, V>: sealed::Elements {}

/// [`DeviceElementsMut`], or the first of them, [`Counted`], that a call reads and writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sorted: expected `&mut keys`, `(&mut keys, &mut values)`, or `Counted` of these and \
        `&count`",
    label = "expected `&mut keys`, `(&mut keys, &mut values)` or `Counted(…, &count)`"
)]
pub trait DeviceInOut<K, V>: sealed::Elements {}

/// [`DeviceElementsMut`] that a call writes, alone or with the place of their number, [`Counted`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as elements: expected `&mut keys`, `(&mut keys, &mut values)`, or `Counted` \
        of these and `&mut count`",
    label = "expected `&mut keys`, `(&mut keys, &mut values)` or `Counted(…, &mut count)`"
)]
pub trait DeviceOutput<K, V>: sealed::Elements {}

impl<K: Pod> DeviceInput<K, ()> for &DeviceArray<K> {}
impl<K: Pod, V: Pod> DeviceInput<K, V> for (&DeviceArray<K>, &DeviceArray<V>) {}
impl<K, V, E: DeviceElements<K, V>> DeviceInput<K, V> for Counted<E, &DeviceArray<u64>> {}
impl<K, V, E: DeviceElements<K, V>> DeviceInput<K, V> for Counted<E, Option<&DeviceArray<u64>>> {}
impl<K: Pod> DeviceInOut<K, ()> for &mut DeviceArray<K> {}
impl<K: Pod, V: Pod> DeviceInOut<K, V> for (&mut DeviceArray<K>, &mut DeviceArray<V>) {}
impl<K, V, E: DeviceElementsMut<K, V>> DeviceInOut<K, V> for Counted<E, &DeviceArray<u64>> {}
impl<K, V, E: DeviceElementsMut<K, V>> DeviceInOut<K, V> for Counted<E, Option<&DeviceArray<u64>>> {}
impl<K: Pod> DeviceOutput<K, ()> for &mut DeviceArray<K> {}
impl<K: Pod, V: Pod> DeviceOutput<K, V> for (&mut DeviceArray<K>, &mut DeviceArray<V>) {}
impl<K, V, E: DeviceElementsMut<K, V>> DeviceOutput<K, V> for Counted<E, &mut DeviceArray<u64>> {}
impl<K, V, E: DeviceElementsMut<K, V>> DeviceOutput<K, V> for Counted<E, Option<&mut DeviceArray<u64>>> {}

pub(super) mod sealed {
    /// The arrays of keys and values behind an argument.
    pub trait Elements {
        /// Whether the number of elements may be in the GPU's memory.
        const IS_COUNTED: bool = false;

        /// The keys, and the values if there are any.
        fn parts(&self) -> (super::Part<'_>, Option<super::Part<'_>>);

        /// The number of elements, if it is in the GPU's memory, and whether the call writes it.
        fn count(&self) -> Option<(super::Part<'_>, bool)> {
            None
        }
    }

    /// The array of a number of elements.
    pub trait Count {
        /// Whether the call writes the number.
        const IS_WRITTEN: bool;

        /// The array, if there is one.
        fn part(&self) -> Option<super::Part<'_>>;
    }

    /// The arrays of keys and values of each member of a group.
    pub trait Group {
        /// The number of arrays of keys, and the number of arrays of values.
        fn members(&self) -> [usize; 2];
        /// The arrays of member `i`.
        fn member(&self, i: usize) -> super::OfMember<'_>;
    }
}

impl<K: Pod> DeviceElements<K, ()> for &DeviceArray<K> {}
impl<K: Pod, V: Pod> DeviceElements<K, V> for (&DeviceArray<K>, &DeviceArray<V>) {}
impl<K: Pod> DeviceElementsMut<K, ()> for &mut DeviceArray<K> {}
impl<K: Pod, V: Pod> DeviceElementsMut<K, V> for (&mut DeviceArray<K>, &mut DeviceArray<V>) {}

impl<K> sealed::Elements for &DeviceArray<K> {
    fn parts(&self) -> (Part<'_>, Option<Part<'_>>) {
        (Part::of(self), None)
    }
}

impl<K> sealed::Elements for &mut DeviceArray<K> {
    fn parts(&self) -> (Part<'_>, Option<Part<'_>>) {
        (Part::of(self), None)
    }
}

impl<K, V> sealed::Elements for (&DeviceArray<K>, &DeviceArray<V>) {
    fn parts(&self) -> (Part<'_>, Option<Part<'_>>) {
        (Part::of(self.0), Some(Part::of(self.1)))
    }
}

impl<K, V> sealed::Elements for (&mut DeviceArray<K>, &mut DeviceArray<V>) {
    fn parts(&self) -> (Part<'_>, Option<Part<'_>>) {
        (Part::of(self.0), Some(Part::of(self.1)))
    }
}

impl<E: sealed::Elements, C: sealed::Count> sealed::Elements for Counted<E, C> {
    const IS_COUNTED: bool = true;

    fn parts(&self) -> (Part<'_>, Option<Part<'_>>) {
        self.0.parts()
    }

    fn count(&self) -> Option<(Part<'_>, bool)> {
        Some((self.1.part()?, C::IS_WRITTEN))
    }
}

impl sealed::Count for &DeviceArray<u64> {
    const IS_WRITTEN: bool = false;

    fn part(&self) -> Option<Part<'_>> {
        Some(Part::of(self))
    }
}

impl sealed::Count for &mut DeviceArray<u64> {
    const IS_WRITTEN: bool = true;

    fn part(&self) -> Option<Part<'_>> {
        Some(Part::of(self))
    }
}

impl<C: sealed::Count> sealed::Count for Option<C> {
    const IS_WRITTEN: bool = C::IS_WRITTEN;

    fn part(&self) -> Option<Part<'_>> {
        self.as_ref()?.part()
    }
}

/// Checks at compile time that the number of elements of `out` is written if the number of elements of an input may be
/// in the GPU's memory.
pub(super) fn counts_out<A: sealed::Elements, B: sealed::Elements, O: sealed::Elements>(_: &A, _: &B, _: &O) {
    const {
        let counts = O::IS_COUNTED || !(A::IS_COUNTED || B::IS_COUNTED);
        assert!(counts, "the result of `Counted` elements is `Counted`, too");
    }
}

/// Checks that the number of elements of `out` is written if the number of elements of an input is in the GPU's memory.
pub(super) fn check_counts(inputs: &[Arrays], out: Arrays) -> Result<(), Error> {
    let is_counted = inputs.iter().any(|input| input.count != 0);
    if is_counted && out.count == 0 { Err(Error::NoCount { what: "out" }) } else { Ok(()) }
}

/// Keys that are distributed over the GPUs of a [`GpuGroup`](crate::GpuGroup) and that a call reads, with values of
/// type `V`, or `()` for keys alone. `&[DeviceArray<K>]` and `(&[DeviceArray<K>], &[DeviceArray<V>])` implement it,
/// with one array for each member, and no other type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array of a group: expected `&keys[..]` or `(&keys[..], &values[..])`",
    label = "expected `&keys[..]` or `(&keys[..], &values[..])`"
)]
pub trait GroupElements<K, V>: sealed::Group {}

/// Distributed elements that a call writes: `&mut [DeviceArray<K>]` or
/// `(&mut [DeviceArray<K>], &mut [DeviceArray<V>])`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array of a group: expected `&mut keys[..]` or `(&mut keys[..], &mut values[..])`",
    label = "expected `&mut keys[..]` or `(&mut keys[..], &mut values[..])`"
)]
pub trait GroupElementsMut<K, V>: sealed::Group {}

impl<K: Pod> GroupElements<K, ()> for &[DeviceArray<K>] {}
impl<K: Pod, V: Pod> GroupElements<K, V> for (&[DeviceArray<K>], &[DeviceArray<V>]) {}
impl<K: Pod> GroupElementsMut<K, ()> for &mut [DeviceArray<K>] {}
impl<K: Pod, V: Pod> GroupElementsMut<K, V> for (&mut [DeviceArray<K>], &mut [DeviceArray<V>]) {}

/// The elements of one member.
pub struct OfMember<'a>(Part<'a>, Option<Part<'a>>);

impl sealed::Elements for OfMember<'_> {
    fn parts(&self) -> (Part<'_>, Option<Part<'_>>) {
        (self.0, self.1)
    }
}

macro_rules! group {
    ($($slice:ty)*) => {$(
        impl<K> sealed::Group for $slice {
            fn members(&self) -> [usize; 2] {
                [self.len(); 2]
            }
            fn member(&self, i: usize) -> OfMember<'_> {
                OfMember(Part::of(&self[i]), None)
            }
        }
    )*};
}
group!(&[DeviceArray<K>] &mut [DeviceArray<K>]);

macro_rules! group_of_pairs {
    ($($slices:ty)*) => {$(
        impl<K, V> sealed::Group for $slices {
            fn members(&self) -> [usize; 2] {
                [self.0.len(), self.1.len()]
            }
            fn member(&self, i: usize) -> OfMember<'_> {
                OfMember(Part::of(&self.0[i]), Some(Part::of(&self.1[i])))
            }
        }
    )*};
}
group_of_pairs!((&[DeviceArray<K>], &[DeviceArray<V>]) (&mut [DeviceArray<K>], &mut [DeviceArray<V>]));

/// An array, without the type of its elements.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    address: Address,
    len: usize,
    element_bytes: usize,
    stream: &'a Stream,
}

impl<'a> Part<'a> {
    pub(super) fn of<T>(array: &'a DeviceArray<T>) -> Self {
        let (address, stream) = (array.address(), array.stream());
        Self { address, len: array.len(), element_bytes: size_of::<T>(), stream }
    }
}

/// Bytes of a value in calls for numbers: 4 or 8, or 0 if there are no values.
pub(super) const fn value_bytes<V>() -> usize {
    assert!(matches!(size_of::<V>(), 0 | 4 | 8), "values have 4 or 8 bytes");
    assert!(size_of::<V>() == 0 || align_of::<V>() == size_of::<V>(), "values are aligned to their size");
    size_of::<V>()
}

/// The names of keys and values in messages.
type Names = (&'static str, &'static str);

/// The address range of an argument.
struct Argument {
    name: &'static str,
    begin: Address,
    end: Address,
}

/// A call of a stream. Each argument is checked when it is added. All arguments are checked against each other before
/// anything is queued.
pub(super) struct Call<'a> {
    stream: &'a Stream,
    written: Vec<Argument>,
    read: Vec<Argument>,
}

impl<'a> Call<'a> {
    pub(super) fn new(stream: &'a Stream) -> Self {
        Self { stream, written: Vec::new(), read: Vec::new() }
    }

    /// Adds elements that are read.
    ///
    /// # Errors
    /// [`Error::OtherStream`], [`Error::OtherGpu`] or [`Error::ValuesMismatch`], and [`Error::LengthMismatch`] if an
    /// array for a number has another length than 1.
    pub(super) fn reads(&mut self, names: Names, elements: &impl sealed::Elements) -> Result<Arrays, Error> {
        let (arrays, arguments) = self.checked(names, elements)?;
        self.read.extend(arguments.into_iter().flatten());
        self.add_count(arrays, elements)
    }

    /// Adds elements that are written.
    ///
    /// # Errors
    /// The errors of [`reads`](Self::reads).
    pub(super) fn writes(&mut self, names: Names, elements: &impl sealed::Elements) -> Result<Arrays, Error> {
        let (arrays, arguments) = self.checked(names, elements)?;
        self.written.extend(arguments.into_iter().flatten());
        self.add_count(arrays, elements)
    }

    /// Adds the array that has the number of elements, if there is one.
    fn add_count(&mut self, arrays: Arrays, elements: &impl sealed::Elements) -> Result<Arrays, Error> {
        let Some((count, is_written)) = elements.count() else { return Ok(arrays) };
        let argument = self.argument("count", count)?;
        check_length("count", 1, count.len, "one number")?;
        if is_written {
            self.written.push(argument)
        } else {
            self.read.push(argument)
        }
        Ok(Arrays { count: count.address, ..arrays })
    }

    fn checked(
        &self,
        names: Names,
        elements: &impl sealed::Elements,
    ) -> Result<(Arrays, [Option<Argument>; 2]), Error> {
        let (keys, values) = elements.parts();
        let of_keys = self.argument(names.0, keys)?;
        let arrays = Arrays::keys(keys.address, keys.len);
        let Some(values) = values else { return Ok((arrays, [Some(of_keys), None])) };
        let of_values = self.argument(names.1, values)?;
        check_values(names.0, keys.len, values.len)?;
        let arrays = Arrays { values: values.address, value_bytes: values.element_bytes, ..arrays };
        Ok((arrays, [Some(of_keys), Some(of_values)]))
    }

    /// The address range of the argument `name`, if it belongs to this stream.
    fn argument(&self, name: &'static str, part: Part<'_>) -> Result<Argument, Error> {
        self.stream.check_owns(name, part.stream)?;
        let bytes = part.len.saturating_mul(part.element_bytes) as u64;
        Ok(Argument { name, begin: part.address, end: part.address.saturating_add(bytes) })
    }

    /// Adds the array that receives the number of results.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if its length is not 1, and the errors of [`reads`](Self::reads).
    pub(super) fn count(&mut self, count: &DeviceArray<u64>) -> Result<Address, Error> {
        let array = self.writes(("count", ""), &count)?;
        check_length("count", 1, array.len, "one number")?;
        Ok(array.keys)
    }

    /// Adds the offsets of the argument `of`, which has `keys` keys.
    ///
    /// # Errors
    /// [`Error::LastOffset`] if the last offset is not `keys`, and the errors of [`reads`](Self::reads).
    pub(super) fn offsets(
        &mut self,
        (name, of): Names,
        offsets: &DeviceOffsets,
        keys: usize,
    ) -> Result<Address, Error> {
        if offsets.end() != keys {
            return Err(Error::LastOffset { what: of, found: offsets.end(), expected: keys });
        }
        Ok(self.reads((name, ""), &offsets.array())?.keys)
    }

    /// [`offsets`](Self::offsets) for a call that needs to know the end of the last run.
    ///
    /// # Errors
    /// [`Error::LengthsOnGpu`] if only the GPU knows it, and the errors of [`offsets`](Self::offsets).
    pub(super) fn exact_offsets(
        &mut self,
        names: Names,
        offsets: &DeviceOffsets,
        keys: usize,
    ) -> Result<Address, Error> {
        check_end(offsets, "merge_ragged")?;
        self.offsets(names, offsets, keys)
    }

    /// Adds the offsets of groups of `runs` runs.
    ///
    /// # Errors
    /// [`Error::LastGroup`] if the last offset is not `runs`, [`Error::LengthsOnGpu`] if only the GPU knows it, and the
    /// errors of [`reads`](Self::reads).
    pub(super) fn groups(&mut self, groups: &DeviceOffsets, runs: usize) -> Result<Address, Error> {
        check_end(groups, "merge_many")?;
        check_last_group(groups.end(), runs)?;
        Ok(self.reads(("groups", ""), &groups.array())?.keys)
    }

    /// Queues the operation on the arguments of this call.
    ///
    /// # Errors
    /// [`Error::WorkspaceTooSmall`], [`Error::Overlap`], or [`Error::Device`] where the driver fails.
    pub(super) fn run<K>(mut self, operation: &dyn Operation<K>, workspace: &mut DeviceArray<u8>) -> Result<(), Error> {
        let workspace = self.writes(("workspace", ""), &workspace)?;
        let begin = workspace_begin(workspace, operation.workspace_bytes())?;
        self.queue(operation, begin)
    }

    /// Checks that no written argument overlaps another argument.
    pub(super) fn check(&self) -> Result<(), Error> {
        check_apart(&self.written, &self.read)
    }

    /// [`run`](Self::run) for an operation that needs no workspace.
    pub(super) fn run_without_workspace<K>(self, operation: &dyn Operation<K>) -> Result<(), Error> {
        self.queue(operation, 0)
    }

    fn queue<K>(self, operation: &dyn Operation<K>, workspace: Address) -> Result<(), Error> {
        self.check()?;
        let _entered = self.stream.gpu().enter()?;
        // SAFETY: every array belongs to this stream (`argument`), which orders all work on it, and is freed after that
        // work. Written arrays are borrowed mutably and overlap no other argument (`check`). The methods of `Stream`
        // have checked lengths. `workspace` has the bytes that the operation needs (`workspace_begin`), or the
        // operation needs none.
        unsafe { operation.launch(&OnStream::new(self.stream), workspace) }
    }
}

/// Checks that the host knows the end of the last run.
fn check_end(offsets: &DeviceOffsets, kernel: &'static str) -> Result<(), Error> {
    if offsets.ends_early() { Err(Error::LengthsOnGpu { kernel }) } else { Ok(()) }
}

/// Checks that no written argument overlaps another argument. Arrays that this library allocates never do.
fn check_apart(written: &[Argument], read: &[Argument]) -> Result<(), Error> {
    // An empty range overlaps nothing, wherever it is.
    let overlap = |a: &Argument, b: &Argument| a.begin.max(b.begin) < a.end.min(b.end);
    for (i, one) in written.iter().enumerate() {
        if let Some(other) = written[i + 1..].iter().chain(read).find(|other| overlap(one, other)) {
            return Err(Error::Overlap { what: one.name, other: other.name });
        }
    }
    Ok(())
}

/// The first multiple of 16 in the workspace, if at least `needed` bytes follow it.
pub(super) fn workspace_begin(array: Arrays, needed: usize) -> Result<Address, Error> {
    let padding = (array.keys.wrapping_neg() % align(1) as u64) as usize;
    let found = array.len.saturating_sub(padding);
    if found < needed {
        return Err(Error::WorkspaceTooSmall { needed, found });
    }
    Ok(array.keys.saturating_add(padding as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_written_are_apart_from_all_others() {
        let argument = |name, begin: u64, len: u64| Argument { name, begin, end: begin.saturating_add(4 * len) };
        let check = |[out, workspace]: [(u64, u64); 2], a: (u64, u64)| {
            let written = [argument("out", out.0, out.1), argument("workspace", workspace.0, workspace.1)];
            check_apart(&written, &[argument("a", a.0, a.1)])
        };
        let overlap = |what, other| Err(Error::Overlap { what, other });
        assert_eq!(check([(0x100, 4), (0x110, 4)], (0x120, 4)), Ok(()));
        assert_eq!(check([(0x100, 4), (0x10c, 4)], (0x120, 4)), overlap("out", "workspace"));
        assert_eq!(check([(0x100, 4), (0x110, 4)], (0xfc, 2)), overlap("out", "a"));
        assert_eq!(check([(0x100, 4), (0x110, 4)], (0x11c, 9)), overlap("workspace", "a"));
        // An empty array overlaps nothing, and a range up to the end of memory does not overflow.
        assert_eq!(check([(0x100, 4), (0x104, 0)], (0x108, 0)), Ok(()));
        assert_eq!(check([(u64::MAX - 3, 4), (0, 0)], (0x100, 4)), Ok(()));
    }

    #[test]
    fn a_workspace_begins_at_a_multiple_of_16() {
        let begin = |address, len| workspace_begin(Arrays::keys(address, len), 100);
        assert_eq!(begin(0x100, 100), Ok(0x100));
        assert_eq!(begin(0x101, 115), Ok(0x110));
        assert_eq!(begin(0x101, 114), Err(Error::WorkspaceTooSmall { needed: 100, found: 99 }));
        assert_eq!(begin(0x101, 3), Err(Error::WorkspaceTooSmall { needed: 100, found: 0 }));
        assert_eq!(workspace_begin(Arrays::keys(0, 0), 0), Ok(0));
    }
}
