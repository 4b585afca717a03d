//! A folder to run in, a run and what it left, and keys with the standard library's order as the oracle.

#[path = "../../../tests/src/cases.rs"]
pub mod cases;

use bytemuck::Pod;
use merge_host::f16;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The program under test.
pub const GMERGE: &str = env!("CARGO_BIN_EXE_gmerge");

/// How long a run may take before it is killed.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Sizes that often reveal mistakes.
pub const SIZES: [usize; 4] = [0, 1, 1000, 100_003];

/// The sizes to test an engine with. A program takes long to start a GPU, so that there are fewer sizes for GPUs.
pub fn sizes(engine: &str) -> &'static [usize] {
    if engine == "cpu" { &SIZES } else { &[0, 100_003] }
}

/// The GPUs of this machine, as `gmerge info` shows them.
fn devices() -> &'static str {
    static DEVICES: OnceLock<String> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let run = Folder::new().run("info");
        let info = std::str::from_utf8(run.stdout()).unwrap();
        info.lines().find(|line| line.starts_with("devices")).unwrap().to_owned()
    })
}

/// The engines of this machine, as values of `--engine`.
pub fn engines() -> &'static [&'static str] {
    if devices().split_whitespace().nth(1) == Some("none") { &["cpu"] } else { &["cpu", "gpu"] }
}

/// Whether the GPUs are emulated, and take seconds for a million keys.
pub fn gpus_are_emulated() -> bool {
    devices().contains("Emulated GPU")
}

/// The engine for keys of type `K`: `engine`, or `auto` in place of the GPU if no GPU supports the type.
pub fn engine_for<K: TestKey>(engine: &str) -> &str {
    if engine == "gpu" && !K::ON_GPU { "auto" } else { engine }
}

/// A new, empty folder. Dropping it removes it and its contents.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write<K: Pod>(&self, name: &str, keys: &[K]) {
        fs::write(self.path(name), bytemuck::cast_slice(keys)).unwrap();
    }

    pub fn read<K: Pod>(&self, name: &str) -> Vec<K> {
        bytemuck::pod_collect_to_vec(&fs::read(self.path(name)).unwrap())
    }

    /// The names of all files, hidden ones too.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A command in this folder, with nothing on standard input. It handles signals like a child of a shell, even if
    /// the tests run under nohup(1).
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        static BEFORE_THE_FIRST: Once = Once::new();
        BEFORE_THE_FIRST.call_once(handle_ignored_signals);
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.0.path()).stdin(Stdio::null()).process_group(0);
        // A user with this variable must not see a backtrace either.
        command.env("RUST_BACKTRACE", "1");
        command
    }

    /// Runs `gmerge` with these arguments, which are separated by spaces.
    pub fn run(&self, arguments: &str) -> Run {
        Run::of(self.command(GMERGE).args(arguments.split_whitespace()))
    }

    /// Runs a shell script. In it, `gmerge` is the program under test.
    pub fn shell(&self, script: &str) -> Run {
        let script = format!("gmerge() {{ {GMERGE} \"$@\"; }}\n{script}");
        Run::of(self.command("sh").args(["-c", &script]))
    }

    /// Runs `gmerge` with these arguments, and `input` on standard input.
    pub fn run_with_input(&self, arguments: &str, input: &[u8]) -> Run {
        let mut command = self.command(GMERGE);
        command.args(arguments.split_whitespace()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        thread::scope(|scope| {
            // A program may end without reading the whole input, so that writing fails.
            scope.spawn(move || pipe.write_all(input));
            Run::until_end(arguments.to_owned(), child)
        })
    }
}

/// What a run that fails must leave as it was: the name, inode, length and time of change of each file.
type State = Vec<(String, [u64; 2], SystemTime)>;

impl Folder {
    fn state(&self) -> State {
        let state = |name: String| {
            let metadata = fs::symlink_metadata(self.path(&name)).unwrap();
            (name, [metadata.ino(), metadata.len()], metadata.modified().unwrap())
        };
        self.files().into_iter().map(state).collect()
    }

    /// Checks that `gmerge` with these arguments ends with an error, with all `parts` in its line, and changes no file.
    #[track_caller]
    pub fn refuses(&self, arguments: &str, parts: &[&str]) {
        let before = self.state();
        self.run(arguments).fails(2, parts);
        assert_eq!(self.state(), before, "{arguments}");
    }

    /// As [`refuses`](Self::refuses), with `input` on standard input.
    #[track_caller]
    pub fn refuses_input(&self, arguments: &str, input: &[u8], parts: &[&str]) {
        let before = self.state();
        self.run_with_input(arguments, input).fails(2, parts);
        assert_eq!(self.state(), before, "{arguments}");
    }
}

/// Runs `command` with `input` on standard input. Calls `meanwhile` when the program has read a part of the input and
/// cannot have read all of it.
pub fn run_interrupted(command: &mut Command, input: &[u8], meanwhile: impl FnOnce()) -> Run {
    assert!(input.len() > 1 << 20, "a pipe may hold all of the input");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input).unwrap();
    meanwhile();
    drop(pipe);
    Run::until_end(format!("{command:?}"), child)
}

/// Runs `command` with `input` on a standard input that does not end.
pub fn run_without_end(command: &mut Command, input: &[u8]) -> Run {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // The program may have ended already.
    let _ = pipe.write_all(input);
    Run::until_end(format!("{command:?}"), child)
}

/// Starts a command. The caller waits for it. After some minutes, the command is killed.
pub fn spawn(command: &mut Command) -> Child {
    let child = command.spawn().unwrap();
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
    thread::spawn(move || {
        thread::sleep(2 * LIMIT);
        // This fails if the command has ended.
        let _ = pidfd_send_signal(process, Signal::KILL);
    });
    child
}

/// Installs a handler without an effect for each signal that this process ignores. Children inherit ignored signals,
/// for example under nohup(1) or in the background of a shell, but no handlers. Resetting signals in each child instead
/// would need code between fork(2) and exec(2). With such code, a child takes far longer to start.
fn handle_ignored_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    // Rust programs ignore PIPE, but their children do not.
    for signal in (1..32).filter(|&signal| ignored >> (signal - 1) & 1 == 1 && signal != libc::SIGPIPE) {
        signal_hook::flag::register(signal, Arc::default()).unwrap();
    }
}

/// A run that ended.
pub struct Run {
    pub what: String,
    pub output: Output,
}

impl Run {
    pub fn of(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self::until_end(format!("{command:?}"), child)
    }

    /// Waits until `child` has ended. Fails and kills its process group after [`LIMIT`].
    #[track_caller]
    pub fn until_end(what: String, child: Child) -> Self {
        let group = Pid::from_child(&child);
        let (ended, end) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            let is_late = end.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout);
            if is_late {
                let _ = kill_process_group(group, Signal::KILL);
            }
            is_late
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        assert!(!watchdog.join().unwrap(), "{what}: killed after {LIMIT:?}");
        Self { what, output }
    }

    /// The bytes on standard output.
    pub fn stdout(&self) -> &[u8] {
        &self.output.stdout
    }

    /// The text on standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }

    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// Checks that the run succeeded and printed nothing on standard error.
    #[track_caller]
    pub fn succeeds(&self) {
        assert_eq!((self.code(), &*self.stderr()), (Some(0), ""), "{}", self.what);
    }

    /// Checks that the run ended with this code, and with one line on standard error that contains all `parts`.
    #[track_caller]
    pub fn fails(&self, code: i32, parts: &[&str]) {
        let stderr = self.stderr();
        assert_eq!(self.code(), Some(code), "{}: {stderr}", self.what);
        assert_eq!(stderr.lines().count(), 1, "{}: {stderr}", self.what);
        assert!(stderr.starts_with("gmerge: "), "{}: {stderr}", self.what);
        for part in parts {
            assert!(stderr.contains(part), "{}: no {part:?} in: {stderr}", self.what);
        }
        assert!(!stderr.contains("internal error") && !stderr.contains("os error"), "{}: {stderr}", self.what);
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited a minute until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Picks a third of the cases at random, or all cases with `GMERGE_TESTS=all`.
pub fn tried<T>(cases: impl IntoIterator<Item = T>) -> Vec<T> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut random = Random(seed() + CALLS.fetch_add(1, Relaxed));
    cases::tried(cases, |end| random.below(end))
}

/// The seed of all random numbers.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| match std::env::var("GMERGE_TEST_SEED") {
        Ok(seed) => seed.parse().expect("GMERGE_TEST_SEED is a number"),
        Err(_) => std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 % 1_000_000,
    })
}

/// A generator of random bits, which prints its seed.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        let seed = seed();
        println!("GMERGE_TEST_SEED={seed}");
        Self(seed)
    }

    /// A generator with this seed.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    pub fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Keys of all bit patterns, NaNs of both signs and infinities included, with many duplicates among them.
    pub fn keys<K: TestKey>(&mut self, count: usize) -> Vec<K> {
        let mut keys: Vec<K> =
            (0..count).map(|_| K::from_bits(u128::from(self.next()) << 64 | u128::from(self.next()))).collect();
        for i in 0..count {
            match self.next() % 4 {
                0 => keys[i] = keys[self.next() as usize % count],
                1 => keys[i] = K::SPECIAL[self.next() as usize % K::SPECIAL.len()],
                _ => {}
            }
        }
        keys
    }

    pub fn sorted<K: TestKey>(&mut self, count: usize) -> Vec<K> {
        sorted(&self.keys(count))
    }
}

/// A type of keys, with the standard library's order.
pub trait TestKey: Pod + Debug {
    const NAME: &'static str;
    const SPECIAL: &'static [Self];
    /// Whether there are GPU kernels for the type.
    const ON_GPU: bool = size_of::<Self>() <= 8;
    /// The key with the low bits of `bits`.
    fn from_bits(bits: u128) -> Self;
    fn total_order(&self, other: &Self) -> Ordering;
    fn is_nan(&self) -> bool {
        false
    }

    /// The program's order by `--nan` and `--reverse`.
    fn order_by(&self, other: &Self, nans: &str, reverse: bool) -> Ordering {
        let is_negative = |key: &Self| key.total_order(&Self::from_bits(0)).is_lt();
        let moved = nans != "total" && self.is_nan() && other.is_nan();
        let signs = if moved { is_negative(self).cmp(&is_negative(other)) } else { Ordering::Equal };
        let order = signs.then(self.total_order(other));
        let order = if reverse { order.reverse() } else { order };
        match nans {
            "last" => self.is_nan().cmp(&other.is_nan()).then(order),
            "first" => other.is_nan().cmp(&self.is_nan()).then(order),
            _ => order,
        }
    }

    /// The program's order without flags.
    fn order(&self, other: &Self) -> Ordering {
        self.order_by(other, "last", false)
    }
}

macro_rules! integer_test_key {
    ($($t:ident)*) => {$(
        impl TestKey for $t {
            const NAME: &'static str = stringify!($t);
            const SPECIAL: &'static [Self] = &[0, 1, Self::MIN, Self::MAX];
            fn from_bits(bits: u128) -> Self {
                bits as Self
            }
            fn total_order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        }
    )*};
}
integer_test_key!(u8 i8 u16 i16 u32 i32 u64 i64 u128);

macro_rules! float_test_key {
    ($($t:ident as $bits:ident;)*) => {$(
        impl TestKey for $t {
            const NAME: &'static str = stringify!($t);
            const SPECIAL: &'static [Self] = &[
                Self::from_bits(0),
                Self::from_bits(1 << ($bits::BITS - 1)),
                Self::NAN,
                Self::from_bits(Self::NAN.to_bits() | 1 << ($bits::BITS - 1)),
                Self::INFINITY,
                Self::NEG_INFINITY,
                Self::MIN_POSITIVE,
                Self::MAX,
            ];
            fn from_bits(bits: u128) -> Self {
                Self::from_bits(bits as $bits)
            }
            fn total_order(&self, other: &Self) -> Ordering {
                self.total_cmp(other)
            }
            fn is_nan(&self) -> bool {
                (*self).is_nan()
            }
        }
    )*};
}
float_test_key!(f16 as u16; f32 as u32; f64 as u64;);

/// The permutation that sorts `keys` in ascending or descending order with NaNs last.
pub fn sorted_places<K: TestKey>(keys: &[K], reverse: bool) -> Vec<usize> {
    sorted_places_by(keys, "last", reverse)
}

/// The permutation that sorts `keys` as `--nan` and `--reverse` do, by the standard library's stable sort. All types
/// share one instance of the sort, which compiles much faster than one instance for each type.
pub fn sorted_places_by<K: TestKey>(keys: &[K], nans: &str, reverse: bool) -> Vec<usize> {
    fn sort(places: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
        places.sort_by(|&x, &y| compare(x, y));
    }
    let mut places: Vec<usize> = (0..keys.len()).collect();
    sort(&mut places, &|x, y| keys[x].order_by(&keys[y], nans, reverse));
    places
}

/// The elements of `from` at the indices `places`.
pub fn gathered<T: Copy>(from: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| from[place]).collect()
}

/// The keys in ascending order.
pub fn sorted<K: TestKey>(keys: &[K]) -> Vec<K> {
    gathered(keys, &sorted_places(keys, false))
}

/// The keys in descending order.
pub fn descending<K: TestKey>(keys: &[K]) -> Vec<K> {
    gathered(keys, &sorted_places(keys, true))
}

/// Values of `width` bytes, one for each number. Values of neighbouring numbers differ.
pub fn values(numbers: impl IntoIterator<Item = usize>, width: usize) -> Vec<u8> {
    let value = |i: usize| (0..width).map(move |byte| (i >> (8 * (byte % 8))) as u8 ^ byte as u8);
    numbers.into_iter().flat_map(value).collect()
}

/// The .npy file of an array in C order, as NumPy writes it.
pub fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    padded_npy(text, &shape[1..], bytes)
}

/// The .npy file of an array in Fortran order, as NumPy writes it.
pub fn fortran_npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': True, 'shape': {shape}, }}");
    padded_npy(text, shape.rsplit(' ').next().unwrap(), bytes)
}

/// NumPy leaves space for 21 digits of the length that grows, with which `growing` begins.
fn padded_npy(text: String, growing: &str, bytes: &[u8]) -> Vec<u8> {
    let digits = growing.bytes().take_while(u8::is_ascii_digit).count();
    let length = (10 + text.len() + 21 - digits + 1).next_multiple_of(64) - 10;
    [&npy_header(1, &format!("{text:<width$}\n", width = length - 1)), bytes].concat()
}

/// A header of version `major` around this text.
pub fn npy_header(major: u8, text: &str) -> Vec<u8> {
    let length = (text.len() as u32).to_le_bytes();
    [b"\x93NUMPY", &[major, 0][..], &length[..if major == 1 { 2 } else { 4 }], text.as_bytes()].concat()
}

/// Runs `$body` for each type of keys that is tried, as `$K`.
macro_rules! for_each_type {
    ($K:ident => $body:expr) => {{
        let (tried, mut number) = ($crate::common::tried(0..12), 0..);
        macro_rules! case {
            ($t:ty) => {
                if number.next().is_some_and(|number| tried.contains(&number)) {
                    type $K = $t;
                    $body
                }
            };
        }
        case!(u8);
        case!(i8);
        case!(u16);
        case!(i16);
        case!(merge_host::f16);
        case!(u32);
        case!(i32);
        case!(f32);
        case!(u64);
        case!(i64);
        case!(f64);
        case!(u128);
    }};
}
pub(crate) use for_each_type;

/// Checks that all bits are equal, also of NaNs.
#[track_caller]
pub fn assert_same<K: TestKey>(found: &[K], expected: &[K], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let bytes = |key: &K| bytemuck::bytes_of(key).to_vec();
    let place = found.iter().zip(expected).position(|(x, y)| bytes(x) != bytes(y));
    if let Some(i) = place {
        panic!("{what}: key {i} is {:?}, expected {:?}", found[i], expected[i]);
    }
}

/// Ends a test that this machine does not support. Such tests are ignored by default: `.ci/run` runs them, and lists
/// those that end here.
#[track_caller]
pub fn cannot_run(reason: impl std::fmt::Display) -> ! {
    panic!("cannot run here: {reason}")
}
