//! Which engine one gets.

use merge_host::{Engine, EngineKind, Error, devices, driver_version};

#[test]
fn engines_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Engine::cpu());
}

#[test]
fn the_cpu_engine_says_what_it_is() {
    let one = Engine::cpu_with_threads(1).unwrap();
    assert_eq!((one.kind(), one.why()), (EngineKind::Cpu, "1 CPU thread because that was asked for"));
    let five = Engine::cpu_with_threads(5).unwrap();
    assert_eq!((five.kind(), five.why()), (EngineKind::Cpu, "5 CPU threads because that was asked for"));
    assert!(Engine::cpu().why().ends_with("because the CPU was asked for"), "{:?}", Engine::cpu());
    assert_eq!((EngineKind::Cpu.to_string(), EngineKind::Gpu.to_string()), ("cpu".into(), "gpu".into()));
}

#[test]
fn auto_takes_the_gpu_exactly_if_there_is_one() {
    let engine = Engine::auto();
    match Engine::gpu(0) {
        Ok(gpu) => assert_eq!((engine.kind(), gpu.kind()), (EngineKind::Gpu, EngineKind::Gpu)),
        Err(error) => {
            assert_eq!(engine.kind(), EngineKind::Cpu);
            assert!(engine.why().ends_with(&error.to_string()), "{} does not give the reason {error}", engine.why());
        }
    }
}

#[cfg(not(feature = "gpu"))]
#[test]
fn a_build_without_the_gpu_engine_says_so() {
    assert_eq!(Engine::gpu(0).unwrap_err(), Error::NoGpuSupport);
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
            let error = Engine::gpu(count).unwrap_err();
            assert_eq!(error, Error::DeviceOrdinal { ordinal: count, count });
        }
        Err(error) => {
            assert!(matches!(error, Error::NoDevice { .. }), "{error}");
            assert!(matches!(Engine::gpu(0).unwrap_err(), Error::NoDevice { .. }));
        }
    }
}
