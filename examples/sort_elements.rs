//! Times sorts of elements of any type and rayon's stable sorts, alternating in one run.
//!
//! ```sh
//! cargo run --release -p merge-host --example sort_elements -- 1000000 2
//! ```
//!
//! The arguments are the numbers of elements, of threads, and of repetitions. The times are in nanoseconds per element:
//! medians and minima. Minima are more reliable on a machine with other work. Both libraries sort copies of the same
//! elements.

use merge_host::{Engine, Error, SortKey};
use rayon::ThreadPoolBuilder;
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;
use std::time::Instant;

/// Times all sorts, and checks that both libraries give the same order.
pub fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("arguments are numbers"));
    let mut next = |default| arguments.next().unwrap_or(default);
    let (count, threads, repeats): (usize, usize, usize) = (next(100_000), next(2), next(7));
    let run = Run { count, repeats, engine: Engine::cpu_with_threads(threads)? };
    println!(
        "{count} elements, {threads} threads, ns for each element: rayon, merge-host, ratio; of medians, of minima"
    );
    let rayon = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool starts");
    rayon.install(|| {
        run.by_key("8 bytes", |random| random, |element| *element);
        run.by_key("16 bytes", |random| (random, !random), |element| element.0 as i64);
        run.by_key("64 bytes", |random| [random; 8], |element| element[3]);
        run.by_key("64 bytes, 16 values", |random| [random % 16; 8], |element| element[0]);
        run.by_key("16 bytes, key of 12", |random| (random >> 60, random as u32), |element| *element);
        run.by_key("String", |random| random.to_string(), |element| element.len());
        run.by("8 bytes", |random| random, u64::cmp);
        run.by("16 bytes", |random| (random, !random), |a, b| a.cmp(b));
        run.by("64 bytes", |random| [random; 8], |a, b| a[3].cmp(&b[3]));
        run.by("String", |random| random.to_string(), |a, b| a.cmp(b));
    });
    Ok(())
}

struct Run {
    count: usize,
    repeats: usize,
    engine: Engine,
}

impl Run {
    /// Sorts elements by a key.
    fn by_key<T, S>(&self, name: &str, make: impl Fn(u64) -> T, key: impl Fn(&T) -> S + Sync)
    where
        T: Clone + Send + PartialEq,
        S: SortKey + Ord,
    {
        let rayon = |items: &mut [T]| items.par_sort_by_key(&key);
        self.both(&format!("by key, {name}"), make, rayon, |items| _ = self.engine.sort_by_key(items, &key));
    }

    /// Sorts elements by a comparison.
    fn by<T: Clone + Send + PartialEq>(
        &self,
        name: &str,
        make: impl Fn(u64) -> T,
        compare: impl Fn(&T, &T) -> Ordering + Sync,
    ) {
        let rayon = |items: &mut [T]| items.par_sort_by(&compare);
        self.both(&format!("by comparison, {name}"), make, rayon, |items| _ = self.engine.sort_by(items, &compare));
    }

    fn both<T: Clone + PartialEq>(
        &self,
        name: &str,
        make: impl Fn(u64) -> T,
        rayon: impl Fn(&mut [T]),
        own: impl Fn(&mut [T]),
    ) {
        let mut state = 7;
        let items: Vec<T> = (0..self.count).map(|_| make(split_mix(&mut state))).collect();
        // Small inputs are sorted several times, so that a measurement takes long enough.
        let copies = (200_000 / self.count.max(1)).max(1);
        let mut times = [vec![], vec![]];
        for _ in 0..self.repeats {
            let mut sorted = [vec![], vec![]];
            for i in 0..2 {
                sorted[i] = vec![items.clone(); copies];
                let start = Instant::now();
                for items in &mut sorted[i] {
                    if i == 0 { rayon(items) } else { own(items) }
                }
                times[i].push(start.elapsed().as_secs_f64() * 1e9 / (copies * self.count) as f64);
            }
            assert!(sorted[0] == sorted[1], "{name}: both are stable");
        }
        times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        print!("{name:32}");
        for i in [self.repeats / 2, 0] {
            let (rayon, own) = (times[0][i], times[1][i]);
            print!(" {rayon:8.2} {own:8.2} {:6.2}", rayon / own);
        }
        println!();
    }
}

/// Sebastiano Vigna's SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
