//! Signals that end the program, and the temporary files that it removes before that.
//!
//! A dedicated thread waits for signals, so that a signal is handled however busy the other threads are. It ends the
//! program only while no [`Delay`] exists. A thread holds one while it creates, renames or removes temporary files.

use super::threads::cannot_start;
use crate::say::error::{Failure, Result, os_message};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The signals that end a program by default and do not report a fault in it. The real-time signals join them.
const FATAL: [i32; 13] = [
    SIGALRM,
    SIGHUP,
    SIGINT,
    SIGIO,
    SIGPROF,
    libc::SIGPWR,
    SIGQUIT,
    libc::SIGSTKFLT,
    SIGTERM,
    SIGUSR1,
    SIGUSR2,
    SIGVTALRM,
    SIGXCPU,
];

/// How long to wait for other threads when there is no memory, in units of 10 ms.
const PATIENCE: u32 = 100;

static STATE: Mutex<State> = Mutex::new(State { delays: 0, names: Vec::new() });
/// Notified when `delays` becomes 0.
static NO_DELAY: Condvar = Condvar::new();

#[derive(Debug)]
struct State {
    /// The number of [`Delay`]s.
    delays: usize,
    /// The files to remove.
    names: Vec<PathBuf>,
}

/// While a `Delay` exists, no signal ends the program. A thread may hold several delays.
#[derive(Debug)]
#[must_use]
pub struct Delay(());

/// Delays every signal that would end the program until the result is dropped.
pub fn delay() -> Delay {
    state().delays += 1;
    Delay(())
}

impl Drop for Delay {
    fn drop(&mut self) {
        let mut state = state();
        state.delays -= 1;
        if state.delays == 0 {
            NO_DELAY.notify_one();
        }
    }
}

/// Registers the file at `path`: before a signal ends the program, the file is removed.
pub fn register(path: &Path) {
    state().names.push(path.to_owned());
}

/// Undoes [`register`].
pub fn unregister(path: &Path) {
    state().names.retain(|other| other != path);
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to handle signals. A signal that was ignored when the program started, as with nohup(1), stays ignored. A
/// handler that is already installed, such as a profiler's, stays in place. So the second call of a process starts no
/// thread.
///
/// # Errors
/// If the system refuses to install a handler or to start the thread that waits for signals.
pub fn install() -> Result<()> {
    let failure = |error: io::Error| Failure::new(format!("cannot handle signals: {}", os_message(&error)));
    // SIGXFSZ arrives where a file would exceed the limit of `ulimit -f`. With a handler, the write fails with an
    // error.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false))).map_err(failure)?;

    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let fatal: Vec<_> = FATAL.into_iter().chain(real_time).filter(|&signal| has_default_action(signal)).collect();
    if fatal.is_empty() {
        return Ok(());
    }
    // A signal would be lost if it arrived after its handler is installed and before the handler's table has its entry.
    let blocked = block(&fatal);
    let mut signals = signal_hook::iterator::Signals::new(&fatal).map_err(failure)?;
    drop(blocked);
    let waiting = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            end(signal);
        }
    });
    waiting.map(drop).map_err(|error| cannot_start(&error))
}

/// Removes the registered files and ends the program with the exit code that a shell reports for `signal`.
fn end(signal: i32) -> ! {
    // The lock is never released, so that from here on no other thread creates or renames a temporary file.
    let state = NO_DELAY.wait_while(state(), |state| state.delays > 0).unwrap_or_else(PoisonError::into_inner);
    for path in &state.names {
        let _ = std::fs::remove_file(path);
    }
    crate::say::progress::finish_soon();
    // `std::process::exit` would unload the GPU's driver while other threads use it.
    signal_hook::low_level::exit(128 + signal)
}

/// Ends the program with this exit code. The caller may hold any lock, and nothing can be allocated. Waits a limited
/// time for another thread that replaces outputs.
pub fn quit(code: i32) -> ! {
    for last in (0..PATIENCE).rev() {
        if let Ok(state) = STATE.try_lock()
            && (state.delays == 0 || last == 0)
        {
            // `remove_file` copies a long path to the heap. If there is no memory for the copy, the program ends in
            // this call.
            state.names.iter().for_each(|path| drop(std::fs::remove_file(path)));
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    signal_hook::low_level::exit(code)
}

/// The signals of this thread that were blocked before [`block`]. Dropping this restores them as the only blocked
/// signals.
#[derive(Debug)]
#[must_use]
pub(super) struct Blocked(libc::sigset_t);

/// Blocks all signals of this thread.
pub(super) fn block_all() -> Blocked {
    block(&(1..=libc::SIGRTMAX()).collect::<Vec<_>>())
}

/// Blocks signals of this thread. Signals that arrive are pending until the result is dropped.
fn block(signals: &[i32]) -> Blocked {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = set;
    // SAFETY: `sigemptyset` fills `set`, and `pthread_sigmask` fills `before`, so that both are initialized when they
    // are read. `sigaddset` refuses an unknown signal without an effect.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        signals.iter().for_each(|&signal| _ = libc::sigaddset(set.as_mut_ptr(), signal));
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
        Blocked(before.assume_init())
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: The set is initialized, and a null third argument returns nothing.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Whether `signal` would end the program now.
fn has_default_action(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: A null second argument changes nothing, and the third is valid for a write of one `sigaction`.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: A result of 0 says that the call has filled `action`.
    result == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_DFL
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_blocked_signal_is_delivered_later() {
        let delivered = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, delivered.clone()).unwrap();
        let blocked = block(&[SIGUSR1]);
        // SAFETY: `pthread_self` is the calling thread, which is alive.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), SIGUSR1) }, 0);
        assert!(!delivered.load(Ordering::SeqCst));
        drop(blocked);
        assert!(delivered.load(Ordering::SeqCst));
    }
}
