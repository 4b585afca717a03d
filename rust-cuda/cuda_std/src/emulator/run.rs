//! The state of a running launch. Calls of the kernel find it through a thread-local variable.

use super::{
    Dim3,
    block::{AsyncCopy, Block, Progress, State, Thread},
    clock::Phases,
    fault::{Access, Conflict, Fault, FaultKind, Index3, Location, Space},
    memory::{Memory, MemoryTrouble},
    order::Order,
    profile::{Code, Lane, Profiler, Site},
    random::Random,
    shadow::{At, Era, Now, Past, Trouble, WARP},
    words::Words,
};
use core::{cell::RefCell, panic::Location as Caller};
use corosensei::Yielder;
use std::{boxed::Box, panic::resume_unwind, string::ToString, vec::Vec};

std::thread_local! {
    static RUN: RefCell<Option<Box<Run>>> = const { RefCell::new(None) };
}

/// The address of dynamic shared memory. It is not 0, so that addresses slightly below are detected, and equals that on
/// a GPU of compute capability 9.0.
pub(super) const SHARED_BASE: u32 = 1024;

/// Resumptions of polling threads while no other thread can run, for each running thread and as a minimum, after which
/// the wait counts as endless. A thread may load a value again without waiting for another one.
const MOST_POLLS: usize = 64;
const MOST_POLLS_OF_FEW: usize = 4096;

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

/// The size of a launch.
pub(super) struct Size {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: u32,
    /// Maximum number of blocks that run at the same time.
    pub resident: usize,
}

/// A thread that the scheduler may resume: the place of its block, and its linear index in the block.
pub(super) type Place = (usize, usize);

pub(super) struct Run {
    kernel: &'static str,
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    pub(super) block_index: Index3,
    pub(super) thread_index: Index3,
    now: Now,
    /// Whether the grid has more than one block.
    is_of_many: bool,
    phases: Phases,
    /// The blocks that run at the same time.
    blocks: Vec<Block>,
    /// The place in `blocks` of the running thread.
    current: usize,
    /// The blocks that have not started, in descending order of their starts.
    waiting: Vec<u32>,
    order: Order,
    /// Words that blocks use to communicate. Not used by a launch of one block.
    words: Words,
    /// Resumptions of polling threads since a thread has last stored a value or has not polled.
    idle: usize,
    memory: Memory,
    random: Random,
    /// Whether code of the kernel runs, and not of the emulator.
    pub(super) in_kernel: bool,
    fault: Option<Fault>,
    launched_at: &'static Caller<'static>,
    /// `None` if accesses are not counted.
    pub(super) profiler: Option<Box<Profiler>>,
}

impl Run {
    pub(super) fn new(
        kernel: &'static str,
        Size { grid, block, shared_bytes, resident }: Size,
        (memory, phase): (Memory, u32),
        mut random: Random,
        launched_at: &'static Caller<'static>,
    ) -> Self {
        let threads = block.count() as usize;
        let mut waiting: Vec<u32> = (0..grid.count() as u32).collect();
        random.shuffle(&mut waiting);
        let resident = resident.min(waiting.len());
        Self {
            kernel,
            grid,
            block,
            block_index: (0, 0, 0),
            thread_index: (0, 0, 0),
            now: Now { phase, launch_start: phase + 1, ..Now::default() },
            is_of_many: waiting.len() > 1,
            phases: Phases::new(phase + 1),
            blocks: (0..resident).map(|_| Block::new(threads, shared_bytes as usize)).collect(),
            current: 0,
            waiting,
            order: Order::new(resident, &mut random),
            words: Words::default(),
            idle: 0,
            memory,
            random,
            in_kernel: false,
            fault: None,
            launched_at,
            profiler: None,
        }
    }

    /// The memory, the last phase, the result of the launch, and the counts of its accesses.
    pub(super) fn finish(mut self) -> (Memory, u32, Result<(), Fault>, Option<Box<Profiler>>) {
        self.profiler.as_mut().into_iter().for_each(|profiler| profiler.finish());
        (self.memory, self.phases.last(), self.fault.map_or(Ok(()), Err), self.profiler)
    }

    fn block(&mut self) -> &mut Block {
        &mut self.blocks[self.current]
    }

    fn thread(&mut self) -> &mut Thread {
        let thread = usize::from(self.now.thread);
        &mut self.block().threads[thread]
    }

    /// Starts blocks in the places that are free.
    fn start_blocks(&mut self) {
        for place in 0..self.blocks.len() {
            if self.blocks[place].number.is_none()
                && let Some(number) = self.waiting.pop()
            {
                let Some(phase) = self.next_phase(number) else { return };
                self.blocks[place].begin(number, self.grid.index(number), phase);
            }
        }
    }

    fn next_phase(&mut self, block: u32) -> Option<u32> {
        let phase = self.phases.next(block);
        if phase.is_none() {
            self.fail_launch("the launch has too many blocks and barriers to number them in 32 bits");
        }
        phase
    }

    /// Picks the thread to resume next. `None` if all blocks have ended or a thread has failed.
    pub(super) fn next_thread(&mut self) -> Option<Place> {
        if self.fault.is_some() {
            return None;
        }
        self.start_blocks();
        let (place, thread) = self.pick()?;
        let thread = thread as usize;
        self.current = place;
        self.block_index = self.blocks[place].index;
        self.thread_index = self.block.index(thread as u32);
        self.blocks[place].resume(thread, &mut self.now);
        self.in_kernel = true;
        Some((place, thread))
    }

    /// A thread that is ready, or at times one that polls.
    fn pick(&mut self) -> Option<(usize, u32)> {
        let Self { blocks, order, random, current, .. } = self;
        let runs = |block: &Block| block.number.is_some();
        if let Some(place) = order.next(blocks, *current, |block| runs(block) && !block.ready.is_empty(), random) {
            let block = &mut blocks[place];
            let polls = !block.polling.is_empty() && random.below(16) == 0;
            let from = if polls { &mut block.polling } else { &mut block.ready };
            return Some((place, random.take(from)?));
        }
        let places: Vec<usize> =
            (0..blocks.len()).filter(|&at| runs(&blocks[at]) && !blocks[at].polling.is_empty()).collect();
        let place = *places.get(random.below(places.len()))?;
        let thread = random.take(&mut blocks[place].polling)?;
        self.idle += 1;
        if self.idle > MOST_POLLS_OF_FEW + MOST_POLLS * self.blocks.len() * self.blocks[place].threads.len() {
            self.fail_deadlock(place, thread as usize);
            return None;
        }
        Some((place, thread))
    }

    /// Records that `thread` has yielded or returned, and resumes the threads that waited for it alone.
    pub(super) fn stopped(&mut self, (place, thread): Place, returned: bool) {
        self.in_kernel = false;
        if self.fault.is_some() {
            return;
        }
        match self.blocks[place].stopped(thread, returned, &mut self.random) {
            Progress::None => {}
            Progress::Ended => self.idle = 0,
            Progress::Barrier => {
                let number = self.blocks[place].number.expect("the block of the thread runs");
                if let Some(phase) = self.next_phase(number) {
                    self.blocks[place].phase = phase;
                }
            }
            Progress::Stuck => self.fail_stuck(place),
        }
    }

    /// Sets the yielder of the running thread.
    pub(super) fn set_yielder(&mut self, yielder: &Yielder<(), ()>) {
        self.thread().yielder = yielder;
    }

    /// Sets the state of the running thread, which must then suspend itself with the returned yielder.
    pub(super) fn wait(&mut self, state: State) -> *const Yielder<(), ()> {
        let thread = self.thread();
        thread.state = state;
        thread.yielder
    }

    /// The result of the running thread's last warp operation.
    pub(super) fn result(&mut self) -> u32 {
        self.thread().result
    }

    pub(super) fn lane(&self) -> u32 {
        u32::from(self.now.thread) % WARP as u32
    }

    pub(super) fn shared_bytes(&self) -> u32 {
        self.blocks[self.current].shared.bytes.len() as u32
    }

    /// A fence of the running thread.
    pub(super) fn fence(&mut self) {
        let Self { blocks, current, now, .. } = self;
        blocks[*current].fence(now);
    }

    /// Whether the running thread lets others run after it has used a communicated word.
    pub(super) fn yields(&mut self) -> bool {
        self.blocks.len() > 1 && self.random.below(4) == 0
    }

    /// The value that a load of the word at `place` returns, if `last` is its last value. A place is an address and a
    /// size. The second result is whether the thread polls: it has just loaded that value.
    pub(super) fn load_word(&mut self, place: (usize, usize), last: u64) -> (u64, bool) {
        let Self { blocks, current, now, phases, words, random, idle, is_of_many, .. } = self;
        let (block, thread) = (&mut blocks[*current], usize::from(now.thread));
        let mut bits = last;
        if *is_of_many {
            // While all threads wait, the last value arrives.
            let random = (*idle == 0).then_some(random);
            let at = At::in_global(now, phases, &block.threads[thread].clocks);
            let published;
            (bits, published) = words.load(place, last, &at, random);
            block.acquire(thread, &published);
        }
        let polls = block.threads[thread].note_loaded(place.0, bits);
        if !polls {
            *idle = 0;
        }
        (bits, polls)
    }

    /// Records that the word at `place` is stored or updated, and had the first of `values` before. Returns whether
    /// the thread polls: its update adds 0, as the one before did.
    pub(super) fn store_word(&mut self, place: (usize, usize), values: [u64; 2], is_update: bool) -> bool {
        let Self { blocks, current, now, phases, words, idle, is_of_many, .. } = self;
        let (block, thread) = (&mut blocks[*current], usize::from(now.thread));
        let polls = is_update && values[0] == values[1] && block.threads[thread].note_loaded(place.0, values[1]);
        if !polls {
            *idle = 0;
        }
        if *is_of_many {
            let clocks = &block.threads[thread].clocks;
            let at = At::in_global(now, phases, clocks);
            let published = words.store(place, values, &at, &clocks.released, is_update);
            block.acquire(thread, &published);
        }
        polls
    }

    /// Checks and records an access to global memory. On an error, the launch has failed.
    pub(super) fn check_global(&mut self, access: Access, address: usize, size: usize, code: Code) -> Result<(), ()> {
        let Self { blocks, current, now, phases, memory, words, idle, .. } = self;
        let mut at = At::in_global(now, phases, &blocks[*current].threads[usize::from(now.thread)].clocks);
        if !self.is_of_many {
            at.others = None;
        }
        let Err(trouble) = memory.access(access, address, size, &at, code.location) else {
            if access == Access::Write {
                *idle = 0;
                words.forget(address);
            }
            self.profile(Site { code, space: Space::Global, access, size }, Some(address));
            return Ok(());
        };
        let kind = match trouble {
            MemoryTrouble::Race { byte, with } => self.race(Space::Global, byte, access, &with),
            MemoryTrouble::Other(kind) => *kind,
        };
        self.fail(kind, code.location.into());
        Err(())
    }

    /// Checks and records an access to shared memory, and returns its bytes. On an error, the launch has failed.
    pub(super) fn shared(&mut self, access: Access, address: u32, size: usize, code: Code) -> Result<&mut [u8], ()> {
        let start = self.check_shared(access, address, size, code)?;
        Ok(&mut self.block().shared.bytes[start..start + size])
    }

    /// Checks and records the start of an asynchronous copy to shared memory. On an error, the launch has failed.
    pub(super) fn begin_copy(&mut self, address: u32, size: usize, bits: u64, code: Code) -> Result<(), ()> {
        let start = self.check_shared(Access::Copy, address, size, code)?;
        self.thread().copies.push(AsyncCopy { place: (start, size), bits });
        Ok(())
    }

    /// Commits the uncommitted copies of the running thread as one group.
    pub(super) fn commit_copies(&mut self) {
        let Thread { copies, committed, .. } = self.thread();
        *committed = [copies.len(), committed[0]];
    }

    /// Completes all copies of the running thread.
    pub(super) fn finish_copies(&mut self) {
        let all = self.thread().copies.len();
        self.finish_first_copies(all);
    }

    /// Completes the copies of the running thread in all groups but the last.
    pub(super) fn finish_all_but_last_commit(&mut self) {
        let [_, count] = self.thread().committed;
        self.finish_first_copies(count);
    }

    /// Completes the first `count` copies of the running thread.
    fn finish_first_copies(&mut self, count: usize) {
        let Self { blocks, current, now, .. } = self;
        let Block { threads, shared, .. } = &mut blocks[*current];
        let Thread { copies, committed, .. } = &mut threads[usize::from(now.thread)];
        for AsyncCopy { place: (start, size), bits } in copies.drain(..count) {
            shared.bytes[start..start + size].copy_from_slice(&bits.to_le_bytes()[..size]);
            shared.shadow.finish_copy((start, size), now);
        }
        *committed = committed.map(|committed| committed.saturating_sub(count));
    }

    /// Checks and records an access to shared memory, and returns its first byte. On an error, the launch has failed.
    fn check_shared(&mut self, access: Access, address: u32, size: usize, code: Code) -> Result<usize, ()> {
        let start = self.find_shared(access, address, size, code.location);
        let start = start.map_err(|kind| self.fail(*kind, code.location.into()))?;
        self.profile(Site { code, space: Space::Shared, access, size }, Some(start));
        Ok(start)
    }

    /// Counts an access of the running thread, to `address` unless its condition is false.
    #[inline(always)]
    pub(super) fn profile(&mut self, site: Site, address: Option<usize>) {
        if self.profiler.is_some() {
            self.note(site, address);
        }
    }

    #[cold]
    fn note(&mut self, site: Site, address: Option<usize>) {
        let Self { profiler, blocks, current, now, .. } = self;
        let thread = usize::from(now.thread);
        let interval = (now.phase, blocks[*current].warps[thread / WARP].alignments);
        let lane = Lane { place: (*current, thread), interval };
        profiler.as_mut().into_iter().for_each(|profiler| profiler.note(lane, site, address));
    }

    fn find_shared(
        &mut self,
        access: Access,
        address: u32,
        size: usize,
        location: &'static Caller<'static>,
    ) -> Result<usize, Box<FaultKind>> {
        let Self { blocks, current, now, .. } = self;
        let Block { shared, start: block_start, .. } = &mut blocks[*current];
        let (space, len) = (Space::Shared, shared.bytes.len());
        let byte = i64::from(address) - i64::from(SHARED_BASE);
        let start = match usize::try_from(byte) {
            Ok(start) if start <= len && size <= len - start => start,
            _ => return Err(Box::new(FaultKind::OutOfBounds { space, access, byte, size, len })),
        };
        if !start.is_multiple_of(size) {
            return Err(Box::new(FaultKind::Misaligned { space, access, byte, size }));
        }
        // Each block starts with uninitialized shared memory.
        let at = At { now, era: Era { start: *block_start, first_write: *block_start }, others: None };
        match shared.shadow.access(access, (start, size), &at, location) {
            Ok(()) => Ok(start),
            Err(Trouble::Uninitialised) => Err(Box::new(FaultKind::Uninitialised { space, byte: start, size, len })),
            Err(Trouble::Race { byte, with }) => Err(Box::new(self.race(space, byte, access, &with))),
        }
    }

    #[cold]
    fn race(&self, space: Space, byte: usize, access: Access, with: &Past) -> FaultKind {
        let block = self.phases.block(with.phase).map_or((0, 0, 0), |number| self.grid.index(number));
        let conflict = Conflict {
            block,
            is_own_block: block == self.block_index,
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

    /// Fails the launch because every thread of a block waits or has returned. Reports the waiting thread with the
    /// lowest index.
    #[cold]
    fn fail_stuck(&mut self, place: usize) {
        let stuck = self.blocks[place].stuck(|thread| self.block.index(thread as u32));
        if let Some((at, kind, location)) = stuck {
            (self.block_index, self.thread_index) = (self.blocks[place].index, self.block.index(at as u32));
            self.fail(kind, location.into());
        }
    }

    /// Fails the launch because all threads that have not returned wait, some for a value: `thread` of the block at
    /// `place` does.
    #[cold]
    fn fail_deadlock(&mut self, place: usize, thread: usize) {
        let block = &self.blocks[place];
        let State::Polling(location) = block.threads[thread].state else { return };
        (self.block_index, self.thread_index) = (block.index, self.block.index(thread as u32));
        let not_started = self.waiting.len() as u32;
        self.fail(FaultKind::Deadlock { not_started }, location.into());
    }
}
