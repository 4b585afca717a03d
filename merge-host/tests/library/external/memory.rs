//! The number of keys in memory at once.

use super::slices::{Calls, FromSlice, ToVec, pairs};
use merge_host::Engine;
use merge_host::external::{Observer, Options, Phase, Source, sort};
use merge_host::{Timing, Word};

/// Records the numbers of keys requested.
struct Asking(FromSlice<u64>, std::sync::Arc<std::sync::Mutex<Vec<usize>>>);

impl Source<u64> for Asking {
    type Error = String;

    fn len(&self) -> Option<u64> {
        self.0.len()
    }

    fn read(&mut self, keys: &mut [u64], payload: &mut [u8]) -> Result<usize, String> {
        self.1.lock().unwrap().push(keys.len());
        self.0.read(keys, payload)
    }
}

#[test]
fn no_more_keys_are_asked_for_than_fit() {
    for (is_len_known, memory) in [(true, 1 << 20), (false, 1 << 20), (true, 64 << 10), (false, 64 << 10)] {
        let asked = std::sync::Arc::default();
        let options = Options { width: 8, ..Options::new(memory) };
        let shape = options.shape::<u64>();
        let slice = FromSlice { is_len_known, ..FromSlice::new(pairs::<u64>(10_000, 1 << 50, 8), 8) };
        let source = Asking(slice, std::sync::Arc::clone(&asked));
        let begin = || Ok(ToVec::new(8, Calls::default()));
        sort(&options, source, begin, &mut &Engine::cpu_with_threads(1).unwrap(), &mut ()).unwrap();
        let (most, chunk) = (shape.most_in_memory(memory) as usize, shape.chunk(memory, None).unwrap());
        let asked = asked.lock().unwrap();
        match (is_len_known, 10_000 <= most) {
            (true, true) => assert_eq!(*asked, [10_000]),
            (false, true) => assert_eq!(*asked, [most]),
            (true, false) => assert!(asked.iter().all(|&keys| keys <= chunk) && asked[0] == chunk),
            (false, false) => assert!(asked[0] == most && asked[1..].iter().all(|&keys| keys == chunk)),
        }
    }
}

/// Records the phases.
#[derive(Default)]
struct Phases(Vec<Phase>, usize);

impl Observer for Phases {
    fn time<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        self.0.push(phase);
        work()
    }

    fn add(&mut self, _timing: Timing) {
        self.1 += 1;
    }
}

#[test]
fn an_observer_is_told_what_is_done() {
    fn phases<W: Word + TryFrom<u64>>(memory: u64) -> Phases {
        let mut phases = Phases::default();
        let source = FromSlice::new(pairs::<W>(1000, 100, 1), 1);
        let options = Options { width: 1, ..Options::new(memory) };
        let begin = || Ok(ToVec::new(1, Calls::default()));
        sort(&options, source, begin, &mut &Engine::cpu_with_threads(1).unwrap(), &mut phases).unwrap();
        phases
    }
    let in_memory = phases::<u64>(1 << 20);
    assert_eq!(in_memory.0.first(), Some(&Phase::Read));
    assert_eq!((in_memory.0.last(), in_memory.1), (Some(&Phase::Write), 1));
    let in_runs = phases::<u64>(16 << 10);
    for phase in [Phase::Read, Phase::Compute, Phase::Write] {
        assert!(in_runs.0.contains(&phase));
    }
    assert!(in_runs.1 > 1);
}
