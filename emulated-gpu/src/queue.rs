//! Streams and events: the work that is not done yet.

use crate::driver::{Driver, Result, Status};
use cuda_std::emulator::{Emulator, Fault, FaultKind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A range of the host's memory.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub start: usize,
    pub bytes: usize,
}

impl Host {
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.start + other.bytes && other.start < self.start + self.bytes
    }
}

/// A launch of a kernel.
#[derive(Clone)]
pub struct Launch {
    pub kernel: &'static str,
    pub grid: (u32, u32, u32),
    pub block: (u32, u32, u32),
    pub shared_bytes: u32,
    pub thread: Arc<dyn Fn() + Send + Sync>,
}

/// Work of a stream.
#[derive(Clone)]
pub enum Work {
    Launch(Launch),
    Upload {
        to: usize,
        from: Host,
    },
    Download {
        to: Host,
        from: usize,
    },
    Copy {
        to: usize,
        from: usize,
        bytes: usize,
    },
    Fill {
        to: usize,
        word: Vec<u8>,
        count: usize,
    },
    /// The event happens for this time.
    Record(usize, u64),
    /// Waits until the event has happened for this time.
    Wait(usize, u64),
    /// All work of a captured stream.
    Graph(Arc<Vec<Work>>),
}

impl Work {
    /// The memory of the host that it uses.
    pub fn host(&self) -> Option<Host> {
        match self {
            Self::Upload { from, .. } => Some(*from),
            Self::Download { to, .. } => Some(*to),
            _ => None,
        }
    }

    /// Does the work in the memory of the GPUs.
    fn run(&self, emulator: &mut Emulator) -> std::result::Result<(), Fault> {
        match self {
            Self::Launch(Launch { kernel, grid, block, shared_bytes, thread }) => {
                emulator.launch(kernel, *grid, *block, *shared_bytes, || thread())
            }
            Self::Upload { to, from } => {
                // SAFETY: the caller of the driver keeps the bytes until the copy is done.
                let bytes = unsafe { std::slice::from_raw_parts(from.start as *const u8, from.bytes) };
                emulator.upload(*to, bytes)
            }
            Self::Download { to, from } => {
                // SAFETY: the caller of the driver keeps the bytes, and does not use them, until the copy is done.
                let bytes = unsafe { std::slice::from_raw_parts_mut(to.start as *mut u8, to.bytes) };
                emulator.download(*from, bytes)
            }
            Self::Copy { to, from, bytes } => emulator.copy(*from, *to, *bytes),
            Self::Fill { to, word, count } => emulator.upload(*to, &word.repeat(*count)),
            Self::Graph(all) => all.iter().try_for_each(|work| work.run(emulator)),
            Self::Record(..) | Self::Wait(..) => Ok(()),
        }
    }
}

pub struct Stream {
    pub context: usize,
    pub priority: i32,
    pub exists: bool,
    pub queue: VecDeque<Work>,
    /// The number of the capture that the stream is part of.
    pub capture: Option<usize>,
}

pub struct Event {
    pub context: usize,
    pub has_time: bool,
    pub exists: bool,
    /// How often it has been recorded, and how often it has happened.
    pub recorded: u64,
    pub happened: u64,
    pub time: Instant,
    /// The capture in which it was last recorded.
    pub capture: Option<usize>,
}

impl Driver {
    /// Adds work to a stream, or to the capture that the stream is part of. Work of the default stream is done at once,
    /// after all work of its context.
    pub fn add(&mut self, stream: usize, work: Work) -> Result<()> {
        if stream == 0 {
            self.drain_context(self.current()?)?;
            return self.run(&work);
        }
        let current = self.current()?;
        let of = self.stream(stream)?;
        if of.context != current {
            return Err(Status::INVALID_HANDLE);
        }
        match of.capture {
            Some(capture) => self.captures[capture].work.push(work),
            None => of.queue.push_back(work),
        }
        Ok(())
    }

    /// A new stream of the current context.
    pub fn new_stream(&mut self, priority: i32) -> Result<usize> {
        let context = self.current()?;
        self.streams.push(Stream { context, priority, exists: true, queue: VecDeque::new(), capture: None });
        Ok(self.streams.len() - 1)
    }

    /// Does all work of a context's streams.
    pub fn drain_context(&mut self, context: usize) -> Result<()> {
        let of_context = |at: &usize| self.streams[*at].context == context;
        let streams: Vec<usize> = (0..self.streams.len()).filter(of_context).collect();
        streams.into_iter().try_for_each(|stream| self.drain(stream))
    }

    /// Does all work of a stream, and some of others.
    pub fn drain(&mut self, stream: usize) -> Result<()> {
        while !self.streams[stream].queue.is_empty() {
            if !self.step()? {
                self.log("fault: streams wait for each other");
                return Err(self.lose(Status::UNKNOWN));
            }
        }
        Ok(())
    }

    /// Does the first work of a stream, chosen at random. Returns whether there was any that does not wait.
    pub fn step(&mut self) -> Result<bool> {
        let is_ready = |stream: &Stream| match stream.queue.front() {
            None => false,
            Some(Work::Wait(event, time)) => self.events[*event].happened >= *time,
            Some(_) => true,
        };
        let ready: Vec<usize> = (0..self.streams.len()).filter(|&at| is_ready(&self.streams[at])).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let stream = ready[self.below(ready.len())];
        if let Some(work) = self.streams[stream].queue.pop_front() {
            self.run(&work)?;
        }
        Ok(true)
    }

    fn run(&mut self, work: &Work) -> Result<()> {
        if let Work::Record(event, time) = work {
            let event = &mut self.events[*event];
            (event.happened, event.time) = (event.happened.max(*time), Instant::now());
        }
        work.run(&mut self.emulator).map_err(|fault| {
            self.log(&format!("fault: {fault}"));
            self.lose(match fault.kind {
                FaultKind::OutOfBounds { .. } => Status::ILLEGAL_ADDRESS,
                _ => Status::LAUNCH_FAILED,
            })
        })
    }

    /// An error if work that is not done uses this memory of the host.
    pub fn check_unused(&mut self, memory: Host) -> Result<()> {
        let uses = |work: &Work| work.host().is_some_and(|host| host.overlaps(memory));
        if self.streams.iter().any(|stream| stream.queue.iter().any(uses)) {
            self.log("fault: the host's memory is freed before its copy is done");
            return Err(self.lose(Status::ILLEGAL_ADDRESS));
        }
        Ok(())
    }
}
