//! The state of a running launch. Calls of the kernel find it through a thread-local variable.

use super::{
    Dim3,
    fault::{Access, Barrier, Conflict, Fault, FaultKind, Index3, Location, Missing, Space},
    memory::{Memory, MemoryTrouble},
    random::Random,
    shadow::{Era, Now, Past, Shadow, Trouble, WARP},
    warp::{Warp, WarpCall},
};
use core::{cell::RefCell, panic::Location as Caller};
use corosensei::Yielder;
use std::{boxed::Box, panic::resume_unwind, string::ToString, vec, vec::Vec};

std::thread_local! {
    static RUN: RefCell<Option<Box<Run>>> = const { RefCell::new(None) };
}

/// The address of dynamic shared memory. It is not 0, so that addresses slightly below are detected, and equals that on
/// a GPU of compute capability 9.0.
pub(super) const SHARED_BASE: u32 = 1024;

/// Bytes of shared memory per record: the size of most keys.
const SHARED_WORD: usize = 4;

/// Calls `f` with the launch that runs on this thread of the host, if any.
///
/// `f` must not switch to another emulated thread or unwind.
pub(super) fn with_run<R>(f: impl FnOnce(&mut Run) -> R) -> Option<R> {
    RUN.with_borrow_mut(|run| run.as_deref_mut().map(f))
}

/// Like [`with_run`], for the panic hook: the panic may come from anywhere, even from within `with_run`.
pub(super) fn try_with_run<R>(f: impl FnOnce(&mut Run) -> R) -> Option<R> {
    RUN.try_with(|run| run.try_borrow_mut().ok()?.as_deref_mut().map(f)).ok()?
}

/// Like [`with_run`], for the scheduler, which only runs during a launch.
pub(super) fn within<R>(f: impl FnOnce(&mut Run) -> R) -> R {
    with_run(f).expect("a launch is running")
}

/// Sets the launch that the kernel's calls find. Returns `run` if there is one already.
pub(super) fn enter(run: Box<Run>) -> Result<(), Box<Run>> {
    RUN.with_borrow_mut(|place| {
        if place.is_some() {
            return Err(run);
        }
        *place = Some(run);
        Ok(())
    })
}

/// Removes the launch that [`enter`] has set.
pub(super) fn leave() -> Box<Run> {
    RUN.take().expect("a launch is running")
}

/// Ends the kernel's thread after [`Run::fail`], without a call of the panic hook.
#[cold]
pub(super) fn stop() -> ! {
    struct Stopped;
    resume_unwind(Box::new(Stopped))
}

/// The state of a thread.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// Running, or ready to start or continue.
    Ready,
    /// At a barrier of the block.
    AtBarrier(&'static Caller<'static>),
    /// At a warp operation.
    AtWarpCall(WarpCall, &'static Caller<'static>),
    /// Returned from the kernel.
    Returned,
}

struct Thread {
    state: State,
    /// The thread's yielder to the scheduler, set when the thread starts.
    yielder: *const Yielder<(), ()>,
    /// The result of its last warp operation.
    result: u32,
    /// Asynchronous copies that it has not waited for.
    copies: Vec<AsyncCopy>,
    /// The number of copies in committed groups, and in all groups but the last.
    committed: [usize; 2],
}

impl Thread {
    const NEW: Self =
        Self { state: State::Ready, yielder: core::ptr::null(), result: 0, copies: Vec::new(), committed: [0; 2] };
}

/// An asynchronous copy to shared memory that has not arrived.
struct AsyncCopy {
    /// Its first byte in shared memory, and its size in bytes.
    place: (usize, usize),
    bits: u64,
}

struct SharedMemory {
    bytes: Box<[u8]>,
    shadow: Shadow,
}

pub(super) struct Run {
    kernel: &'static str,
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    pub(super) block_index: Index3,
    pub(super) thread_index: Index3,
    now: Now,
    /// The blocks so far, each with its first phase.
    blocks: Vec<(u32, u32)>,
    threads: Vec<Thread>,
    warps: Vec<Warp>,
    /// For each warp, the lanes that wait at a warp operation.
    at_warp_call: Vec<u32>,
    /// Threads that the scheduler may resume.
    ready: Vec<u32>,
    at_barrier: usize,
    returned: usize,
    shared: SharedMemory,
    memory: Memory,
    random: Random,
    /// Whether code of the kernel runs, and not of the emulator.
    pub(super) in_kernel: bool,
    fault: Option<Fault>,
    launched_at: &'static Caller<'static>,
}

impl Run {
    pub(super) fn new(
        kernel: &'static str,
        (grid, block): (Dim3, Dim3),
        shared_bytes: u32,
        (memory, phase): (Memory, u32),
        random: Random,
        launched_at: &'static Caller<'static>,
    ) -> Self {
        let (threads, shared_bytes) = (block.count() as usize, shared_bytes as usize);
        Self {
            kernel,
            grid,
            block,
            block_index: (0, 0, 0),
            thread_index: (0, 0, 0),
            now: Now { phase, launch_start: phase + 1, ..Now::default() },
            blocks: Vec::new(),
            threads: (0..threads).map(|_| Thread::NEW).collect(),
            warps: (0..threads.div_ceil(WARP)).map(|_| Warp::new()).collect(),
            at_warp_call: vec![0; threads.div_ceil(WARP)],
            ready: Vec::with_capacity(threads),
            at_barrier: 0,
            returned: 0,
            shared: SharedMemory {
                bytes: vec![0; shared_bytes].into_boxed_slice(),
                shadow: Shadow::new(shared_bytes, SHARED_WORD),
            },
            memory,
            random,
            in_kernel: false,
            fault: None,
            launched_at,
        }
    }

    /// The memory, the last phase, and the result of the launch.
    pub(super) fn finish(self) -> (Memory, u32, Result<(), Fault>) {
        (self.memory, self.now.phase, self.fault.map_or(Ok(()), Err))
    }

    pub(super) fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// The order of the grid's blocks.
    pub(super) fn block_order(&mut self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.grid.count() as u32).collect();
        self.random.shuffle(&mut order);
        order
    }

    /// Makes all threads of block `block` ready to start.
    pub(super) fn start_block(&mut self, block: u32) {
        self.next_phase();
        self.now.block_start = self.now.phase;
        self.blocks.push((self.now.phase, block));
        self.block_index = self.grid.index(block);
        self.threads.fill_with(|| Thread::NEW);
        self.ready.clear();
        self.ready.extend(0..self.threads.len() as u32);
        self.returned = 0;
    }

    fn next_phase(&mut self) {
        match self.now.phase.checked_add(1) {
            Some(phase) => self.now.phase = phase,
            None => self.fail_launch("the launch has too many blocks and barriers to number them in 32 bits"),
        }
    }

    /// Picks the thread to resume next. `None` if all have returned or one has failed.
    pub(super) fn next_thread(&mut self) -> Option<usize> {
        if self.fault.is_some() {
            return None;
        }
        let Some(thread) = self.random.take(&mut self.ready) else {
            if self.returned < self.threads.len() {
                self.fail_stuck();
            }
            return None;
        };
        let thread = thread as usize;
        let (warp, lane) = (&self.warps[thread / WARP], thread % WARP);
        self.thread_index = self.block.index(thread as u32);
        self.now.thread = thread as u16;
        self.now.stamp = warp.stamp();
        if warp.stamp() > 0 {
            self.now.known = *warp.known(lane);
            self.now.latest = *warp.latest();
        }
        self.in_kernel = true;
        Some(thread)
    }

    /// Records that `thread` has yielded or returned, and resumes the threads that waited for it alone.
    pub(super) fn stopped(&mut self, thread: usize, returned: bool) {
        self.in_kernel = false;
        if self.fault.is_some() {
            return;
        }
        if returned {
            self.threads[thread].state = State::Returned;
            self.returned += 1;
            return;
        }
        match self.threads[thread].state {
            State::AtBarrier(_) => {
                self.at_barrier += 1;
                if self.at_barrier == self.threads.len() {
                    self.at_barrier = 0;
                    self.next_phase();
                    self.threads.iter_mut().for_each(|thread| thread.state = State::Ready);
                    self.ready.extend(0..self.threads.len() as u32);
                }
            }
            State::AtWarpCall(call, _) => {
                self.at_warp_call[thread / WARP] |= 1 << (thread % WARP);
                self.try_warp_call(thread / WARP, call);
            }
            State::Ready | State::Returned => self.ready.push(thread as u32),
        }
    }

    /// Executes `call` if all existing lanes in its mask have arrived.
    fn try_warp_call(&mut self, warp: usize, call: WarpCall) {
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
        let results = self.warps[warp].carry_out(&calls, &mut self.random);
        self.at_warp_call[warp] &= !named;
        for lane in lanes() {
            let thread = &mut self.threads[first + lane];
            thread.state = State::Ready;
            thread.result = results[lane];
            self.ready.push((first + lane) as u32);
        }
    }

    /// Sets the yielder of the running thread.
    pub(super) fn set_yielder(&mut self, yielder: &Yielder<(), ()>) {
        self.threads[usize::from(self.now.thread)].yielder = yielder;
    }

    /// Sets the state of the running thread, which must then suspend itself with the returned yielder.
    pub(super) fn wait(&mut self, state: State) -> *const Yielder<(), ()> {
        let thread = &mut self.threads[usize::from(self.now.thread)];
        thread.state = state;
        thread.yielder
    }

    /// The result of the running thread's last warp operation.
    pub(super) fn result(&self) -> u32 {
        self.threads[usize::from(self.now.thread)].result
    }

    pub(super) fn lane(&self) -> u32 {
        u32::from(self.now.thread) % WARP as u32
    }

    pub(super) fn shared_bytes(&self) -> u32 {
        self.shared.bytes.len() as u32
    }

    /// Checks and records an access to global memory. On an error, the launch has failed.
    pub(super) fn check_global(
        &mut self,
        access: Access,
        address: usize,
        size: usize,
        location: &'static Caller<'static>,
    ) -> Result<(), ()> {
        let Err(trouble) = self.memory.access(access, address, size, &self.now, location) else {
            return Ok(());
        };
        let kind = match trouble {
            MemoryTrouble::Race { byte, with } => self.race(Space::Global, byte, access, &with),
            MemoryTrouble::Other(kind) => *kind,
        };
        self.fail(kind, location.into());
        Err(())
    }

    /// Checks and records an access to shared memory, and returns its bytes. On an error, the launch has failed.
    pub(super) fn shared(
        &mut self,
        access: Access,
        address: u32,
        size: usize,
        location: &'static Caller<'static>,
    ) -> Result<&mut [u8], ()> {
        let start = self.check_shared(access, address, size, location)?;
        Ok(&mut self.shared.bytes[start..start + size])
    }

    /// Checks and records the start of an asynchronous copy to shared memory. On an error, the launch has failed.
    pub(super) fn begin_copy(
        &mut self,
        address: u32,
        size: usize,
        bits: u64,
        location: &'static Caller<'static>,
    ) -> Result<(), ()> {
        let start = self.check_shared(Access::Copy, address, size, location)?;
        let copies = &mut self.threads[usize::from(self.now.thread)].copies;
        copies.push(AsyncCopy { place: (start, size), bits });
        Ok(())
    }

    /// Commits the uncommitted copies of the running thread as one group.
    pub(super) fn commit_copies(&mut self) {
        let Thread { copies, committed, .. } = &mut self.threads[usize::from(self.now.thread)];
        *committed = [copies.len(), committed[0]];
    }

    /// Completes all copies of the running thread.
    pub(super) fn finish_copies(&mut self) {
        let all = self.threads[usize::from(self.now.thread)].copies.len();
        self.finish_first_copies(all);
    }

    /// Completes the copies of the running thread in all groups but the last.
    pub(super) fn finish_all_but_last_commit(&mut self) {
        let [_, count] = self.threads[usize::from(self.now.thread)].committed;
        self.finish_first_copies(count);
    }

    /// Completes the first `count` copies of the running thread.
    fn finish_first_copies(&mut self, count: usize) {
        let Self { threads, shared, now, .. } = self;
        let Thread { copies, committed, .. } = &mut threads[usize::from(now.thread)];
        for AsyncCopy { place: (start, size), bits } in copies.drain(..count) {
            shared.bytes[start..start + size].copy_from_slice(&bits.to_le_bytes()[..size]);
            shared.shadow.finish_copy((start, size), now);
        }
        *committed = committed.map(|committed| committed.saturating_sub(count));
    }

    /// Checks and records an access to shared memory, and returns its first byte. On an error, the launch has failed.
    fn check_shared(
        &mut self,
        access: Access,
        address: u32,
        size: usize,
        location: &'static Caller<'static>,
    ) -> Result<usize, ()> {
        self.find_shared(access, address, size, location).map_err(|kind| self.fail(*kind, location.into()))
    }

    fn find_shared(
        &mut self,
        access: Access,
        address: u32,
        size: usize,
        location: &'static Caller<'static>,
    ) -> Result<usize, Box<FaultKind>> {
        let (space, len) = (Space::Shared, self.shared.bytes.len());
        let byte = i64::from(address) - i64::from(SHARED_BASE);
        let start = match usize::try_from(byte) {
            Ok(start) if start <= len && size <= len - start => start,
            _ => return Err(Box::new(FaultKind::OutOfBounds { space, access, byte, size, len })),
        };
        if !start.is_multiple_of(size) {
            return Err(Box::new(FaultKind::Misaligned { space, access, byte, size }));
        }
        // Each block starts with uninitialized shared memory.
        let era = Era { start: self.now.block_start, first_write: self.now.block_start };
        match self.shared.shadow.access(access, (start, size), era, &self.now, location) {
            Ok(()) => Ok(start),
            Err(Trouble::Uninitialised) => Err(Box::new(FaultKind::Uninitialised { space, byte: start, size, len })),
            Err(Trouble::Race { byte, with }) => Err(Box::new(self.race(space, byte, access, &with))),
        }
    }

    #[cold]
    fn race(&self, space: Space, byte: usize, access: Access, with: &Past) -> FaultKind {
        let block = self.blocks.partition_point(|&(start, _)| start <= with.phase).checked_sub(1);
        let conflict = Conflict {
            block: block.map_or((0, 0, 0), |at| self.grid.index(self.blocks[at].1)),
            thread: self.block.index(u32::from(with.thread)),
            access: with.access,
            location: with.location.unwrap_or(self.launched_at).into(),
        };
        FaultKind::Race { space, byte, access, with: Box::new(conflict) }
    }

    /// Fails the launch because of the running thread. The first fault is kept: unwinding may cause more.
    #[cold]
    pub(super) fn fail(&mut self, kind: FaultKind, location: Location) {
        let (kernel, block, thread) = (self.kernel, self.block_index, self.thread_index);
        self.fault.get_or_insert(Fault { kernel, kind, block, thread, location });
    }

    /// Fails the launch because it cannot be executed.
    #[cold]
    pub(super) fn fail_launch(&mut self, reason: &str) {
        (self.block_index, self.thread_index) = ((0, 0, 0), (0, 0, 0));
        self.fail(FaultKind::Launch(reason.to_string()), self.launched_at.into());
    }

    /// Fails the launch because of a panic in the kernel. Without its location, the launch's location is reported.
    #[cold]
    pub(super) fn fail_panic(&mut self, message: &str, location: Option<&Caller<'_>>) {
        self.fail(FaultKind::Panic(message.to_string()), location.unwrap_or(self.launched_at).into());
    }

    /// Fails the launch because every thread waits or has returned. Reports the waiting thread with the lowest index.
    #[cold]
    fn fail_stuck(&mut self) {
        for at in 0..self.threads.len() {
            let (barrier, location) = match self.threads[at].state {
                State::AtBarrier(location) => (Barrier::Block, location),
                State::AtWarpCall(call, location) => (Barrier::Warp(call.mask), location),
                State::Ready | State::Returned => continue,
            };
            let missing = (0..self.threads.len()).filter(|&other| !self.is_met(at, other));
            let missing = missing.map(|other| Missing {
                thread: self.block.index(other as u32),
                waits_at: match self.threads[other].state {
                    State::AtBarrier(location) | State::AtWarpCall(_, location) => Some(location.into()),
                    State::Ready | State::Returned => None,
                },
            });
            let missing = missing.collect();
            self.thread_index = self.block.index(at as u32);
            self.fail(FaultKind::Barrier { barrier, missing }, location.into());
            return;
        }
    }

    /// Whether the waiting thread `at` does not wait for `other`, which has arrived or takes no part.
    fn is_met(&self, at: usize, other: usize) -> bool {
        match (self.threads[at].state, self.threads[other].state) {
            (State::AtBarrier(_), state) => matches!(state, State::AtBarrier(_)),
            (State::AtWarpCall(call, _), state) => {
                let concerned = at / WARP == other / WARP && call.mask >> (other % WARP) & 1 == 1;
                !concerned || matches!(state, State::AtWarpCall(joining, _) if joining.joins(&call))
            }
            (State::Ready | State::Returned, _) => true,
        }
    }
}
