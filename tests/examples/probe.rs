use merge_host::cust::event::{Event, EventFlags};
use merge_host::cust::memory::{AsyncCopyDestination, DeviceBuffer, DeviceCopy};
use merge_host::{Engine, Gpu, GpuKey, SortOrder};
use tests::distribution::Distribution;

fn job<K: GpuKey + DeviceCopy>(with: &str, lg: u32, dist: Distribution, check: bool, reps: usize) {
    let n = 1usize << lg;
    let gpu_engine = Engine::gpu(0).unwrap();
    let gpu = gpu_engine.as_gpu().unwrap();
    let stream = gpu.stream().unwrap();
    let keys: Vec<K> = dist.keys(n);
    let unsorted = gpu.upload(&keys).unwrap();
    let mut out: DeviceBuffer<K> = gpu.buffer(n).unwrap();
    let v4 = Distribution::Sorted.keys::<u32>(n);
    let mut v: DeviceBuffer<u32> = gpu.upload(&v4).unwrap();
    let unsorted_v: DeviceBuffer<u32> = gpu.upload(&v4).unwrap();
    let bytes = match with {
        "0" => Gpu::sort_workspace_bytes::<K>(n),
        "4" => Gpu::sort_pairs_workspace_bytes::<K, u32>(n),
        "a" => Gpu::argsort_workspace_bytes::<K, u32>(n),
        _ => panic!(),
    };
    let mut w = gpu.buffer::<u8>(bytes).unwrap();
    let (a, b) = (Event::new(EventFlags::DEFAULT).unwrap(), Event::new(EventFlags::DEFAULT).unwrap());
    let mut times = Vec::new();
    for _ in 0..reps {
        unsafe {
            unsorted.async_copy_to(&mut out, &stream).unwrap();
            unsorted_v.async_copy_to(&mut v, &stream).unwrap();
        }
        a.record(&stream).unwrap();
        match with {
            "0" => gpu.sort(&mut out, &mut w, &stream).unwrap(),
            "4" => gpu.sort_pairs(SortOrder::Ascending, &mut out, &mut v, &mut w, &stream).unwrap(),
            _ => gpu.argsort(SortOrder::Ascending, &mut out, &mut v, &mut w, &stream).unwrap(),
        }
        b.record(&stream).unwrap();
        stream.synchronize().unwrap();
        times.push(b.elapsed_time_f32(&a).unwrap());
    }
    let mut verdict = "";
    if check {
        let found: Vec<K> = gpu.download(&out).unwrap();
        let mut expected = keys.clone();
        let cpu = Engine::cpu();
        verdict = "ok";
        if with == "0" {
            cpu.sort(&mut expected).unwrap();
        } else {
            let mut values = v4;
            cpu.sort_pairs(SortOrder::Ascending, &mut expected, &mut values).unwrap();
            if gpu.download(&v).unwrap() != values {
                verdict = "WRONG VALUES";
            }
        }
        if bytemuck::cast_slice::<K, u8>(&found) != bytemuck::cast_slice::<K, u8>(&expected) {
            verdict = "WRONG";
        }
    }
    if times.len() > 2 {
        times.remove(0);
    }
    times.sort_by(f32::total_cmp);
    let t = times[times.len() / 2];
    println!(
        "{:4} with {with} 2^{lg:<2} {:14} {t:9.4} ms {:6.1} G/s {verdict}",
        <K as merge_host::Key>::NAME,
        dist.name(),
        n as f64 / t as f64 / 1e6
    );
}

fn main() {
    let (check, reps) = (std::env::var("NOCHECK").is_err(), std::env::var("REPS").map_or(7, |r| r.parse().unwrap()));
    for spec in std::env::args().skip(1) {
        let parts: Vec<&str> = spec.split('.').collect();
        let lg: u32 = parts[2].parse().unwrap();
        let all: Vec<Distribution> = Distribution::OF_INTEGERS.into_iter().chain(Distribution::OF_FLOATS).collect();
        let dist = all.into_iter().find(|d| d.name() == parts[3]).unwrap_or_else(|| panic!("{spec}"));
        match parts[0] {
            "u32" => job::<u32>(parts[1], lg, dist, check, reps),
            "u64" => job::<u64>(parts[1], lg, dist, check, reps),
            "f32" => job::<f32>(parts[1], lg, dist, check, reps),
            _ => job::<f64>(parts[1], lg, dist, check, reps),
        }
    }
}
