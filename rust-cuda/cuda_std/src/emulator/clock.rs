//! The order of accesses between the blocks of a launch: vector clocks.
//!
//! Within a block, barriers and `sync_warp`s order accesses; see `shadow`. Between two blocks only this chain does:
//!
//! ```text
//!   block a   writes … [barrier] fence, stores a flag (or updates it)
//!                                         ↓
//!   block b                    loads the flag, fence [barrier] … reads
//! ```
//!
//! A thread therefore has three clocks, as in the operational models of C++'s fences:
//!
//! | clock | contents |
//! | --- | --- |
//! | `current` | the accesses of other blocks that are ordered before the thread's next access |
//! | `acquired` | what the thread has found with flags, and what its next fence adds to `current` |
//! | `released` | what was ordered before the thread's last fence, which its next flags carry |
//!
//! A barrier joins the clocks of a block, and `sync_warp` those of its lanes. So one thread's fence serves its block on
//! both sides. A fence of the writing thread before the barrier is accepted, too. The memory model of PTX asks for a
//! fence of the thread that stores the flag, but all GPUs honour the other, and many programs depend on it.

use super::shadow::{Now, WARP, lanes_up_to};
use std::{collections::BTreeMap, rc::Rc, vec::Vec};

/// The blocks of the phases of a launch.
pub(super) struct Phases {
    /// The first phase of the launch.
    first: u32,
    /// The block of each phase, as its linear index.
    blocks: Vec<u32>,
}

impl Phases {
    /// A launch whose first phase is `first`.
    pub(super) fn new(first: u32) -> Self {
        Self { first, blocks: Vec::new() }
    }

    /// The next phase, of `block`. `None` if 32 bits cannot number it.
    pub(super) fn next(&mut self, block: u32) -> Option<u32> {
        let phase = u32::try_from(self.blocks.len()).ok().and_then(|count| self.first.checked_add(count))?;
        self.blocks.push(block);
        Some(phase)
    }

    /// The block of `phase`, if the phase is of this launch.
    pub(super) fn block(&self, phase: u32) -> Option<u32> {
        self.blocks.get(phase.checked_sub(self.first)? as usize).copied()
    }

    /// The last phase so far.
    pub(super) fn last(&self) -> u32 {
        self.first - 1 + self.blocks.len() as u32
    }
}

/// A position in the accesses of a block.
#[derive(Clone, PartialEq)]
struct Position {
    /// All accesses in earlier phases of the block come before the position.
    phase: u32,
    /// For warps of the block, and for each of their lanes, the stamp that its accesses in `phase` are below.
    warps: Vec<(u8, [u32; WARP])>,
}

impl Position {
    fn join(&mut self, other: &Self) {
        if other.phase != self.phase {
            if other.phase > self.phase {
                *self = other.clone();
            }
            return;
        }
        for (warp, theirs) in &other.warps {
            match self.warps.iter_mut().find(|(own, _)| own == warp) {
                Some((_, own)) => own.iter_mut().zip(theirs).for_each(|(own, their)| *own = (*own).max(*their)),
                None => self.warps.push((*warp, *theirs)),
            }
        }
    }
}

/// A position in each block of the launch. The accesses before it are ordered before something.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Clock(BTreeMap<u32, Position>);

impl Clock {
    /// The lanes in `lanes` of `warp` whose accesses at `stamp` in `phase` of `block` are not before the clock.
    pub(super) fn unordered(&self, block: u32, phase: u32, warp: u8, (lanes, stamp): (u32, u32)) -> u32 {
        match self.0.get(&block) {
            Some(position) if phase < position.phase => 0,
            Some(position) if phase == position.phase => {
                let known = position.warps.iter().find(|(other, _)| *other == warp);
                known.map_or(lanes, |(_, known)| lanes & lanes_up_to(known, stamp))
            }
            _ => lanes,
        }
    }

    fn join(&mut self, other: &Self) {
        for (block, position) in &other.0 {
            self.0.entry(*block).and_modify(|own| own.join(position)).or_insert_with(|| position.clone());
        }
    }
}

/// A clock that several threads and words may share. `None` has no position of any block.
pub(super) type SharedClock = Option<Rc<Clock>>;

/// The later of two clocks in each block. Returns one of them if it is as late as the other.
pub(super) fn joined(one: &SharedClock, other: &SharedClock) -> SharedClock {
    let (Some(first), Some(second)) = (one, other) else { return one.clone().or_else(|| other.clone()) };
    if Rc::ptr_eq(first, second) {
        return one.clone();
    }
    let mut both = Clock::clone(first);
    both.join(second);
    // Shared clocks are joined at once, so that equal clocks should stay one.
    if both == **first { one.clone() } else { Some(Rc::new(both)) }
}

/// The clocks of a thread.
#[derive(Clone, Default)]
pub(super) struct Clocks {
    pub current: SharedClock,
    pub acquired: SharedClock,
    pub released: SharedClock,
}

impl Clocks {
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none() && self.acquired.is_none() && self.released.is_none()
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.current = joined(&self.current, &other.current);
        self.acquired = joined(&self.acquired, &other.acquired);
        self.released = joined(&self.released, &other.released);
    }

    /// A fence of the thread `now` in `block`.
    pub(super) fn fence(&mut self, block: u32, now: &Now) {
        self.current = joined(&self.current, &self.acquired);
        self.acquired = None;
        let mut released = self.current.as_deref().cloned().unwrap_or_default();
        let position = Position { phase: now.phase, warps: [(now.warp(), now.known)].into() };
        released.0.insert(block, position);
        self.released = Some(Rc::new(released));
    }
}
