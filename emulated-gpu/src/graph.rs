//! Capture of streams.

use crate::driver::{Driver, Result, Status};
use crate::queue::Work;
use std::sync::Arc;

/// A capture, in the order in which the work was added.
pub struct Capture {
    /// The stream that it began with.
    pub origin: usize,
    pub work: Vec<Work>,
    pub has_ended: bool,
}

impl Driver {
    /// Begins to record the work of a stream, instead of doing it.
    pub fn begin_capture(&mut self, stream: usize) -> Result<()> {
        let number = self.captures.len();
        let of = self.stream(stream)?;
        if of.capture.is_some() {
            return Err(Status::INVALID_VALUE);
        }
        of.capture = Some(number);
        self.captures.push(Capture { origin: stream, work: Vec::new(), has_ended: false });
        Ok(())
    }

    /// Ends the capture that began with this stream. Returns its number.
    pub fn end_capture(&mut self, stream: usize) -> Result<usize> {
        let number = self.stream(stream)?.capture.ok_or(Status::INVALID_VALUE)?;
        if self.captures[number].origin != stream {
            return Err(Status::INVALID_VALUE);
        }
        self.captures[number].has_ended = true;
        self.streams.iter_mut().filter(|of| of.capture == Some(number)).for_each(|of| of.capture = None);
        Ok(number)
    }

    /// Adds the work of a capture to a stream.
    pub fn launch_graph(&mut self, number: usize, stream: usize) -> Result<()> {
        let capture = self.captures.get(number).filter(|capture| capture.has_ended).ok_or(Status::INVALID_HANDLE)?;
        let work = Work::Graph(Arc::new(capture.work.clone()));
        self.add(stream, work)
    }

    /// An error while a stream is captured: the call may not be recorded.
    pub fn check_no_capture(&self) -> Result<()> {
        let is_capturing = self.captures.iter().any(|capture| !capture.has_ended);
        if is_capturing { Err(Status::CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }
}
