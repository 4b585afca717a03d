//! Sorts keys from file to file: the engine reads them where it needs them and writes them where they belong.
//!
//! ```text
//!   IN  ├──┼──┼──┼──┤  all threads  ─►  engine  ─►  all threads  ├──┼──┼──┼──┤  OUT
//! ```
//!
//! With a GPU, the keys are never in this program's memory as a whole.

use crate::engine::{ChosenEngine, Trouble};
use crate::error::{Failure, Result};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::output::{Output, Writer};
use crate::stats::{Phase, Stats};
use merge_host::{Engine, Error, SortOrder};

/// Sorts the `count` keys of `input`, a regular file, to `output`, which takes them in any order, and gives what is to be
/// [finished](crate::output::finish).
pub fn run<K: FileKey>(
    order: SortOrder,
    input: &Input,
    count: u64,
    mut output: Output,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<Writer> {
    let too_many = || Failure::file(input.path(), format!("has {count} keys, more than this machine can address"));
    let len = usize::try_from(count).map_err(|_| too_many())?;
    output.expect(count);
    let mut writer = output.begin()?;
    // The engine starts meanwhile.
    let room = stats.time(Phase::Write, || writer.room(count * K::SIZE as u64))?;
    let sort = |engine: &Engine, _: &mut ()| {
        let read = |begin: usize, keys: &mut [K]| input.read_at(begin as u64, keys).map_err(Trouble::Failure);
        let write = |begin: usize, keys: &[K]| {
            let written = room.write((begin * K::SIZE) as u64, bytemuck::cast_slice(keys));
            written.map_err(Trouble::Failure)
        };
        engine.sort_streamed(order, len, read, write).map_err(|trouble| match trouble {
            Trouble::Engine(Error::OutOfHostMemory { needed }) => {
                let message = format!("takes {needed} bytes of memory, and the system gives none");
                Trouble::Failure(Failure::file(input.path(), message))
            }
            trouble => trouble,
        })
    };
    // Every key is read again, and every place of the output written again.
    let timing = engine.run(&mut (), sort, |()| Ok(true))?;
    stats.add_through(timing, engine.name()? == "gpu");
    drop(room);
    Ok(writer)
}
