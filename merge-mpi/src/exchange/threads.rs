//! Threads of one process. They meet at a barrier, and read the bytes that the others have left.

use super::{Exchange, Reduction};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a rank waits for others before they count as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// One of several threads, for tests.
#[derive(Clone, Debug)]
pub struct Threads {
    rank: usize,
    is_one_machine: bool,
    meeting: Arc<Meeting>,
}

#[derive(Debug)]
struct Meeting {
    /// The bytes that each rank has left for each other rank.
    left: Vec<Mutex<Vec<Vec<u8>>>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    /// The number of meetings.
    met: u64,
}

impl Threads {
    /// `size` ranks, which act as processes of one machine, or of one machine each. Each rank is for one thread.
    pub fn new(size: usize, is_one_machine: bool) -> Vec<Self> {
        let left = (0..size).map(|_| Mutex::default()).collect();
        let meeting = Arc::new(Meeting { left, state: Mutex::default(), changed: Condvar::new() });
        (0..size).map(|rank| Self { rank, is_one_machine, meeting: meeting.clone() }).collect()
    }

    /// Runs `work` on `size` ranks at once, and returns their results.
    ///
    /// # Panics
    /// If a rank panics.
    pub fn run<T: Send>(size: usize, is_one_machine: bool, work: impl Fn(&Self) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let ranks = Self::new(size, is_one_machine).into_iter();
            let threads: Vec<_> = ranks.map(|rank| scope.spawn(|| { rank }.work(&work))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
        })
    }

    fn work<T>(self, work: impl Fn(&Self) -> T) -> T {
        work(&self)
    }

    /// Waits until all ranks have arrived.
    fn meet(&self) {
        let Meeting { left, state, changed } = &*self.meeting;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == left.len() {
            (state.waiting, state.met) = (0, state.met + 1);
            changed.notify_all();
            return;
        }
        let met = state.met;
        let (_state, result) = changed
            .wait_timeout_while(state, PATIENCE, |state| state.met == met)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!result.timed_out(), "another rank is gone");
    }

    /// Leaves bytes for each rank. Calls `take` with each rank and the bytes that it has left for this rank.
    fn swap(&self, send: Vec<Vec<u8>>, mut take: impl FnMut(usize, &[u8])) {
        let left = |rank: usize| self.meeting.left[rank].lock().unwrap_or_else(PoisonError::into_inner);
        *left(self.rank) = send;
        self.meet();
        for rank in 0..self.size() {
            // Copies the bytes to release the lock, because other ranks read this list, too.
            let bytes = left(rank)[self.rank].clone();
            take(rank, &bytes);
        }
        self.meet();
    }

    /// Leaves the same numbers for all ranks, and takes the numbers of each rank.
    fn swap_numbers(&self, numbers: &[u64], mut take: impl FnMut(usize, &[u64])) {
        let bytes: &[u8] = bytemuck::cast_slice(numbers);
        let send = vec![bytes.to_vec(); self.size()];
        self.swap(send, |rank, bytes| take(rank, &bytemuck::pod_collect_to_vec::<u8, u64>(bytes)));
    }
}

impl Exchange for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.meeting.left.len()
    }

    fn is_one_machine(&self) -> bool {
        self.is_one_machine
    }

    fn all_reduce(&self, reduction: Reduction, numbers: &mut [u64]) {
        let own = numbers.to_vec();
        self.swap_numbers(&own, |rank, others| {
            for (number, other) in numbers.iter_mut().zip(others) {
                *number = if rank == 0 { *other } else { reduction.of(*number, *other) };
            }
        });
    }

    fn sum_of_earlier(&self, numbers: &mut [u64]) {
        let own = numbers.to_vec();
        numbers.fill(0);
        self.swap_numbers(&own, |rank, others| {
            if rank < self.rank {
                numbers.iter_mut().zip(others).for_each(|(number, other)| *number += other);
            }
        });
    }

    fn all_to_all(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) {
        self.swap(send.iter().map(|bytes| bytes.to_vec()).collect(), |rank, bytes| {
            receive[rank].copy_from_slice(bytes)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_add_up_and_swap() {
        for size in [1, 2, 5] {
            Threads::run(size, false, |exchange| {
                let rank = exchange.rank() as u64;
                let reduced = |reduction| {
                    let mut numbers = [rank, 10 - rank];
                    exchange.all_reduce(reduction, &mut numbers);
                    numbers
                };
                let last = size as u64 - 1;
                assert_eq!(reduced(Reduction::Min), [0, 10 - last]);
                assert_eq!(reduced(Reduction::Max), [last, 10]);
                assert_eq!(reduced(Reduction::Sum)[0], (0..=last).sum::<u64>());
                let mut earlier = [rank + 1];
                exchange.sum_of_earlier(&mut earlier);
                assert_eq!(earlier[0], (1..=rank).sum::<u64>());
                let sent: Vec<u64> = (0..size as u64).map(|to| 100 * rank + to).collect();
                let received = exchange.transpose(&sent);
                assert!(received.iter().copied().eq((0..size as u64).map(|from| 100 * from + rank)));
                assert_eq!(exchange.broadcast(vec![exchange.rank() as u8 + 7; exchange.rank() + 2]), [7, 7]);
            });
        }
    }
}
