//! A block that is running: its threads, its barriers and its shared memory.

use super::{
    clock::{Clocks, SharedClock, joined},
    fault::{Barrier, FaultKind, Index3, Missing},
    random::Random,
    shadow::{Now, Shadow, WARP},
    warp::{Operation, Warp, WarpCall},
};
use core::panic::Location as Caller;
use corosensei::Yielder;
use std::{boxed::Box, vec, vec::Vec};

/// Bytes of shared memory per record: the size of most keys.
const SHARED_WORD: usize = 4;

/// The state of a thread.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// Running, or ready to start or continue.
    Ready,
    /// Waiting for a value that another thread stores: it has loaded the same value again, or sleeps.
    Polling(&'static Caller<'static>),
    /// At a barrier of the block.
    AtBarrier(&'static Caller<'static>),
    /// At a warp operation.
    AtWarpCall(WarpCall, &'static Caller<'static>),
    /// Returned from the kernel.
    Returned,
}

pub(super) struct Thread {
    pub state: State,
    /// The thread's yielder to the scheduler, set when the thread starts.
    pub yielder: *const Yielder<(), ()>,
    /// The result of its last warp operation.
    pub result: u32,
    /// Asynchronous copies that it has not waited for.
    pub copies: Vec<AsyncCopy>,
    /// The number of copies in committed groups, and in all groups but the last.
    pub committed: [usize; 2],
    pub clocks: Clocks,
    /// The addresses and values of its last loads of communicated words.
    loaded: Vec<(usize, u64)>,
}

impl Thread {
    fn new() -> Self {
        Self {
            state: State::Ready,
            yielder: core::ptr::null(),
            result: 0,
            copies: Vec::new(),
            committed: [0; 2],
            clocks: Clocks::default(),
            loaded: Vec::new(),
        }
    }

    /// Records a load of a communicated word. Returns whether one of the last loads had the same result.
    pub(super) fn note_loaded(&mut self, address: usize, bits: u64) -> bool {
        /// Maximum number of words that a thread polls in turns.
        const POLLED: usize = 16;
        if self.loaded.contains(&(address, bits)) {
            return true;
        }
        if self.loaded.len() == POLLED {
            self.loaded.remove(0);
        }
        self.loaded.push((address, bits));
        false
    }
}

/// An asynchronous copy to shared memory that has not arrived.
pub(super) struct AsyncCopy {
    /// Its first byte in shared memory, and its size in bytes.
    pub place: (usize, usize),
    pub bits: u64,
}

pub(super) struct SharedMemory {
    pub bytes: Box<[u8]>,
    pub shadow: Shadow,
}

/// What a thread's stop means for its block.
pub(super) enum Progress {
    None,
    /// All threads have arrived at a barrier.
    Barrier,
    /// The last thread has returned.
    Ended,
    /// No thread can continue.
    Stuck,
}

/// A block, or the place for one: blocks that run after each other use the same place.
pub(super) struct Block {
    /// The linear index in the grid. `None` if no block runs here.
    pub number: Option<u32>,
    pub index: Index3,
    /// The current phase, and the first one.
    pub phase: u32,
    pub start: u32,
    pub threads: Vec<Thread>,
    pub warps: Vec<Warp>,
    /// For each warp, the lanes that wait at a warp operation.
    at_warp_call: Vec<u32>,
    /// Threads that the scheduler may resume.
    pub ready: Vec<u32>,
    /// Threads that wait for another thread's store. They may be resumed, too.
    pub polling: Vec<u32>,
    at_barrier: usize,
    returned: usize,
    /// Whether a thread has a clock.
    has_clocks: bool,
    pub shared: SharedMemory,
}

impl Block {
    /// A place for blocks of `threads` threads with `shared_bytes` bytes of shared memory.
    pub(super) fn new(threads: usize, shared_bytes: usize) -> Self {
        Self {
            number: None,
            index: (0, 0, 0),
            phase: 0,
            start: 0,
            threads: (0..threads).map(|_| Thread::new()).collect(),
            warps: (0..threads.div_ceil(WARP)).map(|_| Warp::new()).collect(),
            at_warp_call: vec![0; threads.div_ceil(WARP)],
            ready: Vec::with_capacity(threads),
            polling: Vec::new(),
            at_barrier: 0,
            returned: 0,
            has_clocks: false,
            shared: SharedMemory {
                bytes: vec![0; shared_bytes].into_boxed_slice(),
                shadow: Shadow::new(shared_bytes, SHARED_WORD),
            },
        }
    }

    /// Makes all threads of block `number` ready to start, in its first phase.
    pub(super) fn begin(&mut self, number: u32, index: Index3, phase: u32) {
        (self.number, self.index, self.phase, self.start) = (Some(number), index, phase, phase);
        self.threads.fill_with(Thread::new);
        self.ready.clear();
        self.ready.extend(0..self.threads.len() as u32);
        (self.returned, self.has_clocks) = (0, false);
    }

    /// Sets the position in time of `thread`, which is resumed.
    pub(super) fn resume(&self, thread: usize, now: &mut Now) {
        let (warp, lane) = (&self.warps[thread / WARP], thread % WARP);
        (now.phase, now.thread, now.stamp) = (self.phase, thread as u16, warp.stamp());
        if warp.stamp() > 0 {
            now.known = *warp.known(lane);
            now.latest = *warp.latest();
        }
    }

    /// A fence of the running thread.
    pub(super) fn fence(&mut self, now: &mut Now) {
        let (Some(number), thread) = (self.number, usize::from(now.thread)) else { return };
        self.warps[thread / WARP].fence(thread % WARP);
        self.resume(thread, now);
        self.threads[thread].clocks.fence(number, now);
        self.has_clocks = true;
    }

    /// Adds to what `thread` has acquired what a word that it has loaded has `published`.
    pub(super) fn acquire(&mut self, thread: usize, published: &SharedClock) {
        if published.is_some() {
            let clocks = &mut self.threads[thread].clocks;
            clocks.acquired = joined(&clocks.acquired, published);
            self.has_clocks = true;
        }
    }

    /// Records that `thread` has yielded or returned, and makes the threads ready that waited for it alone.
    pub(super) fn stopped(&mut self, thread: usize, returned: bool, random: &mut Random) -> Progress {
        if returned {
            self.threads[thread].state = State::Returned;
            self.returned += 1;
        }
        match self.threads[thread].state {
            State::AtBarrier(_) => {
                self.at_barrier += 1;
                if self.at_barrier == self.threads.len() {
                    self.pass_barrier();
                    return Progress::Barrier;
                }
            }
            State::AtWarpCall(call, _) => {
                self.at_warp_call[thread / WARP] |= 1 << (thread % WARP);
                self.try_warp_call(thread / WARP, call, random);
            }
            State::Polling(_) => self.polling.push(thread as u32),
            State::Ready => self.ready.push(thread as u32),
            State::Returned if self.returned == self.threads.len() => {
                self.number = None;
                return Progress::Ended;
            }
            State::Returned => {}
        }
        if self.ready.is_empty() && self.polling.is_empty() { Progress::Stuck } else { Progress::None }
    }

    fn pass_barrier(&mut self) {
        self.at_barrier = 0;
        self.ready.extend(0..self.threads.len() as u32);
        self.threads.iter_mut().for_each(|thread| thread.state = State::Ready);
        if self.has_clocks {
            join_clocks(&mut self.threads, |_| true);
        }
    }

    /// Executes `call` if all existing lanes in its mask have arrived.
    fn try_warp_call(&mut self, warp: usize, call: WarpCall, random: &mut Random) {
        let first = warp * WARP;
        let present = WARP.min(self.threads.len() - first);
        let named = call.mask & (u32::MAX >> (WARP - present));
        if named & !self.at_warp_call[warp] != 0 {
            return;
        }
        let lanes = || (0..present).filter(|lane| named >> lane & 1 == 1);
        let call_of = |threads: &[Thread], lane: usize| match threads[first + lane].state {
            State::AtWarpCall(other, _) if other.joins(&call) => Some(other),
            _ => None,
        };
        if lanes().any(|lane| call_of(&self.threads, lane).is_none()) {
            return;
        }
        let mut calls = [None; WARP];
        lanes().for_each(|lane| calls[lane] = call_of(&self.threads, lane));
        let results = self.warps[warp].carry_out(&calls, random);
        self.at_warp_call[warp] &= !named;
        self.warps[warp].alignments += u32::from(named.count_ones() as usize == present);
        for lane in lanes() {
            let thread = &mut self.threads[first + lane];
            thread.state = State::Ready;
            thread.result = results[lane];
            self.ready.push((first + lane) as u32);
        }
        if self.has_clocks && matches!(call.operation, Operation::Sync) {
            join_clocks(&mut self.threads[first..first + present], |lane| named >> lane & 1 == 1);
        }
    }

    /// The waiting thread with the lowest index, the barrier where it waits and its location. `index` returns a
    /// thread's index in its block.
    pub(super) fn stuck(
        &self,
        index: impl Fn(usize) -> Index3,
    ) -> Option<(usize, FaultKind, &'static Caller<'static>)> {
        (0..self.threads.len()).find_map(|at| {
            let (barrier, location) = match self.threads[at].state {
                State::AtBarrier(location) => (Barrier::Block, location),
                State::AtWarpCall(call, location) => (Barrier::Warp(call.mask), location),
                State::Ready | State::Polling(_) | State::Returned => return None,
            };
            let missing = (0..self.threads.len()).filter(|&other| !self.is_met(at, other));
            let missing = missing.map(|other| Missing {
                thread: index(other),
                waits_at: match self.threads[other].state {
                    State::AtBarrier(location) | State::AtWarpCall(_, location) => Some(location.into()),
                    State::Ready | State::Polling(_) | State::Returned => None,
                },
            });
            Some((at, FaultKind::Barrier { barrier, missing: missing.collect() }, location))
        })
    }

    /// Whether the waiting thread `at` does not wait for `other`, which has arrived or takes no part.
    fn is_met(&self, at: usize, other: usize) -> bool {
        match (self.threads[at].state, self.threads[other].state) {
            (State::AtBarrier(_), state) => matches!(state, State::AtBarrier(_)),
            (State::AtWarpCall(call, _), state) => {
                let concerned = at / WARP == other / WARP && call.mask >> (other % WARP) & 1 == 1;
                !concerned || matches!(state, State::AtWarpCall(joining, _) if joining.joins(&call))
            }
            (State::Ready | State::Polling(_) | State::Returned, _) => true,
        }
    }
}

/// Gives all `threads` in `takes_part` the join of their clocks.
fn join_clocks(threads: &mut [Thread], takes_part: impl Fn(usize) -> bool) {
    let mut all = Clocks::default();
    let clocks = |threads: &mut [Thread], f: &mut dyn FnMut(&mut Clocks)| {
        threads.iter_mut().enumerate().filter(|(i, _)| takes_part(*i)).for_each(|(_, thread)| f(&mut thread.clocks));
    };
    clocks(threads, &mut |clocks| {
        if !clocks.is_empty() {
            all.join(clocks);
        }
    });
    if !all.is_empty() {
        clocks(threads, &mut |clocks| clocks.clone_from(&all));
    }
}
