//! Merges many sorted runs into one: the logs of sensors, with times as keys and readings as values.
//!
//! ```sh
//! cargo run --release --example merge_runs
//! ```

use merge_host::{Engine, Error, first_unsorted};

const SENSORS: usize = 100;

/// A reading of a sensor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    sensor: usize,
    degrees: f32,
}

/// Merges the logs, and checks the result.
pub fn main() -> Result<(), Error> {
    let engine = Engine::auto();

    // Each log is ascending by time. Logs differ in length, and some are empty.
    let logs: Vec<(Vec<u64>, Vec<Reading>)> = (0..SENSORS).map(log).collect();
    let runs: Vec<(&[u64], &[Reading])> = logs.iter().map(|(times, readings)| (&times[..], &readings[..])).collect();

    // The length of the output is the sum of the lengths of the runs.
    let total = runs.iter().map(|(times, _)| times.len()).sum();
    let mut times = vec![0; total];
    let mut readings = vec![Reading { sensor: 0, degrees: 0.0 }; total];
    let timing = engine.merge_many(&runs, (&mut times, &mut readings))?;
    println!("engine: {} ({})", timing.engine, timing.reason);
    println!("{SENSORS} logs of {total} readings took {:?}", timing.compute);

    assert_eq!(first_unsorted(&times), None);
    // Readings with equal times are in the order of the runs, so in the order of the sensors.
    let together: Vec<_> = times.iter().zip(&readings).collect();
    assert!(together.windows(2).all(|pair| (pair[0].0, pair[0].1.sensor) <= (pair[1].0, pair[1].1.sensor)));
    // No reading is lost, and each has its time.
    for (sensor, (times, readings)) in logs.iter().enumerate() {
        let own = together.iter().filter(|(_, reading)| reading.sensor == sensor);
        assert!(own.copied().eq(times.iter().zip(readings)), "sensor {sensor}");
    }
    println!("from {:?} at {} to {:?} at {}", readings[0], times[0], readings[total - 1], times[total - 1]);

    // The same method merges keys alone.
    let runs: Vec<&[u64]> = runs.iter().map(|(times, _)| *times).collect();
    let mut alone = vec![0; total];
    engine.merge_many(&runs, &mut alone)?;
    assert_eq!(alone, times);
    Ok(())
}

/// The times and readings of a sensor.
fn log(sensor: usize) -> (Vec<u64>, Vec<Reading>) {
    let count = sensor % 7 * 700;
    let times = (0..count).map(|i| (i * (sensor % 11 + 3)) as u64).collect();
    let readings = (0..count).map(|i| Reading { sensor, degrees: 20.0 + (i % 10) as f32 }).collect();
    (times, readings)
}
