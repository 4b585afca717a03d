//! Exact splits of 4096 simulated ranks: rounds, messages and bytes, for several numbers of bits a round.
//!
//! ```sh
//! cargo run --release --example simulate_splits -- [RANKS [KEYS [BITS…]]]
//! ```
//!
//! Each rank is a thread with a sorted run of KEYS keys of 4 bytes, and searches for the splits at the borders of all
//! parts. The splits are checked. An all-reduce is counted as recursive doubling: every rank sends log2(RANKS) messages
//! of all numbers.

use merge_host::splits::{InMemory, Search, SortedRuns, exact_splits};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Barrier, Mutex, RwLock};
use std::time::Instant;

/// The sums of all ranks, and the barrier where they wait.
struct Meeting {
    sums: RwLock<Vec<u64>>,
    left: Vec<Mutex<Vec<u64>>>,
    barrier: Barrier,
}

/// The communication of a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Sums and scans.
    rounds: u64,
    bytes: u64,
}

struct Rank<'a> {
    runs: InMemory<'a, u32>,
    number: usize,
    meeting: &'a Meeting,
    sent: Sent,
}

impl SortedRuns for Rank<'_> {
    type Word = u32;
    type Error = Infallible;

    fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.runs.lengths()
    }

    fn search(&mut self, searches: &mut [Search<u32>]) -> Result<(), Infallible> {
        self.runs.search(searches)
    }

    fn bounds(&mut self, _windows: &[Range<usize>]) -> Result<Option<(u32, u32)>, Infallible> {
        Ok(Some((0, u32::MAX)))
    }

    fn sum(&mut self, numbers: &mut [u64]) -> Result<(), Infallible> {
        self.count(numbers);
        let Meeting { sums, barrier, .. } = self.meeting;
        if barrier.wait().is_leader() {
            let mut sums = sums.write().unwrap();
            sums.clear();
            sums.resize(numbers.len(), 0);
        }
        barrier.wait();
        sums.write().unwrap().iter_mut().zip(&*numbers).for_each(|(sum, number)| *sum += number);
        barrier.wait();
        numbers.copy_from_slice(&sums.read().unwrap());
        Ok(())
    }

    fn sum_of_earlier(&mut self, numbers: &mut [u64]) -> Result<(), Infallible> {
        self.count(numbers);
        *self.meeting.left[self.number].lock().unwrap() = numbers.to_vec();
        if self.meeting.barrier.wait().is_leader() {
            let mut sum = vec![0; numbers.len()];
            for left in &self.meeting.left {
                let mut left = left.lock().unwrap();
                for (sum, number) in sum.iter_mut().zip(&mut *left) {
                    let before = *sum;
                    *sum += std::mem::replace(number, before);
                }
            }
        }
        self.meeting.barrier.wait();
        numbers.copy_from_slice(&self.meeting.left[self.number].lock().unwrap());
        Ok(())
    }
}

impl Rank<'_> {
    fn count(&mut self, numbers: &[u64]) {
        self.sent.rounds += 1;
        self.sent.bytes += size_of_val(numbers) as u64;
    }
}

/// Sorted keys of a rank.
fn run(number: usize, keys: usize) -> Vec<u32> {
    let key = |i: usize| ((number * keys + i) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let mut run: Vec<u32> = (0..keys).map(|i| key(i) as u32).collect();
    run.sort_unstable();
    run
}

/// The splits of each rank's run at the borders of all parts, and the communication of a rank.
fn simulate(runs: &[Vec<u32>], bits: u32) -> (Vec<Vec<usize>>, Sent) {
    let (size, keys) = (runs.len(), runs[0].len());
    let left = (0..size).map(|_| Mutex::default()).collect();
    let meeting = &Meeting { sums: RwLock::default(), left, barrier: Barrier::new(size) };
    let borders: &Vec<u64> = &(1..size as u64).map(|part| part * keys as u64).collect();
    std::thread::scope(|scope| {
        let rank = |(number, run): (usize, &'_ Vec<u32>)| {
            let runs = InMemory::from_iter([&run[..]]);
            let mut rank = Rank { runs, number, meeting, sent: Sent::default() };
            let splits = exact_splits(&mut rank, borders, bits).unwrap_or_else(|never| match never {});
            (splits, rank.sent)
        };
        let spawn = |number_and_run| {
            std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, move || rank(number_and_run)).unwrap()
        };
        let threads: Vec<_> = runs.iter().enumerate().map(spawn).collect();
        let (splits, sent): (Vec<_>, Vec<_>) = threads.into_iter().map(|thread| thread.join().unwrap()).unzip();
        (splits, sent[0])
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let (size, keys) = (arguments.next().unwrap_or(4096), arguments.next().unwrap_or(256));
    let mut bits: Vec<u32> = arguments.map(|bits| bits as u32).collect();
    if bits.is_empty() {
        bits = vec![1, 2, 3, 4];
    }
    let runs: Vec<Vec<u32>> = (0..size).map(|number| run(number, keys)).collect();
    let steps = u64::from(size.next_power_of_two().trailing_zeros());
    println!("| bits | sums | messages of a rank | bytes of a message | bytes that a rank sends | simulated in |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for bits in bits {
        let begin = Instant::now();
        let (splits, sent) = simulate(&runs, bits);
        for (part, border) in (1..size).map(|part| part * keys).enumerate() {
            let before: usize = splits.iter().map(|splits| splits[part]).sum();
            assert_eq!(before, border, "as many keys are before the border of part {part} as have to be");
        }
        let message = (size as u64 - 1) * ((1 << bits) - 1) * size_of::<u64>() as u64;
        let (sums, bytes) = (sent.rounds, sent.bytes * steps);
        let time = begin.elapsed().as_secs_f64();
        println!("| {bits} | {sums} | {} | {message} | {bytes} | {time:.0} s |", sums * steps);
    }
}
