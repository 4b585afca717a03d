//! Tables: Arrow files and streams, and Parquet files, with any columns.
//!
//! ```text
//!   files ──read──► record batches ──key──► byte strings in the order of the rows
//!                        │                        │ argsort
//!                        ▼                        ▼
//!                      chunk ───gather──► sorted runs of some 2^16 rows, in memory or in temporary files
//!                                             │ merge
//!                                             ▼
//!                                       rows in order ──write──► a file
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `schema` | the common schema of all inputs |
//! | `key` | the key of a row as a byte string |
//! | `dictionary` | one dictionary for all batches of a column |
//! | `rows` | rows with their keys |
//! | `chunk` | rows that are sorted in memory |
//! | `gather` | columns of rows in any order |
//! | `merge` | the merge of sorted runs |
//! | `parquet_types` | the types that Parquet has in place of Arrow's |
//! | `spill` | sorted runs in memory and in temporary files |
//! | `read`, `write` | the formats |

mod chunk;
mod dictionary;
mod gather;
mod key;
mod merge;
mod parquet_types;
mod read;
mod rows;
mod schema;
mod spill;
mod write;

pub use chunk::{Chunk, Limits, bytes_of};
pub use dictionary::Dictionaries;
pub use key::TableKey;
pub use merge::{Merging, Run, merge};
pub use read::{Reader, damage};
pub use rows::Rows;
pub use schema::{common_schema, list_of_columns};
pub use spill::{Runs, share};
pub use write::{TableOutput, TableWriter};

use crate::say::error::{Failure, without_kinds};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// A failure on its way through a library that passes errors of [`io`] on.
#[derive(Debug)]
struct Carried(Failure);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message().unwrap_or_default())
    }
}

impl Error for Carried {}

/// The failure as an error of [`io`], from which [`failure`] takes it.
fn carried(failure: Failure) -> io::Error {
    io::Error::other(Carried(failure))
}

/// The failure of work on the file at `path`: the failure that `error` carries, or a new one.
pub fn failure(path: &Path, error: &(dyn Error + 'static)) -> Failure {
    failure_of(path, "", error)
}

/// [`failure`] with a text before that of a library.
fn failure_of(path: &Path, before: &str, error: &(dyn Error + 'static)) -> Failure {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return match cause.get_ref().and_then(|inner| inner.downcast_ref::<Carried>()) {
                Some(Carried(failure)) => failure.clone(),
                None if cause.kind() == io::ErrorKind::UnexpectedEof => {
                    Failure::file(path, format!("{before}ends early: is it complete?"))
                }
                None => Failure::io(path, cause),
            };
        }
        next = cause.source();
    }
    // The texts of some errors have several lines.
    let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let text =
        without_kinds(&text).replace("Disabled feature at compile time:", "gmerge does not read its compression:");
    let hint = if text.contains("Unexpected end of stream") { ": is it complete?" } else { "" };
    Failure::file(path, format!("{before}{text}{hint}"))
}
