//! The sort that divides keys repeatedly, until one block can sort each bucket.
//!
//! | file | contents |
//! | --- | --- |
//! | `plan` | how often keys are divided, and in what shapes |
//! | `once` | the launches of a single division |
//! | `levels` | the launches of several divisions, level by level |

mod levels;
mod once;
mod plan;

pub(super) use plan::DividePlan;

use super::Address;

/// Addresses of the words of a sort that divides.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The lists, [`DividePlan::list_bytes`] bytes.
    pub lists: Address,
    /// The words on the order of the keys, which `choose_digits` and `detect_runs` set.
    pub order: Address,
}
