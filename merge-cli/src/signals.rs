//! Signals, and the temporary files that a run may have to remove when one arrives.
//!
//! A thread waits for signals, so that the file goes away whatever the other threads are busy with. Whoever creates,
//! renames or removes a temporary file holds the lock meanwhile, so that the thread sees either a file and its name
//! or neither.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sent where a file would grow beyond the limit that `ulimit -f` sets. The number is the same on every Linux that Rust
/// has a GPU for.
const SIGXFSZ: i32 = 25;

static TEMPORARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The names of the temporary files that there are, locked.
pub fn temporaries() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to handle signals.
pub fn install() -> io::Result<()> {
    // With a handler in place, the write that went too far fails with an error like any other.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;

    let mut fatal = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        fatal.push(SIGHUP);
    }
    let mut signals = signal_hook::iterator::Signals::new(fatal)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Never unlocked again: the other threads must not begin anything new.
            let temporaries = temporaries();
            for path in &*temporaries {
                let _ = std::fs::remove_file(path);
            }
            crate::progress::finish_soon();
            // Not `std::process::exit`, which would take the GPU's driver down under the threads that are using it.
            signal_hook::low_level::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Whether the program was started with that signal ignored, as nohup(1) does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
