//! Runs a program under ptrace(2), and shows its system calls on files of one folder to a test, which may let one fail.
//! The calls of libraries are seen, too.

use super::calls::{self, Kind};
use crate::common::{LIMIT, Run};
use nix::errno::Errno;
use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Instant;

/// What happens to a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call does nothing, and returns this error.
    Error(Errno),
    /// A read or a write is for one byte only, or a vectored one for its first part only.
    OneByte,
    /// A read or a write is for half of its bytes.
    Half,
    /// The program is killed before the call.
    Kill,
}

/// A system call on a file of the folder.
#[derive(Debug)]
pub struct Call {
    pub kind: &'static Kind,
    /// The file: a path that the call has, or the path of its descriptor.
    pub path: PathBuf,
    /// The open file, for calls that have a descriptor.
    pub open: Option<PathBuf>,
}

/// What a test sees and does while a program runs.
pub trait Watch {
    /// A call begins. It is the call with this number, from 0.
    fn begins(&mut self, _number: usize, _call: &Call) -> Option<Fault> {
        None
    }

    /// A call has ended with success.
    fn succeeds(&mut self, _call: &Call) {}
}

/// A thread of the program between the begin and the end of a system call.
struct Inside {
    call: Option<Call>,
    /// The error to return.
    error: Option<Errno>,
}

struct Tracer<'a> {
    program: Pid,
    folder: &'a Path,
    inside: HashMap<Pid, Inside>,
    calls: usize,
}

/// Runs `command` in `folder`, with nothing on standard input. Its standard output and standard error are files beside
/// the folder. Fails and kills it after [`LIMIT`].
pub fn run(command: &mut Command, folder: &Path, watch: &mut dyn Watch) -> Run {
    let what = format!("{command:?}");
    let paths = ["stdout", "stderr"].map(|name| folder.with_extension(name));
    let [out, errors] = paths.each_ref().map(|path| File::create(path).unwrap());
    command.stdin(Stdio::null()).stdout(out).stderr(errors);
    #[expect(clippy::zombie_processes, reason = "`until_end` waits for it as a tracer does")]
    // SAFETY: between fork(2) and execve(2) the child calls only ptrace(2), which is safe there.
    let child = unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) }.spawn().unwrap();
    let mut tracer = Tracer { program: Pid::from_raw(child.id() as i32), folder, inside: HashMap::new(), calls: 0 };
    let status = tracer.until_end(watch);
    let [stdout, stderr] = paths.map(|path| {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        bytes
    });
    let status = status.unwrap_or_else(|| panic!("{what}: killed after {LIMIT:?}"));
    Run { what, output: Output { status, stdout, stderr } }
}

impl Tracer<'_> {
    /// Follows the program until it has ended. Returns how it ended, or `None` if it took too long.
    fn until_end(&mut self, watch: &mut dyn Watch) -> Option<ExitStatus> {
        let begin = Instant::now();
        // Other tests of this process have children of their own.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        assert!(matches!(waitpid(self.program, Some(flags)), Ok(WaitStatus::Stopped(_, Signal::SIGTRAP))));
        let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(self.program, options).unwrap();
        go_on(self.program, None);
        let mut is_late = false;
        // The status of a process as wait(2) has it.
        let status = loop {
            match waitpid(None, Some(flags)).unwrap() {
                WaitStatus::Exited(ended, code) if ended == self.program => break code << 8,
                WaitStatus::Signaled(ended, signal, _) if ended == self.program => break signal as i32,
                WaitStatus::PtraceSyscall(thread) => {
                    self.stops_at_call(thread, watch);
                    go_on(thread, None);
                }
                // A new thread begins with this signal, which is not for it.
                WaitStatus::Stopped(thread, Signal::SIGSTOP) => go_on(thread, None),
                WaitStatus::Stopped(thread, signal) => go_on(thread, Some(signal)),
                WaitStatus::PtraceEvent(thread, ..) => go_on(thread, None),
                WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) => _ = self.inside.remove(&thread),
                other => panic!("{other:?}"),
            }
            if !is_late && begin.elapsed() > LIMIT {
                is_late = true;
                self.kill();
            }
        };
        (!is_late).then(|| ExitStatus::from_raw(status))
    }

    fn kill(&self) {
        // This fails if the program has ended.
        let _ = kill(self.program, Signal::SIGKILL);
    }

    /// A thread stops at the begin or at the end of a system call.
    fn stops_at_call(&mut self, thread: Pid, watch: &mut dyn Watch) {
        // This fails if the program has been killed meanwhile.
        let Ok(mut registers) = ptrace::getregs(thread) else { return };
        if let Some(inside) = self.inside.remove(&thread) {
            if let Some(error) = inside.error {
                registers.rax = -(error as i64) as u64;
                let _ = ptrace::setregs(thread, registers);
            } else if let Some(call) = inside.call.filter(|_| registers.rax as i64 >= 0) {
                watch.succeeds(&call);
            }
            return;
        }
        let call = self.call(thread, &registers);
        let mut error = None;
        if let Some(call) = &call {
            let number = self.calls;
            self.calls += 1;
            if let Some(fault) = watch.begins(number, call) {
                error = self.apply(fault, call.kind, thread, registers);
            }
        }
        self.inside.insert(thread, Inside { call, error });
    }

    /// Applies a fault to a call that begins. Returns the error to return when it ends.
    fn apply(&self, fault: Fault, kind: &Kind, thread: Pid, mut registers: user_regs_struct) -> Option<Errno> {
        match fault {
            Fault::Kill => {
                self.kill();
                return None;
            }
            // No system call has this number, so that nothing happens.
            Fault::Error(_) => registers.orig_rax = u64::MAX,
            Fault::OneByte | Fault::Half => {
                let count = match kind.count.expect("the call has a number of bytes") {
                    2 => &mut registers.rdx,
                    3 => &mut registers.r10,
                    _ => &mut registers.r8,
                };
                let less = if fault == Fault::OneByte { 1 } else { count.div_ceil(2) };
                *count = less.min(*count);
            }
        }
        ptrace::setregs(thread, registers).ok()?;
        if let Fault::Error(error) = fault { Some(error) } else { None }
    }

    /// The call that begins, if it is one on a file of the folder.
    fn call(&self, thread: Pid, registers: &user_regs_struct) -> Option<Call> {
        let kind = calls::KINDS.iter().find(|kind| kind.number == registers.orig_rax as i64)?;
        let argument = |index: usize| [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8][index];
        let open = |index: usize| {
            let link = PathBuf::from(format!("/proc/{}/fd/{}", self.program, argument(index) as i32));
            fs::read_link(&link).ok().filter(|path| path.starts_with(self.folder)).map(|path| (path, Some(link)))
        };
        let named = |index: usize| self.named(text(thread, argument(index))?);
        let found = kind.files.iter().find_map(|file| match *file {
            calls::Arg::Open(index) => open(index),
            calls::Arg::Path(index) => named(index).map(|path| (path, None)),
        });
        found.map(|(path, open)| Call { kind, path, open })
    }

    /// A path that a call has, if it is in the folder. The program runs in the folder.
    fn named(&self, path: PathBuf) -> Option<PathBuf> {
        let is_ours = match path.is_relative() {
            true => !path.as_os_str().is_empty() && !path.starts_with(".."),
            false => path.starts_with(self.folder) || self.is_unnamed(&path),
        };
        is_ours.then_some(path)
    }

    /// Whether a path is one of an open file of the folder.
    fn is_unnamed(&self, path: &Path) -> bool {
        let Ok(open) = path.strip_prefix("/proc/self/fd") else { return false };
        let link = PathBuf::from(format!("/proc/{}/fd", self.program)).join(open);
        fs::read_link(link).is_ok_and(|path| path.starts_with(self.folder))
    }
}

/// Lets a thread run to its next stop. Fails silently if the program has been killed.
fn go_on(thread: Pid, signal: Option<Signal>) {
    let _ = ptrace::syscall(thread, signal);
}

/// The text at an address of the program, up to its zero.
fn text(thread: Pid, address: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = Vec::new();
    while !bytes.contains(&0) && bytes.len() < libc::PATH_MAX as usize {
        let mut part = [0; 64];
        // Not beyond the page: the next one may not exist.
        let place = address + bytes.len() as u64;
        let end = part.len().min(4096 - (place % 4096) as usize);
        let read = memory.read_at(&mut part[..end], place).ok().filter(|&read| read > 0)?;
        bytes.extend_from_slice(&part[..read]);
    }
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some(PathBuf::from(String::from_utf8(bytes[..end].to_vec()).ok()?))
}
