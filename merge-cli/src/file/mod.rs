//! Files that are read and written.

mod attributes;
pub mod blocks;
pub mod concatenation;
mod fortran;
pub mod identity;
mod in_place;
pub mod input;
mod mapping;
pub mod names;
pub mod offsets;
pub mod output;
mod outputs;
mod region;
mod replace;
mod target;
mod temporary;
pub mod values;

pub use concatenation::Concatenation;
pub use identity::Identity;
pub use in_place::InPlace;
pub use input::Input;
pub use output::{Form, KeyRegion, Location, Output, SharedWriter, Writer};
pub use outputs::{Outputs, Writers};
pub use target::{Target, Targets};
