//! Samples, their median, and the rows of the output.

use std::time::Instant;

/// The time that the runs of a sample take together, in seconds.
const SAMPLE: f64 = 1e-3;

/// A sort or a merge to be timed.
pub struct Contender<'a> {
    name: &'static str,
    /// Runs once, and returns the time in seconds.
    run: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender that does `work` on the result of `prepare`. Only `work` is timed.
    ///
    /// # Panics
    /// Panics if `is_right` rejects the result of the first run.
    pub fn new<T>(
        name: &'static str,
        prepare: impl Fn() -> T + 'a,
        work: impl Fn(&mut T) + 'a,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Self {
        let mut data = prepare();
        work(&mut data);
        assert!(is_right(&data), "the result of {name} is wrong");
        Contender::timed(name, move || {
            let mut data = prepare();
            let start = Instant::now();
            work(&mut data);
            start.elapsed().as_secs_f64()
        })
    }

    /// A contender that times itself: `run` returns the seconds of one run.
    pub fn timed(name: &'static str, run: impl FnMut() -> f64 + 'a) -> Self {
        Contender { name, run: Box::new(run) }
    }

    /// The mean time of a run in seconds.
    fn sample(&mut self) -> f64 {
        let (mut time, mut runs) = (0.0, 0);
        while time < SAMPLE {
            time += (self.run)();
            runs += 1;
        }
        time / f64::from(runs)
    }
}

/// The time of a contender.
pub struct Time {
    pub contender: &'static str,
    pub ns_per_key: f64,
    /// The time divided by the time of the first contender, which is this library.
    pub ratio: f64,
}

/// The times of the contenders, which take turns. A run sorts `keys` keys.
pub fn times(mut contenders: Vec<Contender>, keys: usize, repeats: usize) -> Vec<Time> {
    let mut samples = vec![Vec::with_capacity(repeats); contenders.len()];
    for _ in 0..repeats {
        for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
            samples.push(contender.sample());
        }
    }
    let medians: Vec<f64> = samples.into_iter().map(median).collect();
    let time = |(contender, median): (&Contender, &f64)| Time {
        contender: contender.name,
        ns_per_key: median * 1e9 / keys as f64,
        ratio: median / medians[0],
    };
    contenders.iter().zip(&medians).map(time).collect()
}

/// The median, or the greater of the two middle samples.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// What the contenders of a table do.
#[derive(Clone)]
pub struct Work {
    pub task: String,
    pub dist: String,
    pub threads: usize,
    pub keys: usize,
}

impl Work {
    /// The first two lines of the table.
    pub const HEADER: &'static str = "\
        | task | distribution | threads | keys | contender | ns per key | ratio to merge-host |\n\
        | --- | --- | ---: | ---: | --- | ---: | ---: |";

    /// The first two lines of the table of [`Loss`]es.
    pub const LOSSES: &'static str = "\
        | task | distribution | threads | keys | merge-host, ns per key | best peer | ns per key | times slower |\n\
        | --- | --- | ---: | ---: | ---: | --- | ---: | ---: |";

    /// The row of a contender in a Markdown table.
    pub fn markdown(&self, Time { contender, ns_per_key, ratio }: &Time) -> String {
        let Work { task, dist, threads, keys } = self;
        format!("| {task} | {dist} | {threads} | {keys} | {contender} | {ns_per_key:.2} | {ratio:.2} |")
    }

    /// The row as a JSON object. No string in it needs an escape.
    pub fn json(&self, Time { contender, ns_per_key, ratio }: &Time) -> String {
        let Work { task, dist, threads, keys } = self;
        let work = format!(r#""task":"{task}","distribution":"{dist}","threads":{threads},"keys":{keys}"#);
        let result = format!(r#""contender":"{contender}","ns_per_key":{ns_per_key:.3},"ratio":{ratio:.3}"#);
        format!("{{{work},{result}}}")
    }
}

/// Work that a peer does in less time than this library.
pub struct Loss {
    /// The time of this library divided by the time of the best peer.
    pub factor: f64,
    /// The row of the table.
    pub row: String,
}

impl Loss {
    /// The loss, if the best of `times` is not the first.
    pub fn of(work: &Work, times: &[Time]) -> Option<Self> {
        let ours = times.first()?;
        let is_peer = |time: &&Time| time.contender != "copy" && !time.contender.starts_with("merge-host");
        let best = times.iter().filter(is_peer).min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let Work { task, dist, threads, keys } = work;
        let (factor, peer) = (1.0 / best.ratio, best.contender);
        let times = format!("{:.2} | {peer} | {:.2}", ours.ns_per_key, best.ns_per_key);
        let row = format!("| {task} | {dist} | {threads} | {keys} | {times} | {factor:.2} |");
        (factor > 1.0).then_some(Self { factor, row })
    }
}
