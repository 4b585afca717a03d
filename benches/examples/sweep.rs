//! All cases on a GPU, each checked once and then timed, as rows of JSON and a table. See `--help`.

use benches::{Case, Failure, Group, Place, Row, Rows, Times};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
sweep [OPTIONS]

Times merges, batches and sorts on data in the GPU's memory. Rows of JSON go to standard output and are added to a file; a
table follows, on standard error. A case that fails is a row with its error, and makes the exit code 1.

  --op TEXT         only cases with this in their name, such as 'sort' or 'merge_pairs u64+u32 2^28'
  --max-lg N        the binary logarithm of the most keys; 28 on a GPU and 24 on a CPU if not given
  --engine NAME     gpu (default) or cpu
  --peers FILE      rows of benches/peers/run, to compare with
  --rows FILE       where rows are added, instead of target/bench-rows.jsonl
  --no-check        does not check the results
  --list            names the cases, and does nothing
";

struct Options {
    op: String,
    max_lg: Option<u32>,
    engine: String,
    peers: Option<PathBuf>,
    rows: Option<PathBuf>,
    check: bool,
    list: bool,
}

impl Options {
    fn read() -> Result<Option<Self>, Failure> {
        let mut options = Self {
            op: String::new(),
            max_lg: std::env::var("GMERGE_BENCH_MAX_LG").ok().and_then(|lg| lg.parse().ok()),
            engine: "gpu".to_owned(),
            peers: None,
            rows: None,
            check: true,
            list: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} wants a value"));
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--op" => options.op = value()?,
                "--max-lg" => options.max_lg = Some(value()?.parse().map_err(|_| "--max-lg wants a number")?),
                "--engine" => options.engine = value()?,
                "--peers" => options.peers = Some(value()?.into()),
                "--rows" => options.rows = Some(value()?.into()),
                "--no-check" => options.check = false,
                "--list" => options.list = true,
                other => return Err(format!("there is no option {other}").into()),
            }
        }
        Ok(Some(options))
    }
}

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(failure) => {
            eprint!("sweep: {failure}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match sweep(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("sweep: {failed} failed");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("sweep: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all cases and returns how many failed.
fn sweep(options: &Options) -> Result<usize, Failure> {
    let peers = options.peers.as_deref().map_or(Ok(Vec::new()), Rows::read)?;
    let place = match options.engine.as_str() {
        "gpu" => Place::gpu().map_err(|failure| format!("nothing was measured: {failure}"))?,
        "cpu" => Place::cpu(),
        other => return Err(format!("there is no engine {other}").into()),
    };
    let scale = place.scale_up_to(options.max_lg);
    let cases = Group::ALL.iter().flat_map(|group| group.cases(&scale));
    let cases: Vec<Case> = cases.filter(|case| case.to_string().contains(&options.op)).collect();
    if options.list {
        cases.iter().for_each(|case| println!("{case}"));
        return Ok(0);
    }
    let mut file = Rows::open(options.rows.clone())?;
    let mut all = Vec::new();
    let start = std::time::Instant::now();
    for case in cases {
        // A panic is a failure of this case like any other.
        let rows = catch_unwind(AssertUnwindSafe(|| measure(&place, case, options.check)))
            .unwrap_or_else(|_| Err("a panic".into()))
            .unwrap_or_else(|failure| vec![place.failed(case, &failure.to_string())]);
        for row in rows {
            println!("{}", row.to_json());
            file.add(&row)?;
            all.push(row);
        }
    }
    table(&all, &peers);
    eprintln!("{}, {:.0} s", place.device(), start.elapsed().as_secs_f64());
    Ok(all.iter().filter(|row| row.error.is_some()).count())
}

/// Checks a case once, then times it.
fn measure(place: &Place, case: Case, check: bool) -> Result<Vec<Row>, Failure> {
    const WARM_UPS: usize = 3;
    const BUDGET: Duration = Duration::from_millis(400);
    let mut work = place.set_up(case)?;
    let mut once = work.time()?;
    let sum = if check { Some(work.verify()?) } else { None };
    for _ in 1..WARM_UPS {
        once = work.time()?;
    }
    let runs = (BUDGET.as_secs_f64() / once.as_secs_f64().max(1e-9)).clamp(5.0, 21.0) as usize;
    let runs = (0..runs).map(|_| work.time()).collect::<Result<Vec<_>, _>>()?;
    place.rows(case, Times::of(runs, case.bytes(), case.n), sum)
}

/// Prints all rows for a reader, each beside the fastest peer's for the same work.
fn table(rows: &[Row], peers: &[Row]) {
    eprintln!(
        "\n{:<13} {:<8} {:>11} {:<12} {:>5} {:<11} {:>10} {:>7} {:>8} {:>8}  fastest peer",
        "op", "type", "n", "keys", "d", "kernel", "ms", "GB/s", "Gkeys/s", "of copy"
    );
    for row in rows {
        let size = if row.n.is_power_of_two() { format!("2^{}", row.n.ilog2()) } else { row.n.to_string() };
        let d = row.d.map_or(String::new(), |d| d.to_string());
        eprint!("{:<13} {:<8} {size:>11} {:<12} {d:>5} ", row.op, row.key_type, row.dist);
        let Some(time) = row.time else {
            eprintln!("{:<11} FAILED: {}", row.kernel, row.error.as_deref().unwrap_or("no time"));
            continue;
        };
        let of_copy = time.of_copy.map_or(String::new(), |part| format!("{part:.3}"));
        let kernel = if row.op == "copy" { "" } else { &row.kernel };
        eprint!("{kernel:<11} {:>10.4} {:>7.1} {:>8.3} {of_copy:>8}  ", time.ms, time.gbs, time.gkeys);
        let same = peers.iter().filter(|peer| peer.engine != "gpu" && peer.is_of_same_work(row));
        let best = same.filter_map(|peer| Some((peer, peer.time?.ms))).min_by(|(_, x), (_, y)| x.total_cmp(y));
        match best {
            None => eprintln!(),
            Some((peer, ms)) => {
                let differs = row.sum.is_some() && peer.sum.is_some() && row.sum != peer.sum;
                let note = if differs { ", OF OTHER KEYS" } else { "" };
                eprintln!("{} {} {ms:.4} ms, {:.2} times as long{note}", peer.engine, peer.kernel, ms / time.ms);
            }
        }
    }
}
