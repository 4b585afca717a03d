//! Signals that end the program, and the names of temporary files that it then removes.
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

/// How many times 10 ms to wait for other threads where there is no memory.
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

/// While this exists, no signal ends the program. A thread may hold several.
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

/// Has a signal that ends the program remove the file at `path` first.
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

/// Starts to handle signals. A signal that was ignored when the program started, as by nohup(1), stays ignored, and a
/// handler that is already installed, such as a profiler's, stays in place.
///
/// # Errors
/// If the system refuses a handler, or the thread that waits for signals.
pub fn install() -> Result<()> {
    let failure = |error: io::Error| Failure::new(format!("cannot handle signals: {}", os_message(&error)));
    // SIGXFSZ arrives where a file would exceed the limit of `ulimit -f`. With a handler, the write fails with an
    // error.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false))).map_err(failure)?;

    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let fatal: Vec<_> = FATAL.into_iter().chain(real_time).filter(|&signal| has_default_action(signal)).collect();
    // A signal that arrives between the installation of its handler and the entry in the table of what the handler
    // calls would be lost.
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
    // Never unlocked again, so that no other thread creates or renames a temporary file from here on.
    let state = NO_DELAY.wait_while(state(), |state| state.delays > 0).unwrap_or_else(PoisonError::into_inner);
    for path in &state.names {
        let _ = std::fs::remove_file(path);
    }
    crate::say::progress::finish_soon();
    // `std::process::exit` would unload the GPU's driver while other threads use it.
    signal_hook::low_level::exit(128 + signal)
}

/// Ends the program with this exit code, from where nothing can be allocated and any lock may be held. Another
/// thread that replaces outputs is waited for, but not for ever.
pub fn quit(code: i32) -> ! {
    for last in (0..PATIENCE).rev() {
        if let Ok(state) = STATE.try_lock()
            && (state.delays == 0 || last == 0)
        {
            // A path that is not short is copied, and if there is no memory for that, the program ends there.
            state.names.iter().for_each(|path| drop(std::fs::remove_file(path)));
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    signal_hook::low_level::exit(code)
}

/// The signals of this thread that were blocked before [`block`]. When it is dropped, they are the only ones again.
#[derive(Debug)]
#[must_use]
struct Blocked(libc::sigset_t);

/// Blocks signals of this thread. The system keeps those that arrive until the result is dropped.
fn block(signals: &[i32]) -> Blocked {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = set;
    // SAFETY: `sigemptyset` fills `set`, and `pthread_sigmask` fills `before`, so that both are initialized when they
    // are read. An unknown signal is an error without an effect.
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
        // SAFETY: The thread is this one, and lives.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), SIGUSR1) }, 0);
        assert!(!delivered.load(Ordering::SeqCst));
        drop(blocked);
        assert!(delivered.load(Ordering::SeqCst));
    }
}
