//! The parts of the segments of a level, of which each block moves some.

use super::digits::{Digits, Number};
use super::room::Room;
use super::workspace::{Job, Segment, Workspace};
use crate::key::Bits;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// A part of a segment.
#[derive(Clone, Copy)]
pub(super) struct Part {
    workspace: Workspace,
    /// Its number.
    number: u32,
    /// Keys of a sector.
    sector: u32,
    /// The index of its first key.
    pub begin: u32,
    /// The index after its last key.
    pub end: u32,
}

impl Part {
    /// The number of the segment. Read anew at each call, as all that is the same for all tiles: to keep it takes registers.
    #[inline(always)]
    fn segment(self) -> u32 {
        self.workspace.segment_of_part(self.number)
    }

    /// How keys become digits.
    #[inline(always)]
    pub fn digits<B: Bits>(self) -> Digits<B> {
        self.workspace.segment(self.segment()).digits
    }

    /// What digits are made of.
    #[inline(always)]
    pub fn number<B: Bits>(self) -> Number<B> {
        self.workspace.segment(self.segment()).number
    }

    /// Where the keys go.
    #[inline(always)]
    pub fn room(self) -> Room {
        Room::of(self.workspace, self.segment(), self.sector)
    }
}

/// The parts of a level that are this block's.
pub(super) struct Parts<'a, B> {
    job: &'a Job,
    workspace: Workspace,
    level: u32,
    next: u32,
    sector: u32,
    of: PhantomData<B>,
}

impl<'a, B: Bits> Parts<'a, B> {
    /// Those of `level`, where sectors have `sector` keys.
    #[inline(always)]
    pub fn of(job: &'a Job, workspace: Workspace, level: u32, sector: u32) -> Self {
        Self { job, workspace, level, next: thread::block_idx_x(), sector, of: PhantomData }
    }
}

impl<B: Bits> Iterator for Parts<'_, B> {
    type Item = Part;

    #[inline(always)]
    fn next(&mut self) -> Option<Part> {
        let Self { job, workspace, level, sector, .. } = *self;
        while self.next < workspace.parts(level) {
            let number = self.next;
            self.next += thread::grid_dim_x();
            let Segment::<B> { start, len, first_part, skipped, .. } =
                workspace.segment(workspace.segment_of_part(number));
            if !skipped {
                let begin = (number - first_part) * job.part;
                let end = start + len.min(begin + job.part);
                return Some(Part { workspace, number, sector, begin: start + begin, end });
            }
        }
        None
    }
}
