//! The arguments of an engine's calls: keys in host memory, alone or with a value for each.

use crate::Error;
use crate::cpu::{Run, RunMut};
use crate::engine::check_values;

/// Keys of type `K` that a call reads, with values of type `V`, or with `()` where there are none.
///
/// | argument | elements |
/// | --- | --- |
/// | `&keys` | keys alone |
/// | `(&keys, &values)` | keys with values |
/// | a vector, or a pair of vectors | the same, for the runs of [`merge_many`](crate::Engine::merge_many) |
///
/// `keys` and `values` are slices, arrays, vectors or boxed slices, in any combination. Value `i` belongs to key `i`,
/// so that both have the same length, which is checked ([`Error::ValuesMismatch`]). A value is anything that implements
/// `Copy`: an index, a record, an array of bytes, a borrowed string.
///
/// ```
/// use merge_host::Engine;
///
/// let (engine, mut out) = (Engine::auto(), [0; 4]);
/// engine.merge(&vec![1, 6], &[2, 4], &mut out)?;
/// assert_eq!(out, [1, 2, 4, 6]);
///
/// let mut names = [""; 4];
/// engine.merge((&[1, 6], &vec!["a1", "a6"]), (&[2, 4], &["b2", "b4"]), (&mut out, &mut names))?;
/// assert_eq!(names, ["a1", "b2", "b4", "a6"]);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as elements: expected `&keys` or `(&keys, &values)`",
    label = "expected `&keys` or `(&keys, &values)`"
)]
pub trait Elements<K, V>: sealed::Read<K, V> {}

/// Keys of type `K` that a call writes, with values of type `V`, or with `()` where there are none.
///
/// These are `&mut keys` or `(&mut keys, &mut values)`. Everything else is as for [`Elements`].
///
/// ```
/// use merge_host::Engine;
///
/// let (mut keys, mut values) = (vec![3, 1, 2], ["three", "one", "two"]);
/// Engine::auto().sort((&mut keys, &mut values))?;
/// assert_eq!((keys, values), (vec![1, 2, 3], ["one", "two", "three"]));
///
/// let mut keys = [3, 1, 2];
/// Engine::auto().sort(&mut keys[1..])?;
/// assert_eq!(keys, [3, 1, 2]);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as elements: expected `&mut keys` or `(&mut keys, &mut values)`",
    label = "expected `&mut keys` or `(&mut keys, &mut values)`"
)]
pub trait ElementsMut<K, V>: sealed::Write<K, V> {}

pub(crate) mod sealed {
    use super::{Error, Run, RunMut, check_values};

    /// Elements of one type in a row.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a slice, an array or a vector",
        label = "expected a slice, an array or a vector"
    )]
    pub trait Slice {
        type Item;
        fn slice(&self) -> &[Self::Item];
        fn slice_mut(&mut self) -> &mut [Self::Item];
    }

    pub trait Read<K, V> {
        /// The numbers of keys and of values.
        fn lengths(&self) -> (usize, usize);

        /// The elements. The numbers of keys and values are equal.
        fn as_run(&self) -> Run<'_, K, V>;

        /// The elements, if the numbers of keys and values are equal.
        ///
        /// # Errors
        /// [`Error::ValuesMismatch`] for the argument that messages call `what`.
        fn run(&self, what: &'static str) -> Result<Run<'_, K, V>, Error> {
            let (keys, values) = self.lengths();
            check_values(what, keys, values)?;
            Ok(self.as_run())
        }
    }

    pub trait Write<K, V> {
        /// The number of keys.
        fn len(&self) -> usize;

        /// The elements, if the numbers of keys and values are equal.
        ///
        /// # Errors
        /// [`Error::ValuesMismatch`] for the argument that messages call `what`.
        fn run_mut(&mut self, what: &'static str) -> Result<RunMut<'_, K, V>, Error>;
    }
}

use sealed::Slice;

macro_rules! slice {
    ($(($($parameter:tt)*) $type:ty;)*) => {$(
        impl<$($parameter)*> Slice for $type {
            type Item = T;
            #[inline(always)]
            fn slice(&self) -> &[T] {
                self
            }
            #[inline(always)]
            fn slice_mut(&mut self) -> &mut [T] {
                self
            }
        }
    )*};
}
slice! {
    (T) [T];
    (T, const N: usize) [T; N];
    (T) Vec<T>;
    (T) Box<[T]>;
}

impl<S: Slice + ?Sized> Elements<S::Item, ()> for &S {}

impl<S: Slice + ?Sized> sealed::Read<S::Item, ()> for &S {
    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.slice().len(), self.slice().len())
    }

    #[inline(always)]
    fn as_run(&self) -> Run<'_, S::Item, ()> {
        Run::of_keys(self.slice())
    }
}

impl<S: Slice + ?Sized, T: Slice + ?Sized> Elements<S::Item, T::Item> for (&S, &T) {}

impl<S: Slice + ?Sized, T: Slice + ?Sized> sealed::Read<S::Item, T::Item> for (&S, &T) {
    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.0.slice().len(), self.1.slice().len())
    }

    #[inline(always)]
    fn as_run(&self) -> Run<'_, S::Item, T::Item> {
        Run::new((self.0.slice(), self.1.slice()))
    }
}

impl<K> Elements<K, ()> for Vec<K> {}

impl<K> sealed::Read<K, ()> for Vec<K> {
    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.len(), self.len())
    }

    #[inline(always)]
    fn as_run(&self) -> Run<'_, K, ()> {
        Run::of_keys(self)
    }
}

impl<K, V> Elements<K, V> for (Vec<K>, Vec<V>) {}

impl<K, V> sealed::Read<K, V> for (Vec<K>, Vec<V>) {
    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.0.len(), self.1.len())
    }

    #[inline(always)]
    fn as_run(&self) -> Run<'_, K, V> {
        Run::new((&self.0, &self.1))
    }
}

impl<S: Slice + ?Sized> ElementsMut<S::Item, ()> for &mut S {}

impl<S: Slice + ?Sized> sealed::Write<S::Item, ()> for &mut S {
    #[inline(always)]
    fn len(&self) -> usize {
        self.slice().len()
    }

    #[inline(always)]
    fn run_mut(&mut self, _what: &'static str) -> Result<RunMut<'_, S::Item, ()>, Error> {
        Ok(RunMut::of_keys(self.slice_mut()))
    }
}

impl<S: Slice + ?Sized, T: Slice + ?Sized> ElementsMut<S::Item, T::Item> for (&mut S, &mut T) {}

impl<S: Slice + ?Sized, T: Slice + ?Sized> sealed::Write<S::Item, T::Item> for (&mut S, &mut T) {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.slice().len()
    }

    #[inline(always)]
    fn run_mut(&mut self, what: &'static str) -> Result<RunMut<'_, S::Item, T::Item>, Error> {
        let (keys, values) = (self.0.slice_mut(), self.1.slice_mut());
        check_values(what, keys.len(), values.len())?;
        Ok(RunMut::new((keys, values)))
    }
}
