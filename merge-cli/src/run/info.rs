//! `gmerge info`

use crate::os::standard::print;
use crate::say::Result;
use merge_host::{CostModel, Work};

pub fn run() -> Result<()> {
    print(text()?.as_bytes())
}

fn text() -> Result<String> {
    let driver = match merge_host::driver_version() {
        Ok((major, minor)) => format!("for CUDA up to {major}.{minor}"),
        Err(error) => format!("none ({error})"),
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let mut text = String::new();
    let mut row = |title: &str, lines: Vec<String>| {
        for (i, line) in lines.into_iter().enumerate() {
            let title = if i == 0 { title } else { "" };
            text += &format!("{title:<16}{line}\n");
        }
    };
    row("gmerge", vec![env!("CARGO_PKG_VERSION").to_owned()]);
    row("devices", devices());
    row("driver", vec![driver]);
    row("kernel modules", kernel_modules());
    row("CPU threads", vec![threads.to_string()]);
    row("engine auto", auto(threads)?);
    Ok(text)
}

/// The choice of `--engine auto`: the numbers of keys from which on a GPU takes less time than the CPU, if there is a
/// GPU.
fn auto(threads: usize) -> Result<Vec<String>> {
    match merge_host::devices() {
        Ok(devices) if !devices.is_empty() => {}
        Ok(_) => return Ok(vec!["cpu, because there is no GPU".to_owned()]),
        Err(error) => return Ok(vec![format!("cpu, because there is no GPU that can be used: {error}")]),
    }
    let costs = CostModel::of_environment()?;
    let line = |what: &str, work: &dyn Fn(usize) -> Work| {
        let is_faster = |keys: &usize| costs.on_gpu(&work(*keys), false) < costs.on_cpu(&work(*keys), threads);
        // Steps of 1/8 are as precise as the model.
        let mut numbers =
            std::iter::successors(Some(1000), |keys| Some(keys + keys / 8)).take_while(|keys| *keys < 1 << 40);
        match numbers.find(is_faster) {
            Some(keys) => format!("gpu from about {:.2e} keys on: {what}", keys as f64),
            None => format!("cpu: {what}"),
        }
    };
    Ok(vec![
        line("sort of u32, from file to file", &|keys| Work::sort::<u32>(keys).from_files()),
        line("sort of u64, from file to file", &|keys| Work::sort::<u64>(keys).from_files()),
        line("sort of u32 with values of 8 bytes", &|keys| Work::sort::<u32>(keys).with_values(8)),
        line("sort of segments of 100 u32", &|keys| Work::sort_segments::<u32>(keys, keys / 100)),
        line("merge of u32", &Work::merge::<u32>),
        line("set operation on u32", &Work::set_operation::<u32>),
        line("first keys of u32", &Work::top_k::<u32>),
    ])
}

/// A line for each GPU.
fn devices() -> Vec<String> {
    let devices = match merge_host::devices() {
        Ok(devices) if devices.is_empty() => return vec!["none".to_owned()],
        Ok(devices) => devices,
        Err(error) => return vec![format!("none ({error})")],
    };
    let line = |device: &merge_host::DeviceInfo| {
        let (major, minor) = device.compute_capability;
        let free = device.free_bytes.map(|free| format!(", {:.1} free", gibibytes(free))).unwrap_or_default();
        let (ordinal, name, count) = (device.ordinal, &device.name, device.multiprocessors);
        let memory = gibibytes(device.memory_bytes);
        format!("{ordinal}: {name}, {memory:.1} GiB{free}, {count} multiprocessors, compute capability {major}.{minor}")
    };
    devices.iter().map(line).collect()
}

fn gibibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// A line for each family of compiled kernels that this build carries, with the types that it is compiled for.
#[cfg(feature = "gpu")]
fn kernel_modules() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = "";
    for module in merge_host::kernel_modules() {
        // A module is named `family_type`.
        let (family, key_type) = module.rsplit_once('_').unwrap_or((module, ""));
        match lines.last_mut() {
            Some(line) if family == last => *line += &format!(" {key_type}"),
            _ => lines.push(format!("{family}: {key_type}")),
        }
        last = family;
    }
    if lines.is_empty() { vec!["none (this build found no compiled kernels)".to_owned()] } else { lines }
}

#[cfg(not(feature = "gpu"))]
fn kernel_modules() -> Vec<String> {
    vec!["none (this build has no GPU engine)".to_owned()]
}
