//! What ranks need of a network: sums, and an all-to-all.
//!
//! | file | implementation |
//! | --- | --- |
//! | `single` | one process, which exchanges nothing |
//! | `threads` | threads of one process, for tests |
//! | `mpi` | processes that mpirun or srun has started |

mod mpi;
mod single;
mod threads;

pub use mpi::Mpi;
pub use single::Single;
pub use threads::Threads;

/// How [`Exchange::all_reduce`] combines numbers.
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

/// Ranks that work together. All call the same methods in the same order, and each waits for the others.
///
/// There are no errors: where a rank is gone, the implementation ends all others.
pub trait Exchange {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Whether ranks are processes of one machine, which may read each other's memory.
    fn is_one_machine(&self) -> bool;

    /// Replaces each number by what `reduction` makes of those that all ranks pass. All pass as many.
    fn all_reduce(&self, reduction: Reduction, numbers: &mut [u64]);

    /// Replaces each number by the sum of those that ranks with lower numbers pass: 0 on rank 0. All pass as many.
    fn sum_of_earlier(&self, numbers: &mut [u64]);

    /// Sends a slice to each rank, and fills a slice with the bytes that each rank sends to this one. Slices may have
    /// any length, also above 2^31. Both arguments have a slice for each rank, and the receiver's is as long as the
    /// sender's.
    fn all_to_all(&self, send: &[&[u8]], receive: &mut [&mut [u8]]);

    /// Sends `numbers` to each rank, as many of them to each, in the order of ranks, and returns what all ranks sent to
    /// this one, in the order of ranks.
    fn transpose(&self, numbers: &[u64]) -> Vec<u64> {
        let each = (numbers.len() / self.size()).max(1);
        let mut received = vec![0; numbers.len()];
        let send: Vec<&[u8]> = numbers.chunks(each).map(bytemuck::cast_slice).collect();
        let mut receive: Vec<&mut [u8]> = received.chunks_mut(each).map(bytemuck::cast_slice_mut).collect();
        self.all_to_all(&send, &mut receive);
        received
    }

    /// The bytes that rank 0 passes. What others pass is not used.
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
