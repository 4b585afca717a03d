//! Cases through Criterion.

use crate::input::Distribution;
use crate::{Case, Failure, Group, Op, Place, Rows, Times, Type};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use merge_host::BatchKernel;
use std::time::Duration;

/// Fewer samples than that are no measurement, but a test whether the case runs.
const ENOUGH_SAMPLES: usize = 5;

/// Measures the cases of a group on the CPU engine and, where there is one, on a GPU.
pub fn bench(criterion: &mut Criterion, group: Group) {
    let mut rows = Rows::open(None).expect("rows can be written");
    let gpu = Place::gpu().inspect_err(|failure| eprintln!("rows of the CPU only: {failure}"));
    for place in [Ok(Place::cpu()), gpu].into_iter().flatten() {
        let mut measured = criterion.benchmark_group(format!("{}-{}", group.name(), place.name()));
        // There are many cases, and the work is much the same in each run.
        measured.sample_size(10).nresamples(1000).sampling_mode(SamplingMode::Flat);
        measured.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
        for case in group.cases(&place.scale()) {
            bench_case(&mut measured, &place, case, &mut rows).expect("rows can be written");
        }
    }
}

fn id(case: Case) -> BenchmarkId {
    let key = case.key.name();
    let function = match (case.op, case.value.map(Type::name)) {
        (_, Some(value)) => format!("{key}/values-{value}"),
        (Op::Merge(kernel), _) => format!("{key}/{}/{kernel}", case.distribution.name()),
        (Op::Batch { kernel: BatchKernel::Small, .. }, _) => format!("{key}/one-thread-a-key"),
        (Op::Batch { .. } | Op::Ragged, _) => key.to_owned(),
        (Op::Sort, _) if case.distribution == Distribution::Uniform => key.to_owned(),
        (Op::Sort, _) => format!("{key}/{}", case.distribution.name()),
    };
    BenchmarkId::new(function, if case.op == Op::Ragged { "ragged".to_owned() } else { case.parameter() })
}

fn bench_case(
    group: &mut BenchmarkGroup<'_, WallTime>,
    place: &Place,
    case: Case,
    rows: &mut Rows,
) -> Result<(), Failure> {
    group.throughput(match case.op {
        Op::Sort => Throughput::Elements(case.n as u64),
        _ => Throughput::Bytes(case.bytes() as u64),
    });
    // Only if Criterion wants the case, which depends on the command line.
    let mut work = None;
    let mut samples = Vec::new();
    group.bench_function(id(case), |bencher| {
        let work = work.get_or_insert_with(|| place.set_up(case).expect("the inputs fit into memory"));
        bencher.iter_custom(|runs| {
            let mut total = Duration::ZERO;
            for _ in 0..runs {
                let run = work.time().expect("the engine works");
                samples.push(run);
                total += run;
            }
            total
        });
    });
    if samples.len() < ENOUGH_SAMPLES {
        return Ok(());
    }
    for row in place.rows(case, Times::of(samples, case.bytes(), case.n), None)? {
        rows.add(&row)?;
        if let Some(of_copy) = row.time.and_then(|time| time.of_copy).filter(|_| row.op != "copy") {
            println!("{:>24}of copy: {of_copy:.3}", "");
        }
    }
    Ok(())
}
