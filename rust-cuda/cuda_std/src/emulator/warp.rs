//! Operations that the lanes of a warp execute together.

use super::{random::Random, shadow::WARP};
use std::boxed::Box;

/// A lane's call of a warp operation.
#[derive(Clone, Copy)]
pub(super) struct WarpCall {
    pub mask: u32,
    pub operation: Operation,
}

#[derive(Clone, Copy)]
pub(super) enum Operation {
    Sync,
    ShuffleXor { value: u32, lane_mask: u32 },
    ShuffleIndex { value: u32, source: u32 },
    ShuffleUp { value: u32, distance: u32 },
    Ballot(bool),
    ReduceAdd(u32),
    ReduceMax(u32),
}

impl WarpCall {
    /// Whether the two calls belong to the same operation.
    pub(super) fn joins(&self, other: &Self) -> bool {
        self.mask == other.mask && core::mem::discriminant(&self.operation) == core::mem::discriminant(&other.operation)
    }

    /// The first lane that `lane` needs and the mask lacks: itself or the source of its shuffle.
    pub(super) fn left_out(&self, lane: u32) -> Option<u32> {
        let source = self.operation.source(lane).unwrap_or(lane);
        [lane, source].into_iter().find(|&lane| lane >= WARP as u32 || self.mask >> lane & 1 == 0)
    }
}

impl Operation {
    /// The lane that `lane` shuffles from.
    fn source(self, lane: u32) -> Option<u32> {
        match self {
            Self::ShuffleXor { lane_mask, .. } => Some(lane ^ lane_mask),
            Self::ShuffleIndex { source, .. } => Some(source),
            // A lane with no lane `distance` below keeps its own value.
            Self::ShuffleUp { distance, .. } => Some(lane.checked_sub(distance).unwrap_or(lane)),
            Self::Sync | Self::Ballot(_) | Self::ReduceAdd(_) | Self::ReduceMax(_) => None,
        }
    }

    /// The value that a lane passes to lanes that shuffle from it.
    fn value(self) -> u32 {
        match self {
            Self::ShuffleXor { value, .. } | Self::ShuffleIndex { value, .. } | Self::ShuffleUp { value, .. } => value,
            Self::Sync | Self::Ballot(_) | Self::ReduceAdd(_) | Self::ReduceMax(_) => 0,
        }
    }
}

/// The order of the accesses of a warp's lanes; see `shadow`.
pub(super) struct Warp {
    /// `sync_warp`s of the warp, and fences of its lanes.
    syncs: u32,
    /// For each lane and each other lane, the number of the latest `sync_warp` that orders the other lane's accesses.
    known: Box<[[u32; WARP]; WARP]>,
    /// For each lane, the number of its own latest `sync_warp`.
    latest: [u32; WARP],
    /// Operations of all lanes of the warp.
    pub alignments: u32,
}

impl Warp {
    pub(super) fn new() -> Self {
        Self { syncs: 0, known: Box::new([[0; WARP]; WARP]), latest: [0; WARP], alignments: 0 }
    }

    pub(super) fn stamp(&self) -> u32 {
        self.syncs
    }

    pub(super) fn known(&self, lane: usize) -> &[u32; WARP] {
        &self.known[lane]
    }

    pub(super) fn latest(&self) -> &[u32; WARP] {
        &self.latest
    }

    /// Executes the operation that the lanes with `calls` make together. Returns each lane's result.
    pub(super) fn carry_out(&mut self, calls: &[Option<WarpCall>; WARP], random: &mut Random) -> [u32; WARP] {
        let mut results = [0; WARP];
        // The common result of a ballot or a reduction.
        let (mut joint, mut is_joint) = (0u32, false);
        for (lane, call) in calls.iter().enumerate() {
            let Some(call) = call else { continue };
            match call.operation {
                Operation::Ballot(predicate) => (joint, is_joint) = (joint | u32::from(predicate) << lane, true),
                Operation::ReduceAdd(value) => (joint, is_joint) = (joint.wrapping_add(value), true),
                Operation::ReduceMax(value) => (joint, is_joint) = (joint.max(value), true),
                // Only `sync_warp` orders memory; shuffles and ballots do not, as on a GPU.
                Operation::Sync => return self.synchronise(calls),
                operation => {
                    let source = operation.source(lane as u32).and_then(|source| calls[source as usize]);
                    // A lane beyond the end of a partial warp passes an arbitrary value.
                    results[lane] = source.map_or_else(|| random.next() as u32, |source| source.operation.value());
                }
            }
        }
        if is_joint { [joint; WARP] } else { results }
    }

    /// A fence of `lane`: its later accesses have another stamp than its accesses so far.
    pub(super) fn fence(&mut self, lane: usize) {
        self.syncs += 1;
        self.known[lane][lane] = self.syncs;
        self.latest[lane] = self.syncs;
    }

    fn synchronise(&mut self, calls: &[Option<WarpCall>; WARP]) -> [u32; WARP] {
        self.syncs += 1;
        let lanes = || calls.iter().enumerate().filter(|(_, call)| call.is_some()).map(|(lane, _)| lane);
        let mut joined = [0; WARP];
        for lane in lanes() {
            for (joined, known) in joined.iter_mut().zip(&self.known[lane]) {
                *joined = (*joined).max(*known);
            }
        }
        for lane in lanes() {
            joined[lane] = self.syncs;
            self.latest[lane] = self.syncs;
        }
        for lane in lanes() {
            self.known[lane] = joined;
        }
        [0; WARP]
    }
}
