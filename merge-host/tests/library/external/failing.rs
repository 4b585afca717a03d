//! Sources, targets, engines and folders that fail.

use super::slices::{Calls, FromSlice, ToVec, pairs};
use merge_host::external::{Engines, Error, Options, RunError, Source, Target, merge, sort};
use merge_host::{Engine, Timing};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Runs `work`, and panics if it takes more than a minute.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    std::thread::spawn(move || drop(done.send(work())));
    result.recv_timeout(Duration::from_secs(60)).expect("the work ends within a minute")
}

fn options(width: usize) -> Options {
    Options { width, fan_in: Some(3), ..Options::new(16 << 10) }
}

/// Sorts 5000 keys by way of runs.
fn sort_with(width: usize, is_len_known: bool, read: Calls, write: Calls) -> Result<(), Error<String>> {
    in_time(move || {
        let source =
            FromSlice { calls: read, is_len_known, ..FromSlice::new(pairs::<u32>(5000, 1 << 31, width), width) };
        let engine = Engine::cpu_with_threads(1).unwrap();
        sort(&options(width), source, || Ok(ToVec::new(width, write)), &mut &engine, &mut ()).map(drop)
    })
}

#[test]
fn a_source_that_fails_at_any_call_gives_its_error() {
    for (width, is_len_known) in [(0, true), (0, false), (3, true)] {
        let calls = Calls::default();
        sort_with(width, is_len_known, calls.clone(), Calls::default()).unwrap();
        assert!(calls.count() > 3);
        for failing in 0..calls.count() {
            let result = sort_with(width, is_len_known, Calls::failing_at(failing), Calls::default());
            let error = result.unwrap_err().to_string();
            assert_eq!(error, format!("read {failing} failed"));
        }
    }
}

#[test]
fn a_target_that_fails_at_any_call_gives_its_error() {
    let calls = Calls::default();
    sort_with(0, true, Calls::default(), calls.clone()).unwrap();
    assert!(calls.count() > 3);
    for failing in 0..calls.count() {
        let error = sort_with(0, true, Calls::default(), Calls::failing_at(failing)).unwrap_err().to_string();
        assert_eq!(error, format!("write {failing} failed"));
    }
}

#[test]
fn a_merge_gives_the_error_of_any_source_and_of_the_target() {
    let merge_with = |reads: [Calls; 4], write: Calls| {
        in_time(move || {
            let sorted = pairs::<u32>(3000, 1 << 31, 1).sorted(&options(1));
            let sources = reads.map(|calls| FromSlice { calls, ..FromSlice::new(sorted.clone(), 1) }).into();
            let engine = Engine::cpu_with_threads(1).unwrap();
            merge(&options(1), sources, || Ok(ToVec::new(1, write)), &engine, &mut ()).map(drop)
        })
    };
    let calls = Calls::default();
    merge_with([(); 4].map(|()| calls.clone()), Calls::default()).unwrap();
    for failing in 0..calls.count() {
        let calls = Calls::failing_at(failing);
        let error = merge_with([(); 4].map(|()| calls.clone()), Calls::default()).unwrap_err().to_string();
        assert_eq!(error, format!("read {failing} failed"));
    }
    let error = merge_with(Default::default(), Calls::failing_at(1)).unwrap_err();
    assert_eq!(error.to_string(), "write 1 failed");
}

#[test]
fn a_target_that_cannot_be_opened_gives_its_error() {
    let engine = Engine::cpu_with_threads(1).unwrap();
    for count in [0, 10, 5000] {
        let source = FromSlice::new(pairs::<u32>(count, 9, 0), 0);
        let begin = || Err::<ToVec<u32>, _>("closed".to_owned());
        let error = sort(&options(0), source, begin, &mut &engine, &mut ()).unwrap_err();
        assert!(matches!(error, Error::Other(reason) if reason == "closed"));
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error_only_where_it_is_needed() {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let options = Options { folders: vec!["/not/there".into()], ..options(0) };
    let sort = |count| {
        let source = FromSlice::new(pairs::<u32>(count, 9, 0), 0);
        sort(&options, source, || Ok(ToVec::new(0, Calls::default())), &mut &engine, &mut ())
    };
    assert_eq!(sort(100).unwrap().1.runs, 0);
    let error = sort(5000).unwrap_err().to_string();
    assert_eq!(error, "/not/there: cannot create a temporary file: No such file or directory");
}

#[test]
fn too_little_memory_is_an_error_that_says_how_much_is_enough() {
    let engine = Engine::cpu_with_threads(1).unwrap();
    for is_len_known in [true, false] {
        let sort = |memory| {
            let options = Options { width: 3, ..Options::new(memory) };
            let source = FromSlice { is_len_known, ..FromSlice::new(pairs::<u32>(1000, 9, 3), 3) };
            sort(&options, source, || Ok(ToVec::new(3, Calls::default())), &mut &engine, &mut ())
        };
        let Err(Error::TooLittleMemory(error)) = sort(100) else { panic!("100 bytes are not enough") };
        assert_eq!((error.memory, error.key, error.width), (100, 4, 3));
        sort(error.needed).unwrap();
    }
}

#[test]
fn a_panic_in_a_source_or_a_target_goes_on_here() {
    /// Panics when its call fails.
    struct Panicking<T>(T);
    impl<T: Source<u32, Error = String>> Source<u32> for Panicking<T> {
        type Error = String;
        fn len(&self) -> Option<u64> {
            self.0.len()
        }
        fn read(&mut self, keys: &mut [u32], payload: &mut [u8]) -> Result<usize, String> {
            Ok(self.0.read(keys, payload).expect("the source panics"))
        }
    }
    impl<T: Target<u32, Error = String>> Target<u32> for Panicking<T> {
        type Error = String;
        fn write(&mut self, keys: &mut [u32], payload: &mut [u8]) -> Result<(), String> {
            self.0.write(keys, payload).expect("the target panics");
            Ok(())
        }
    }
    for (read, write) in [(2, usize::MAX), (usize::MAX, 1)] {
        for merges in [false, true] {
            let work = move || {
                let engine = Engine::cpu_with_threads(1).unwrap();
                let calls = Calls::failing_at(read);
                let slice = FromSlice { calls, ..FromSlice::new(pairs::<u32>(5000, 1, 0), 0) };
                let begin = || Ok(Panicking(ToVec::new(0, Calls::failing_at(write))));
                let source = Panicking(slice);
                if merges {
                    merge(&options(0), vec![source], begin, &engine, &mut ()).map(drop)
                } else {
                    sort(&options(0), source, begin, &mut &engine, &mut ()).map(drop)
                }
            };
            assert!(in_time(move || std::panic::catch_unwind(work)).is_err());
        }
    }
}

/// An engine that spoils the data and fails at the call with the index `failing`, and falls back to the CPU.
struct Spoiling {
    cpu: Engine,
    call: usize,
    failing: usize,
    device: Option<u64>,
}

fn device_lost() -> merge_host::Error {
    merge_host::Error::Device { call: "sort".to_owned(), reason: "lost".to_owned(), code: None, cause: None }
}

impl Engines<String> for Spoiling {
    fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> Result<Timing, RunError<String>>,
        restore: impl FnOnce(&mut T) -> Result<bool, String>,
    ) -> Result<Timing, RunError<String>> {
        self.call += 1;
        let timing = work(&self.cpu, data)?;
        if self.call - 1 != self.failing {
            return Ok(timing);
        }
        if !restore(data).map_err(RunError::Other)? {
            return Err(device_lost().into());
        }
        work(&self.cpu, data)
    }

    fn device_memory(&mut self) -> Result<Option<u64>, RunError<String>> {
        Ok(self.device)
    }

    fn cpu(&mut self) -> Result<&Engine, RunError<String>> {
        Ok(&self.cpu)
    }
}

/// Sorts with an engine that fails. Keys that are sorted twice look the same, so the payloads show whether the chunk
/// was restored.
fn fall_back(width: usize, failing: usize, memory: u64, source: impl FnOnce(FromSlice<u16>) -> FromSlice<u16>) {
    let options = Options { width, ..Options::new(memory) };
    let input = pairs::<u16>(8000, 50, width);
    let cpu = Engine::cpu_with_threads(1).unwrap();
    let mut engines = Spoiling { cpu, call: 0, failing, device: None };
    let source = source(FromSlice::new(input.clone(), width));
    let can_read_again = source.can_read_again;
    let result = sort(&options, source, || Ok(ToVec::new(width, Calls::default())), &mut engines, &mut ());
    if can_read_again {
        assert!(result.unwrap().0.pairs == input.sorted(&options), "{width} {failing} {memory}");
    } else {
        assert!(matches!(result, Err(Error::Engine(error)) if error == device_lost()));
    }
    assert!(engines.call > failing);
}

#[test]
fn what_a_failed_engine_has_spoilt_is_read_again() {
    for width in [0, 1, 4, 8] {
        for (memory, calls) in [(1 << 20, 1), (16 << 10, 3)] {
            for failing in 0..calls {
                fall_back(width, failing, memory, |source| FromSlice { can_read_again: true, ..source });
                fall_back(width, failing, memory, |source| FromSlice {
                    can_read_again: true,
                    is_len_known: false,
                    ..source
                });
                fall_back(width, failing, memory, |source| source);
            }
        }
    }
}

#[test]
fn a_device_with_little_memory_sorts_small_chunks() {
    for is_len_known in [true, false] {
        let options = options(4);
        let input = pairs::<u32>(5000, 900, 4);
        let cpu = Engine::cpu_with_threads(1).unwrap();
        let mut engines = Spoiling { cpu, call: 0, failing: usize::MAX, device: Some(100 * 16 * 41 / 40) };
        let source = FromSlice { is_len_known, ..FromSlice::new(input.clone(), 4) };
        let begin = || Ok(ToVec::new(4, Calls::default()));
        let (target, _) = sort(&options, source, begin, &mut engines, &mut ()).unwrap();
        assert!(target.pairs == input.sorted(&options));
        // Chunks of 100 keys, with a fortieth of the memory to spare. If the number of keys is unknown, the 1024 keys
        // that fit in the host's memory come first.
        assert_eq!(engines.call, if is_len_known { 50 } else { 11 + 40 });
    }
}
