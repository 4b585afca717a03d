//! Slices of numbers as bytes.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::transmute;

/// The bytes of `values`, if `V` is a number of 4 or 8 bytes.
pub(super) fn bytes_of<V: Copy>(values: &[V]) -> Option<&[u8]> {
    // SAFETY: numbers have no padding, so all `size_of_val(values)` bytes are initialised. The result borrows `values`.
    is_number::<V>().then(|| unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) })
}

/// [`bytes_of`] for writing.
pub(super) fn bytes_of_mut<V: Copy>(values: &mut [V]) -> Option<&mut [u8]> {
    let bytes = size_of_val(values);
    // SAFETY: numbers have no padding, and every bit pattern is a number. The result borrows `values` mutably.
    is_number::<V>().then(|| unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), bytes) })
}

/// Whether `V` is an integer or a float of 4 or 8 bytes. Other types of the same size may have padding, which must not
/// be read.
fn is_number<V>() -> bool {
    let id = type_id::<V>();
    let four = [TypeId::of::<u32>(), TypeId::of::<i32>(), TypeId::of::<f32>()];
    let eight = [TypeId::of::<u64>(), TypeId::of::<i64>(), TypeId::of::<f64>()];
    let native = [TypeId::of::<usize>(), TypeId::of::<isize>()];
    four.contains(&id) || eight.contains(&id) || native.contains(&id)
}

/// The id of `T` with each of its lifetimes replaced by `'static`.
fn type_id<T>() -> TypeId {
    trait Identified {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Identified for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let phantom: &dyn Identified = &PhantomData::<T>;
    // SAFETY: only the lifetime bound of the trait object changes. The method reads nothing, and its code does not
    // depend on lifetimes.
    unsafe { transmute::<&dyn Identified, &(dyn Identified + 'static)>(phantom) }.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_their_bytes() {
        assert_eq!(bytes_of(&[1u32, 2]), Some(&[1, 0, 0, 0, 2, 0, 0, 0][..]));
        assert_eq!(bytes_of(&[0.0f64; 3]).map(<[u8]>::len), Some(24));
        let mut values = [7i32, 8];
        bytes_of_mut(&mut values).unwrap()[..4].copy_from_slice(&(-2i32).to_le_bytes());
        assert_eq!(values, [-2, 8]);
        let empty: [usize; 0] = [];
        assert_eq!(bytes_of(&empty), Some(&[][..]));
    }

    #[test]
    fn other_values_are_not_whatever_their_size_and_lifetime() {
        fn has_bytes<V: Copy>(value: V) -> bool {
            bytes_of(&[value]).is_some() || bytes_of_mut(&mut [value]).is_some()
        }
        let text = String::from("not static");
        let reference = &(text.len() as u64);
        assert!(!has_bytes(reference));
        assert!(!has_bytes(text.as_str()));
        assert!(!has_bytes((1u16, 2u8)));
        assert!(!has_bytes([1u8; 4]));
        assert!(!has_bytes('a'));
        assert!(!has_bytes(()));
        assert!(!has_bytes(1u128));
    }
}
