//! A second stream beside each stream of the caller, for launches that need not wait for each other.

use super::failure::OrFailure;
use crate::Error;
use cust::stream::{Stream, StreamFlags};
use elsa::sync::FrozenMap;

/// The second streams, by the addresses of the first ones. A stream that two others shared would let one of these wait for the other,
/// and could not be captured in the graphs of both.
#[derive(Default)]
pub(super) struct SideStreams(FrozenMap<usize, Box<Stream>>);

impl SideStreams {
    /// The stream beside `stream`, of the same priority. The context of both is current.
    pub(super) fn of(&self, stream: &Stream) -> Result<&Stream, Error> {
        // A stream that is gone may have had the same address; the one beside it serves as well.
        let address = stream.as_inner() as usize;
        if let Some(side) = self.0.get(&address) {
            return Ok(side);
        }
        let priority = Some(stream.get_priority().or_failure("cuStreamGetPriority")?);
        let side = Stream::new(StreamFlags::NON_BLOCKING, priority).or_failure("cuStreamCreateWithPriority")?;
        Ok(self.0.insert(address, Box::new(side)))
    }
}
