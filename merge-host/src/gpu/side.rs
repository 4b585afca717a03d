//! A second stream beside each stream of the caller, for launches that need not wait for each other.

use super::failure::OrFailure;
use crate::Error;
use cust::stream::{Stream, StreamFlags};
use elsa::sync::FrozenMap;
use std::thread::{self, ThreadId};

/// The handle by which the driver takes the default stream of the calling thread (`CU_STREAM_PER_THREAD`).
const PER_THREAD: usize = 2;

/// A stream of the caller: its handle, and the thread if the handle stands for another stream on each.
type Key = (usize, Option<ThreadId>);

/// The second streams, by the first ones. A stream that two others shared would let one of these wait for the other,
/// and could not be captured in the graphs of both.
#[derive(Default)]
pub(super) struct SideStreams(FrozenMap<Key, Box<Stream>>);

impl SideStreams {
    /// The stream beside `stream`, of the same priority. The context of both is current.
    pub(super) fn of(&self, stream: &Stream) -> Result<&Stream, Error> {
        // A stream that is gone may have had the same handle; the one beside it serves as well.
        let handle = stream.as_inner() as usize;
        let key = (handle, (handle == PER_THREAD).then(|| thread::current().id()));
        if let Some(side) = self.0.get(&key) {
            return Ok(side);
        }
        // The handles up to that one are default streams, which have the default priority.
        let priority =
            if handle <= PER_THREAD { None } else { Some(stream.get_priority().or_failure("cuStreamGetPriority")?) };
        let side = Stream::new(StreamFlags::DEFAULT, priority).or_failure("cuStreamCreateWithPriority")?;
        Ok(self.0.insert(key, Box::new(side)))
    }
}
