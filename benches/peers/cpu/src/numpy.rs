//! numpy in a process of Python.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Reads arrays of keys, the rows of a matrix, and writes them sorted, or the permutations that sort them. For each
/// line that it reads, it does the same again and prints the seconds.
const SCRIPT: &str = "
import sys, time
import numpy
dtype, n, arrays, task = numpy.dtype(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
given = numpy.frombuffer(sys.stdin.buffer.read(n * arrays * dtype.itemsize), dtype).reshape(arrays, n)
keys = numpy.empty_like(given)
keys[:] = given
if task == 'sort':
    keys.sort(axis=1)
    sys.stdout.buffer.write(keys)
    sys.stdout.buffer.flush()
for line in sys.stdin.buffer:
    keys[:] = given
    start = time.perf_counter()
    keys.sort(axis=1) if task == 'sort' else keys.argsort(axis=1)
    print(time.perf_counter() - start, flush=True)
";

/// The version of numpy, or the reason why numpy is not available.
pub fn version() -> Result<String, String> {
    let python = Command::new("python3").args(["-c", "import numpy; print(numpy.__version__)"]).output();
    let output = python.map_err(|error| format!("python3 does not start: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err("python3 has no module numpy".to_owned()),
    }
}

/// A process that sorts arrays of keys.
pub struct Numpy {
    python: Child,
    /// `None` only while the process ends.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Numpy {
    /// Starts the process with arrays of `n` keys of the given numpy type. `task` is `sort` or `argsort`.
    pub fn start(dtype: &str, keys: &[u8], (n, arrays): (usize, usize), task: &str) -> Self {
        let mut python = Command::new("python3");
        let counts = [n, arrays].map(|count| count.to_string());
        python.args(["-c", SCRIPT, dtype, &counts[0], &counts[1], task]).env("OMP_NUM_THREADS", "1");
        let mut python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 starts");
        let mut requests = python.stdin.take().expect("stdin is a pipe");
        let answers = BufReader::new(python.stdout.take().expect("stdout is a pipe"));
        requests.write_all(keys).expect("python3 reads the keys");
        Numpy { python, requests: Some(requests), answers }
    }

    /// The sorted keys, which the process writes once.
    pub fn read_sorted(&mut self, bytes: usize) -> Vec<u8> {
        let mut sorted = vec![0; bytes];
        self.answers.read_exact(&mut sorted).expect("numpy sorts");
        sorted
    }

    /// The time of one run in seconds.
    pub fn run(&mut self) -> f64 {
        let requests = self.requests.as_mut().expect("the process has not been told to end");
        requests.write_all(b"\n").expect("python3 reads the request");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("python3 answers");
        line.trim().parse().expect("the answer is a number")
    }
}

impl Drop for Numpy {
    /// Closes the pipe, which ends the process.
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.python.wait();
    }
}
