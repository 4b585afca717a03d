//! The sort that divides keys, again and again, until one block sorts what is left together.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `plan` | how often keys are divided, and in what shapes |
//! | `once` | the launches of one division that is enough |
//! | `levels` | those of several, level by level |

mod levels;
mod once;
mod plan;

pub(super) use plan::DividePlan;

use super::Address;

/// Where the words of a sort that divides are.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Those of [`DividePlan::list_bytes`].
    pub lists: Address,
    /// What is known of the keys.
    pub order: Address,
}
