//! numpy in a process of Python.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Reads the keys and writes them sorted. For each line that it reads, it sorts the keys again and prints the seconds.
const SCRIPT: &str = "
import sys, time
import numpy
dtype, n = numpy.dtype(sys.argv[1]), int(sys.argv[2])
given = numpy.frombuffer(sys.stdin.buffer.read(n * dtype.itemsize), dtype)
keys = numpy.empty_like(given)
keys[:] = given
keys.sort()
sys.stdout.buffer.write(keys)
sys.stdout.buffer.flush()
for line in sys.stdin.buffer:
    keys[:] = given
    start = time.perf_counter()
    keys.sort()
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

/// A process that sorts one array of keys.
pub struct Numpy {
    python: Child,
    /// `None` only while the process ends.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Numpy {
    /// Starts the process with keys of the given numpy type.
    pub fn start(dtype: &str, keys: &[u8], n: usize) -> Self {
        let mut python = Command::new("python3");
        python.args(["-c", SCRIPT, dtype, &n.to_string()]).env("OMP_NUM_THREADS", "1");
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

    /// The time of one sort in seconds.
    pub fn sort(&mut self) -> f64 {
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
