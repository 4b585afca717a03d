//! A struct, two orders of it, and kernels for both orders.
//!
//! This crate is compiled twice: for the program, and by the program's build script for the GPU.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

use bytemuck::{Pod, Zeroable};
use kernels_gpu::own::{Compare, Key, kernels};

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Date {
    /// Negative before the year 0.
    pub year: i16,
    /// Counted from 1.
    pub month: u8,
    /// Counted from 1.
    pub day: u8,
}

/// A person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Person {
    /// The day of birth.
    pub born: Date,
    /// The name in UTF-8, padded with zeros.
    pub name: [u8; 16],
}

/// Order by date of birth, which fits in 4 bytes of bits. Persons with equal dates keep their order.
impl Key for Person {
    type Bits = u32;

    fn to_ordered(self) -> u32 {
        let Date { year, month, day } = self.born;
        // The sign bit is flipped, so that negative years come first.
        u32::from(year as u16 ^ 1 << 15) << 16 | u32::from(month) << 8 | u32::from(day)
    }
}

/// Order by name, and then by date of birth, as a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ByName;

impl Compare for ByName {
    type Item = Person;

    fn is_before(a: &Person, b: &Person) -> bool {
        // Names are compared as numbers, which is faster on the GPU than comparing bytes.
        let [a_name, b_name] = [a, b].map(|person| u128::from_be_bytes(person.name));
        a_name < b_name || a_name == b_name && a.to_ordered() < b.to_ordered()
    }
}

kernels! {
    person: Person;
    person_with_index: Person, values u32;
    by_name: ByName;
    by_name_with_index: ByName, values u32;
}
