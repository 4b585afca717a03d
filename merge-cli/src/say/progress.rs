//! Progress on standard error: bytes, rate and remaining time.
//!
//! A thread that reads or writes adds the bytes of each block to a counter. Another thread reads the counter ten times
//! a second and draws the bar. If no progress is shown, there is no such thread. The work never waits for a terminal.
//!
//! ```text
//!   Input::open, Output::check_space ──expect──► EXPECTED ┐
//!   Input::read, Writer::write ────────add─────► DONE     ├──► thread ──► bar on standard error
//!   Stats::time ───────────────────────phase───► PHASE    ┘
//! ```

use crate::spec::When;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);
/// Drawings a second, at most.
const RATE: u8 = 10;
/// How long the end of the program waits for a terminal that accepts no output.
const PATIENCE: Duration = Duration::from_millis(200);

const TEMPLATE: &str = "{phase:<9} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                        {decimal_bytes_per_sec}, {eta} left";
/// The template for an unknown number of bytes.
const OPEN_TEMPLATE: &str = "{phase:<9} {decimal_bytes}, {decimal_bytes_per_sec}, {elapsed} so far";

static BAR: OnceLock<ProgressBar> = OnceLock::new();
static DONE: AtomicU64 = AtomicU64::new(0);
static EXPECTED: AtomicU64 = AtomicU64::new(0);
/// Whether the length of an input is unknown.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
static PHASE: Mutex<&str> = Mutex::new("");
/// Whether the bar was drawn on the last line of a standard error that is no terminal.
static IS_LINE_OPEN: AtomicBool = AtomicBool::new(false);

/// Starts to show progress, unless `when` is `never`. With `auto`, progress is shown if standard error is a terminal
/// and `quiet` is false.
pub fn start(when: When, quiet: bool) {
    let is_terminal = io::stderr().is_terminal();
    let (is_shown, delay) = match when {
        When::Never => (false, Duration::ZERO),
        // A short run needs no bar.
        When::Auto => (is_terminal && !quiet, 2 * INTERVAL),
        When::Always => (true, Duration::ZERO),
    };
    if !is_shown {
        return;
    }
    let target = match is_terminal {
        true => ProgressDrawTarget::stderr_with_hz(RATE),
        false => ProgressDrawTarget::term_like_with_hz(Box::new(NoTerminal::default()), RATE),
    };
    let bar = BAR.get_or_init(|| ProgressBar::with_draw_target(Some(0), target).with_style(style(TEMPLATE)));
    // If the system provides no thread, the work continues without the bar.
    let _ = thread::Builder::new().name("progress".to_owned()).spawn(move || {
        thread::sleep(delay);
        let mut is_open = false;
        while !bar.is_finished() {
            if IS_OPEN.load(Relaxed) && !is_open {
                is_open = true;
                bar.set_style(style(OPEN_TEMPLATE));
            }
            // Before any bytes are expected, there is nothing to draw.
            if is_open || EXPECTED.load(Relaxed) > 0 {
                draw(bar);
            }
            thread::sleep(INTERVAL);
        }
    });
}

/// Adds bytes that will be read or written. `None` means an unknown number.
pub fn expect(bytes: Option<u64>) {
    match bytes {
        Some(bytes) => drop(EXPECTED.fetch_add(bytes, Relaxed)),
        None => IS_OPEN.store(true, Relaxed),
    }
}

/// Adds bytes that were read or written.
pub fn add(bytes: usize) {
    DONE.fetch_add(bytes as u64, Relaxed);
}

/// The bytes that have been read and written, and those that are expected to be.
pub fn bytes() -> (u64, u64) {
    (DONE.load(Relaxed), EXPECTED.load(Relaxed))
}

/// Names the current phase.
pub fn phase(name: &'static str) {
    if BAR.get().is_some() {
        *PHASE.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }
}

/// Removes the bar permanently.
pub fn finish() {
    if let Some(bar) = BAR.get() {
        bar.finish_and_clear();
        end_line();
    }
}

/// As [`finish`], but with a limited wait if standard error accepts no output.
pub fn finish_soon() {
    if BAR.get().is_none() {
        return;
    }
    let (sender, receiver) = mpsc::channel();
    let spawned = thread::Builder::new().spawn(move || {
        finish();
        sender.send(())
    });
    if spawned.is_ok() {
        let _ = receiver.recv_timeout(PATIENCE);
    }
}

/// Hides the bar while `print` writes lines to standard error.
pub fn suspend(print: impl FnOnce()) {
    match BAR.get() {
        Some(bar) => bar.suspend(|| {
            end_line();
            print();
        }),
        None => print(),
    }
}

/// The bytes that move standard error from the bar to an empty line.
pub fn line_end() -> &'static [u8] {
    match BAR.get() {
        Some(_) if io::stderr().is_terminal() => b"\r\x1b[2K",
        Some(_) if IS_LINE_OPEN.load(Relaxed) => b"\n",
        _ => b"",
    }
}

/// Ends the line of the bar if standard error is not a terminal, so that the next message begins a new line.
fn end_line() {
    if IS_LINE_OPEN.swap(false, Relaxed) {
        let _ = io::stderr().write_all(b"\n");
    }
}

fn draw(bar: &ProgressBar) {
    bar.update(|state| {
        if !IS_OPEN.load(Relaxed) {
            state.set_len(EXPECTED.load(Relaxed));
        }
        state.set_pos(DONE.load(Relaxed));
    });
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the templates above are well formed");
    style.progress_chars("=> ").with_key("phase", |_: &ProgressState, text: &mut dyn fmt::Write| {
        let _ = text.write_str(&PHASE.lock().unwrap_or_else(PoisonError::into_inner));
    })
}

/// Standard error as a file or a pipe, with `--progress always`. A drawing is collected and written at once.
#[derive(Debug, Default)]
struct NoTerminal(Mutex<String>);

impl NoTerminal {
    fn push(&self, text: fmt::Arguments) -> io::Result<()> {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_fmt(text);
        Ok(())
    }
}

impl TermLike for NoTerminal {
    fn width(&self) -> u16 {
        100
    }
    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.push(format_args!("\x1b[{n}A")) } else { Ok(()) }
    }
    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.push(format_args!("\x1b[{n}B")) } else { Ok(()) }
    }
    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.push(format_args!("\x1b[{n}C")) } else { Ok(()) }
    }
    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.push(format_args!("\x1b[{n}D")) } else { Ok(()) }
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.push(format_args!("{text}\n"))
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        IS_LINE_OPEN.fetch_or(!text.trim().is_empty(), Relaxed);
        self.push(format_args!("{text}"))
    }
    fn clear_line(&self) -> io::Result<()> {
        self.push(format_args!("\r\x1b[2K"))
    }
    fn flush(&self) -> io::Result<()> {
        let text = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        io::stderr().write_all(text.as_bytes())
    }
}
