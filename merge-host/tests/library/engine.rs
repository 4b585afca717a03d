//! The choice of an engine, and its threads.

use merge_host::{CostModel, Engine, EngineKind, Error, Gpus, SortOrder, devices, driver_version};
#[cfg(feature = "gpu")]
use merge_host::{Reduction, SetOperation, TopK, Work};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// A number of keys that is worth two threads.
const KEYS_OF_TWO_THREADS: usize = 1 << 17;

#[test]
fn a_callback_may_hold_a_lock_while_it_uses_the_engine() {
    let (done, ended) = mpsc::channel();
    // A deadlock leaves this thread behind and fails the test.
    thread::spawn(move || {
        let engine = Engine::cpu_with_threads(2).unwrap();
        let lock = Mutex::new((0..KEYS_OF_TWO_THREADS as u64).rev().collect::<Vec<_>>());
        let sort_with_lock = || {
            let mut keys = lock.lock().unwrap();
            keys.reverse();
            engine.sort_with(SortOrder::Descending, &mut keys).map(drop)
        };
        for _ in 0..3 {
            let write = |_: usize, _: &[u32]| sort_with_lock();
            engine.sort_streamed(SortOrder::Ascending, 4 << 18, |_, _| sort_with_lock(), write).unwrap();
        }
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(120)).expect("the callbacks do not wait for each other");
}

#[test]
fn values_of_segments_may_borrow() {
    let names = [String::from("c"), String::from("a"), String::from("b")];
    let mut borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    Engine::cpu().sort_segments_pairs(SortOrder::Ascending, &mut [3, 1, 2], &mut borrowed, &[0, 3]).unwrap();
    assert_eq!(borrowed, ["a", "b", "c"]);
}

#[test]
fn engines_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Engine::cpu());
}

#[test]
fn a_cpu_engine_gives_its_number_of_threads_and_the_reason() {
    let one = Engine::cpu_with_threads(1).unwrap();
    assert_eq!((one.kind(), &*one.why()), (EngineKind::Cpu, "1 CPU thread because that was asked for"));
    let five = Engine::cpu_with_threads(5).unwrap();
    assert_eq!((five.kind(), &*five.why()), (EngineKind::Cpu, "5 CPU threads because that was asked for"));
    assert!(Engine::cpu().why().ends_with("because the CPU was asked for"), "{:?}", Engine::cpu());
    assert_eq!((EngineKind::Cpu.to_string(), EngineKind::Gpu.to_string()), ("cpu".into(), "gpu".into()));
}

/// Constants with which the GPU costs only its start, and the CPU 4 ms for 1000 keys of 4 bytes.
#[cfg(feature = "gpu")]
fn costs(start_ms: f64) -> CostModel {
    format!("gpu_start_ms={start_ms},gpu_call_ms=0,gpu_up=0,gpu_down=0,gpu_sort=0,sort4_thread=1000,sort4_shared=0")
        .parse()
        .unwrap()
}

/// Fails unless the engine has chosen a GPU. Without a GPU, it must have preferred one.
#[cfg(feature = "gpu")]
#[track_caller]
fn assert_is_gpu_if_usable(engine: &Engine) {
    match Engine::gpu(0) {
        Ok(_) => assert!(engine.kind() == EngineKind::Gpu && engine.as_gpu().is_some(), "{engine:?}"),
        Err(error) => {
            assert_eq!(engine.kind(), EngineKind::Cpu);
            assert!(engine.why().ends_with(&error.to_string()), "{} does not give the reason {error}", engine.why());
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn auto_chooses_what_takes_less_time() {
    let engine = Engine::auto_with(costs(5.0));
    let mut keys: Vec<u32> = (0..2000).rev().collect();
    engine.sort(&mut keys[..1000]).unwrap();
    assert_eq!(engine.kind(), EngineKind::Cpu);
    assert!(
        engine.as_gpu().is_none() && engine.why().contains("4.0 ms on the CPU and 5.0 ms on the GPU"),
        "{engine:?}"
    );
    let two = Engine::auto_of(costs(5.0), Gpus::Of(vec![0, 1]));
    two.sort(&mut keys[..1000]).unwrap();
    assert!(two.kind() == EngineKind::Cpu && two.why().contains("4.0 ms on the CPU and 5.0 ms on 2 GPUs"), "{two:?}");
    engine.sort(&mut keys).unwrap();
    assert!(keys.is_sorted());
    assert_is_gpu_if_usable(&engine);
    // There are no kernels for these keys, so costs do not matter.
    engine.sort(&mut vec![1u8; 1 << 20]).unwrap();
    assert_eq!((engine.kind(), &*engine.why()), (EngineKind::Cpu, "GPUs have no kernels for u8 keys"));
}

/// The engine chooses a processor for every operation that a GPU has kernels for.
#[cfg(feature = "gpu")]
#[test]
fn auto_chooses_for_every_operation() {
    let costs = |cpu: u32| -> CostModel {
        let cpu = ["sort4_thread", "sort_pairs_thread", "segments_thread", "set_thread", "top_k_thread"]
            .map(|name| format!("{name}={cpu}"))
            .join(",");
        format!("gpu_start_ms=1,gpu_call_ms=0,gpu_up=1,gpu_down=1,{cpu}").parse().unwrap()
    };
    type Operation = fn(&Engine) -> Result<merge_host::Timing, Error>;
    let operations: [(&str, Operation); 9] = [
        ("sort_segments", |engine| engine.sort_segments(SortOrder::Ascending, &mut [2u32; 1000], &[0, 500, 1000])),
        ("sort_segments_pairs", |engine| {
            engine.sort_segments_pairs(SortOrder::Ascending, &mut [2u32; 1000], &mut [1; 1000], &[0, 1000])
        }),
        ("set_operation", |engine| engine.set_operation(SetOperation::Union, &[2u32; 500], &[3; 500], &mut Vec::new())),
        ("unique", |engine| engine.unique(&[2u32; 1000], &mut Vec::new())),
        ("run_lengths", |engine| engine.run_lengths(&[2u32; 1000], &mut Vec::new(), &mut Vec::new())),
        ("reduce_by_key", |engine| {
            let (keys, values) = ([2u32; 1000], [1u32; 1000]);
            engine.reduce_by_key(Reduction::Sum, &keys, &values, &mut Vec::new(), &mut Vec::new())
        }),
        ("top_k", |engine| engine.top_k(SortOrder::Ascending, &[2u32; 1000], &mut [0; 3])),
        ("top_k_indices", |engine| {
            engine.top_k_indices(SortOrder::Ascending, &[2u32; 1000], &mut [0; 3], &mut [0u32; 3])
        }),
        ("TopK", |engine| TopK::new(SortOrder::Ascending, 3).add(engine, &[2u32; 1000])),
    ];
    for (name, operation) in operations {
        let engine = Engine::auto_with(costs(0));
        operation(&engine).unwrap();
        assert!(engine.kind() == EngineKind::Cpu && engine.why().ends_with("are estimated"), "{name}: {engine:?}");
        assert!(engine.as_gpu().is_none(), "{name} has started a GPU");
        let engine = Engine::auto_with(costs(100_000));
        operation(&engine).unwrap();
        println!("{name}");
        assert_is_gpu_if_usable(&engine);
    }
    // The CPU must be faster than one GPU, for any number of GPUs.
    let engine = Engine::auto_of(costs(0), Gpus::Of(vec![0, 1]));
    engine.unique(&[2u32; 1000], &mut Vec::new()).unwrap();
    assert!(engine.why().ends_with("on the GPU are estimated"), "{engine:?}");
    engine.top_k(SortOrder::Ascending, &[2u32; 1000], &mut [0; 3]).unwrap();
    assert!(engine.why().ends_with("on 2 GPUs are estimated"), "{engine:?}");
    // There are no kernels for these keys.
    let engine = Engine::auto_with(costs(100_000));
    engine.sort_segments(SortOrder::Ascending, &mut [2u8; 1000], &[0, 1000]).unwrap();
    assert_eq!((engine.kind(), &*engine.why()), (EngineKind::Cpu, "GPUs have no kernels for u8 keys"));
}

#[cfg(feature = "gpu")]
#[test]
fn auto_starts_the_gpu_when_that_would_have_paid() {
    let engine = Engine::auto_with(costs(10.0));
    let clone = engine.clone();
    for call in 1..=4 {
        let mut keys: Vec<u32> = (0..1000).rev().collect();
        // A start alone does not count as a call. Clones choose together.
        engine.start_for::<u32>(&Work::sort::<u32>(1000)).unwrap();
        if call == 2 { clone.sort(&mut keys) } else { engine.sort(&mut keys) }.unwrap();
        assert!(keys.is_sorted());
        if call < 3 {
            assert_eq!(engine.kind(), EngineKind::Cpu);
            assert!(engine.why().ends_with("are estimated"), "call {call}: {engine:?}");
        } else {
            assert_is_gpu_if_usable(&engine);
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn auto_can_be_started_before_the_work() {
    let engine = Engine::auto_with(costs(0.0));
    let kind = engine.start_for::<u32>(&Work::sort::<u32>(1000)).unwrap();
    assert_eq!(kind, engine.kind());
    assert_is_gpu_if_usable(&engine);
    // An engine with a fixed processor starts nothing.
    assert_eq!(Engine::cpu().start_for::<u32>(&Work::sort::<u32>(1 << 40)), Ok(EngineKind::Cpu));
}

#[cfg(feature = "gpu")]
#[test]
fn auto_takes_the_cpu_if_one_of_the_gpus_cannot_be_used() {
    let none = Error::NoMembers.to_string();
    let twice = Error::RepeatedDevice { ordinal: 0 }.to_string();
    for (gpus, reason) in [
        (Gpus::Of(vec![]), Some(none)),
        (Gpus::Of(vec![0, 0]), Some(twice)),
        (Gpus::Of(vec![0, 1000]), Gpus::Of(vec![0, 1000]).engine().err().map(|error| error.to_string())),
        (Gpus::All, Gpus::All.engine().err().map(|error| error.to_string())),
    ] {
        let engine = Engine::auto_of(costs(0.0), gpus.clone());
        assert!(engine.as_gpu_group().is_none(), "{gpus:?} have been started before there is work");
        let mut keys: Vec<u32> = (0..1000).rev().collect();
        engine.sort(&mut keys).unwrap();
        assert!(keys.is_sorted(), "{gpus:?}");
        let Some(reason) = reason else {
            assert!(engine.kind() == EngineKind::Gpu && engine.as_gpu_group().is_some(), "{engine:?}");
            continue;
        };
        assert_eq!((engine.kind(), engine.why()), (EngineKind::Cpu, format!("the GPU cannot be used: {reason}")));
        assert!(engine.as_gpu_group().is_none(), "{engine:?}");
    }
}

#[cfg(feature = "gpu")]
#[test]
fn several_gpus_are_one_or_more_and_different_ones() {
    // These hold with and without a driver.
    for (ordinals, expected, message) in [
        (&[][..], Error::NoMembers, "a group of GPUs has no members, expected one or more"),
        (&[0, 0], Error::RepeatedDevice { ordinal: 0 }, "GPU 0 is in the group twice"),
        (&[5, 1, 2, 1, 5], Error::RepeatedDevice { ordinal: 1 }, "GPU 1 is in the group twice"),
    ] {
        assert_eq!(expected.to_string(), message);
        assert_eq!(Engine::gpus(ordinals).unwrap_err(), expected, "{ordinals:?}");
        assert_eq!(Gpus::Of(ordinals.to_vec()).engine().unwrap_err(), expected, "{ordinals:?}");
        assert_eq!(merge_host::GpuGroup::new(ordinals).unwrap_err(), expected, "{ordinals:?}");
    }
}

#[cfg(feature = "gpu")]
#[test]
fn all_gpus_are_those_that_the_driver_shows() {
    let engines = [Engine::all_gpus(), Gpus::All.engine()];
    for engine in engines {
        match devices() {
            Ok(devices) if !devices.is_empty() => {
                let engine = engine.unwrap();
                let group = engine.as_gpu_group().expect("the engine is of GPUs");
                assert!(group.gpus().map(|gpu| gpu.ordinal()).eq(devices.iter().map(|device| device.ordinal)));
                assert_eq!(engine.kind(), EngineKind::Gpu);
            }
            _ => assert!(matches!(engine.unwrap_err(), Error::NoDevice { .. })),
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn a_gpu_is_described_by_its_ordinal_and_its_multiprocessors() {
    match merge_host::Gpu::new(0) {
        Ok(gpu) => {
            let multiprocessors = devices().unwrap()[0].multiprocessors;
            assert_eq!(format!("{gpu:?}"), format!("Gpu {{ ordinal: 0, multiprocessors: {multiprocessors}, .. }}"));
        }
        Err(error) => println!("not tested: {error}"),
    }
}

#[cfg(not(feature = "gpu"))]
#[test]
fn a_build_without_the_gpu_engine_says_so() {
    assert_eq!(Engine::gpu(0).unwrap_err(), Error::NoGpuSupport);
    assert_eq!(Engine::all_gpus().unwrap_err(), Error::NoGpuSupport);
    assert_eq!(Gpus::All.engine().unwrap_err(), Error::NoGpuSupport);
    for ordinals in [&[][..], &[0], &[0, 1], &[0, 0]] {
        assert_eq!(Engine::gpus(ordinals).unwrap_err(), Error::NoGpuSupport);
        assert_eq!(Gpus::Of(ordinals.to_vec()).engine().unwrap_err(), Error::NoGpuSupport);
    }
    let engine = Engine::auto_of(CostModel::default(), Gpus::All);
    let mut keys = [3, 1, 2];
    engine.sort(&mut keys).unwrap();
    assert_eq!((engine.kind(), keys), (EngineKind::Cpu, [1, 2, 3]));
    assert!(engine.why().ends_with(&Error::NoGpuSupport.to_string()), "{engine:?}");
    assert_eq!(devices().unwrap_err(), Error::NoGpuSupport);
    assert_eq!(driver_version().unwrap_err(), Error::NoGpuSupport);
}

#[cfg(feature = "gpu")]
#[test]
fn a_machine_without_a_gpu_gives_errors_and_no_crash() {
    match devices() {
        Ok(devices) => {
            let count = devices.len();
            assert!(driver_version().unwrap() > (0, 0));
            for error in [Engine::gpu(count), Engine::gpus(&[count])].map(Result::unwrap_err) {
                assert_eq!(error, Error::DeviceOrdinal { ordinal: count, count });
            }
        }
        Err(error) => {
            assert!(matches!(error, Error::NoDevice { .. }), "{error}");
            assert!(matches!(Engine::gpu(0).unwrap_err(), Error::NoDevice { .. }));
            assert!(matches!(Engine::gpus(&[0, 1]).unwrap_err(), Error::NoDevice { .. }));
        }
    }
}
