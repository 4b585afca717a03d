//! The choice of an engine, and its threads.

#[cfg(feature = "gpu")]
use merge_host::{Bound, Reduction, SetOperation, TopK, Work};
use merge_host::{CostModel, Engine, EngineKind, Error, Gpus, Reason, SortOrder, Timing, devices, driver_version};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// A number of keys that is worth two threads.
const KEYS_OF_TWO_THREADS: usize = 1 << 19;

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
            engine.sort_with(SortOrder::Descending, &mut keys[..]).map(drop)
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
    Engine::cpu().sort_segments(SortOrder::Ascending, (&mut [3, 1, 2], &mut borrowed), &[0, 3]).unwrap();
    assert_eq!(borrowed, ["a", "b", "c"]);
}

#[test]
fn engines_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Engine::cpu());
}

#[test]
fn a_timing_tells_the_processor_and_the_reason() {
    let of = |engine: &Engine| engine.sort(&mut [2, 1]).unwrap();
    let one = of(&Engine::cpu_with_threads(1).unwrap());
    assert_eq!((one.engine, one.reason), (EngineKind::Cpu, Reason::Threads(1)));
    let all = of(&Engine::cpu().on_current_pool());
    assert_eq!((all.engine, all.reason), (EngineKind::Cpu, Reason::Cpu));
    // An engine that may choose leaves this to the CPU.
    let chosen = Engine::auto().sort_by(&mut [2, 1], Ord::cmp).unwrap();
    assert_eq!(chosen.engine, EngineKind::Cpu);
    if cfg!(feature = "gpu") {
        assert_eq!((chosen.reason, Timing::default().reason), (Reason::CpuOnly, Reason::Nothing));
    }
    assert_eq!(Engine::cpu().sort_by(&mut [2, 1], Ord::cmp).unwrap().reason, Reason::Cpu);
    assert_eq!((EngineKind::Cpu.to_string(), EngineKind::Gpu.to_string()), ("cpu".into(), "gpu".into()));
}

/// Constants with which the GPU costs only its start, and the CPU 4 ms for 1000 keys of 4 bytes.
#[cfg(feature = "gpu")]
fn costs(start_ms: f64) -> CostModel {
    format!("gpu_start_ms={start_ms},gpu_call_ms=0,gpu_up=0,gpu_down=0,gpu_sort=0,sort4_thread=1000,sort4_shared=0")
        .parse()
        .unwrap()
}

/// The engine that chooses between the CPU and the first GPU.
#[cfg(feature = "gpu")]
fn auto(costs: CostModel) -> Engine {
    Engine::auto_with(costs, Gpus::Of(vec![0]))
}

/// Fails unless the engine has chosen a GPU. Without a GPU, it must have preferred one.
#[cfg(feature = "gpu")]
#[track_caller]
fn assert_is_gpu_if_usable(engine: &Engine, timing: &Timing) {
    match Engine::gpu(0) {
        Ok(_) => assert!(timing.engine == EngineKind::Gpu && engine.as_gpu_group().is_some(), "{timing:?}"),
        Err(error) => {
            let Reason::NoGpu(reason) = timing.reason else { panic!("{timing:?}") };
            assert_eq!((timing.engine, reason), (EngineKind::Cpu, &error));
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn auto_chooses_what_takes_less_time() {
    let engine = auto(costs(5.0));
    let mut keys: Vec<u32> = (0..2000).rev().collect();
    let Timing { engine: kind, reason, .. } = engine.sort(&mut keys[..1000]).unwrap();
    let ms = Duration::from_millis;
    assert_eq!((kind, reason), (EngineKind::Cpu, Reason::Estimate { cpu: ms(4), gpu: ms(5), gpus: 1 }));
    assert!(engine.as_gpu_group().is_none());
    let two = Engine::auto_with(costs(5.0), Gpus::Of(vec![0, 1]));
    let Timing { engine: kind, reason, .. } = two.sort(&mut keys[..1000]).unwrap();
    let estimated = "4.0 ms on the CPU and 5.0 ms on 2 GPUs are estimated";
    assert_eq!((kind, &*reason.to_string()), (EngineKind::Cpu, estimated));
    let timing = engine.sort(&mut keys).unwrap();
    assert!(keys.is_sorted());
    assert_is_gpu_if_usable(&engine, &timing);
    // There are no kernels for these keys, so costs do not matter.
    let (a, b) = (vec![1u128; 1 << 16], vec![1; 1 << 16]);
    let Timing { engine: kind, reason, .. } = engine.merge(&a, &b, &mut vec![0; 1 << 17]).unwrap();
    assert_eq!((kind, reason), (EngineKind::Cpu, Reason::NoKernels { key: "u128" }));
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
    type Operation = fn(&Engine) -> Result<Timing, Error>;
    let operations: [(&str, Operation); 11] = [
        ("sort_segments", |engine| engine.sort_segments(SortOrder::Ascending, &mut [2u32; 1000], &[0, 500, 1000])),
        ("sort_segments with values", |engine| {
            engine.sort_segments(SortOrder::Ascending, (&mut [2u32; 1000], &mut [1; 1000]), &[0, 1000])
        }),
        ("set_operation", |engine| engine.set_operation(SetOperation::Union, &[2u32; 500], &[3; 500], &mut Vec::new())),
        ("unique", |engine| engine.unique(&[2u32; 1000], &mut Vec::new())),
        ("run_lengths", |engine| engine.run_lengths(&[2u32; 1000], (&mut Vec::new(), &mut Vec::new()))),
        ("reduce_by_key", |engine| {
            let (keys, values) = ([2u32; 1000], [1u32; 1000]);
            engine.reduce_by_key(Reduction::Sum, (&keys, &values), (&mut Vec::new(), &mut Vec::new()))
        }),
        ("top_k", |engine| engine.top_k(SortOrder::Ascending, &[2u32; 1000], &mut [0; 3])),
        ("top_k with indices", |engine| {
            engine.top_k(SortOrder::Ascending, &[2u32; 1000], (&mut [0; 3], &mut [0u32; 3]))
        }),
        ("sort_unique", |engine| engine.sort_unique(SortOrder::Ascending, &mut [2u32; 1000]).map(|(_, timing)| timing)),
        ("top_k_segments", |engine| {
            engine.top_k_segments(SortOrder::Ascending, &[2u32; 1000], &[0, 500, 1000], 3, &mut [0; 6])
        }),
        ("TopK", |engine| TopK::new(SortOrder::Ascending, 3).add(engine, &[2u32; 1000])),
    ];
    let is_estimate = |timing: &Timing, of: usize| matches!(timing.reason, Reason::Estimate { gpus, .. } if gpus == of);
    for (name, operation) in operations {
        let engine = auto(costs(0));
        let timing = operation(&engine).unwrap();
        assert!(timing.engine == EngineKind::Cpu && is_estimate(&timing, 1), "{name}: {timing:?}");
        assert!(engine.as_gpu_group().is_none(), "{name} has started a GPU");
        let engine = auto(costs(100_000));
        let timing = operation(&engine).unwrap();
        println!("{name}");
        assert_is_gpu_if_usable(&engine, &timing);
    }
    // The CPU must be faster than one GPU, for any number of GPUs.
    let engine = Engine::auto_with(costs(0), Gpus::Of(vec![0, 1]));
    assert!(is_estimate(&engine.unique(&[2u32; 1000], &mut Vec::new()).unwrap(), 1));
    assert!(is_estimate(&engine.top_k(SortOrder::Ascending, &[2u32; 1000], &mut [0; 3]).unwrap(), 2));
    // There are no kernels for these keys.
    let engine = auto(costs(100_000));
    let timing = engine.sort_segments(SortOrder::Ascending, &mut [2u128; 1000], &[0, 1000]).unwrap();
    assert_eq!((timing.engine, timing.reason), (EngineKind::Cpu, Reason::NoKernels { key: "u128" }));
}

/// An engine of GPUs refuses keys of other types, whatever the operation. It sorts arrays of all types.
#[cfg(feature = "gpu")]
#[test]
fn an_engine_of_gpus_refuses_keys_without_kernels() {
    let engine = match Engine::gpu(0) {
        Ok(engine) => engine,
        Err(error) => return println!("not tested: {error}"),
    };
    let order = SortOrder::Ascending;
    type Operation = fn(&Engine, SortOrder) -> Result<Timing, Error>;
    let operations: [Operation; 11] = [
        |engine, order| engine.sort_segments(order, &mut [2u128, 1], &[0, 2]),
        |engine, order| engine.top_k_segments(order, &[2u128, 1], &[0, 2], 1, &mut [0]),
        |engine, _| engine.merge(&[1u128], &[2], &mut [0; 2]),
        |engine, _| engine.merge_many(&[&[1u128], &[2]], &mut [0; 2]),
        |engine, _| engine.merge_batch(&[1u128], &[2], &mut [0; 2], 2, 1),
        |engine, _| engine.merge_ragged((&[1u128], &[0, 1]), (&[2], &[0, 1]), &mut [0; 2]),
        |engine, _| engine.merge_many_ragged(&[1u128, 2], (&[0, 1, 2], &[0, 2]), &mut [0; 2]),
        |engine, _| engine.set_operation(SetOperation::Union, &[1u128], &[2], &mut vec![]),
        |engine, _| engine.unique(&[1u128], &mut vec![]),
        |engine, _| engine.bounds(Bound::Lower, &[1u128], &[1], &mut [0u32]),
        |engine, order| engine.top_k(order, &[2u128, 1], &mut [0]),
    ];
    for operation in operations {
        assert_eq!(operation(&engine, order), Err(Error::NoKernels { key: "u128" }));
    }
}

#[cfg(feature = "gpu")]
#[test]
fn auto_starts_the_gpu_when_that_would_have_paid() {
    let engine = auto(costs(10.0));
    let clone = engine.clone();
    for call in 1..=4 {
        let mut keys: Vec<u32> = (0..1000).rev().collect();
        // A start alone does not count as a call. Clones choose together.
        engine.start_for::<u32>(&Work::sort::<u32>(1000)).unwrap();
        let timing = if call == 2 { clone.sort(&mut keys) } else { engine.sort(&mut keys) }.unwrap();
        assert!(keys.is_sorted());
        if call < 3 {
            assert!(matches!(timing.reason, Reason::Estimate { .. }), "call {call}: {timing:?}");
            assert_eq!(timing.engine, EngineKind::Cpu);
        } else {
            assert_is_gpu_if_usable(&engine, &timing);
        }
    }
}

#[cfg(feature = "gpu")]
#[test]
fn auto_can_be_started_before_the_work() {
    let engine = auto(costs(0.0));
    let kind = engine.start_for::<u32>(&Work::sort::<u32>(1000)).unwrap();
    let timing = engine.sort(&mut vec![1u32; 1000]).unwrap();
    assert_eq!(kind, timing.engine);
    assert_is_gpu_if_usable(&engine, &timing);
    // An engine with a fixed processor starts nothing.
    assert_eq!(Engine::cpu().start_for::<u32>(&Work::sort::<u32>(1 << 40)), Ok(EngineKind::Cpu));
}

#[cfg(feature = "gpu")]
#[test]
fn auto_takes_the_cpu_if_one_of_the_gpus_cannot_be_used() {
    for (gpus, reason) in [
        (Gpus::Of(vec![]), Some(Error::NoMembers)),
        (Gpus::Of(vec![0, 0]), Some(Error::RepeatedDevice { ordinal: 0 })),
        (Gpus::Of(vec![0, 1000]), Engine::gpu([0, 1000]).err()),
        (Gpus::All, Engine::gpu(Gpus::All).err()),
    ] {
        let engine = Engine::auto_with(costs(0.0), gpus.clone());
        assert!(engine.as_gpu_group().is_none(), "{gpus:?} have been started before there is work");
        let mut keys: Vec<u32> = (0..1000).rev().collect();
        let timing = engine.sort(&mut keys).unwrap();
        assert!(keys.is_sorted(), "{gpus:?}");
        let Some(reason) = reason else {
            assert!(timing.engine == EngineKind::Gpu && engine.as_gpu_group().is_some(), "{timing:?}");
            continue;
        };
        let Reason::NoGpu(found) = timing.reason else { panic!("{timing:?}") };
        assert_eq!((timing.engine, found), (EngineKind::Cpu, &reason));
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
        assert_eq!(Engine::gpu(ordinals).unwrap_err(), expected, "{ordinals:?}");
        assert_eq!(Engine::gpu(ordinals.to_vec()).unwrap_err(), expected, "{ordinals:?}");
        assert_eq!(merge_host::GpuGroup::new(ordinals).unwrap_err(), expected, "{ordinals:?}");
    }
}

#[cfg(feature = "gpu")]
#[test]
fn all_gpus_are_those_that_the_driver_shows() {
    let engine = Engine::gpu(Gpus::All);
    match devices() {
        Ok(devices) if !devices.is_empty() => {
            let engine = engine.unwrap();
            let group = engine.as_gpu_group().expect("the engine is of GPUs");
            assert!(group.gpus().map(|gpu| gpu.ordinal()).eq(devices.iter().map(|device| device.ordinal)));
            assert_eq!(engine.sort(&mut [1u32]).unwrap().engine, EngineKind::Gpu);
        }
        _ => assert!(matches!(engine.unwrap_err(), Error::NoDevice { .. })),
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
    assert_eq!(Engine::gpu(Gpus::All).unwrap_err(), Error::NoGpuSupport);
    for ordinals in [&[][..], &[0], &[0, 1], &[0, 0]] {
        assert_eq!(Engine::gpu(ordinals).unwrap_err(), Error::NoGpuSupport);
    }
    let engine = Engine::auto_with(CostModel::default(), Gpus::All);
    let mut keys = [3, 1, 2];
    let timing = engine.sort(&mut keys).unwrap();
    assert_eq!((timing.engine, keys), (EngineKind::Cpu, [1, 2, 3]));
    assert_eq!(timing.reason, Reason::NoGpu(&Error::NoGpuSupport));
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
            for error in [Engine::gpu(count), Engine::gpu([count])].map(Result::unwrap_err) {
                assert_eq!(error, Error::DeviceOrdinal { ordinal: count, count });
            }
        }
        Err(error) => {
            assert!(matches!(error, Error::NoDevice { .. }), "{error}");
            assert!(matches!(Engine::gpu(0).unwrap_err(), Error::NoDevice { .. }));
            assert!(matches!(Engine::gpu([0, 1]).unwrap_err(), Error::NoDevice { .. }));
        }
    }
}
