//! The communication of ranks: reductions, sums and an all-to-all.
//!
//! | file | implementation |
//! | --- | --- |
//! | `threads` | threads of one process, for tests |
//! | `mpi` | processes that mpirun or srun has started |

mod mpi;
mod threads;

pub use mpi::Mpi;
pub use threads::Threads;

/// The operation of [`Exchange::all_reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Adds them.
    Sum,
    /// Takes the least.
    Min,
    /// Takes the greatest.
    Max,
}

impl Reduction {
    /// Combines two numbers.
    pub fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Sum => a + b,
            Self::Min => a.min(b),
            Self::Max => a.max(b),
        }
    }
}

/// Ranks that work together. All ranks call the same methods in the same order, and each waits for the others.
///
/// There are no errors: if a rank has ended, the implementation ends all other ranks.
pub trait Exchange {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Whether ranks are processes of one machine, which may read each other's memory.
    fn is_one_machine(&self) -> bool;

    /// Replaces each number by the reduction of the numbers of all ranks. All ranks pass the same number of numbers.
    fn all_reduce(&self, reduction: Reduction, numbers: &mut [u64]);

    /// Replaces each number by the sum of the numbers of all lower ranks, on rank 0 by 0. All ranks pass the same
    /// number of numbers.
    fn sum_of_earlier(&self, numbers: &mut [u64]);

    /// Sends a slice to each rank, and receives a slice from each rank. Slices may have any length, also above 2^31
    /// bytes. Both arguments have a slice for each rank. The sender's and the receiver's slice have the same length.
    fn all_to_all(&self, send: &[&[u8]], receive: &mut [&mut [u8]]);

    /// Sends an equal share of `numbers` to each rank, in the order of ranks. Returns the numbers that all ranks have
    /// sent to this rank, in the order of ranks.
    fn transpose(&self, numbers: &[u64]) -> Vec<u64> {
        let each = (numbers.len() / self.size()).max(1);
        let mut received = vec![0; numbers.len()];
        let send: Vec<&[u8]> = numbers.chunks(each).map(bytemuck::cast_slice).collect();
        let mut receive: Vec<&mut [u8]> = received.chunks_mut(each).map(bytemuck::cast_slice_mut).collect();
        self.all_to_all(&send, &mut receive);
        received
    }

    /// The bytes of rank 0. The arguments of other ranks are ignored.
    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        let is_first = self.rank() == 0;
        let mut length = [if is_first { bytes.len() as u64 } else { 0 }];
        self.all_reduce(Reduction::Max, &mut length);
        let mut received = vec![0; length[0] as usize];
        let send: Vec<&[u8]> = (0..self.size()).map(|_| if is_first { &bytes[..] } else { &[] }).collect();
        let mut receive: Vec<&mut [u8]> = (0..self.size()).map(|_| &mut [][..]).collect();
        receive[0] = &mut received;
        self.all_to_all(&send, &mut receive);
        received
    }
}
