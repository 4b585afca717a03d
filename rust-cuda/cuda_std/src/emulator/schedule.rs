//! Runs the blocks of a launch: each thread is a coroutine, which runs until it waits or ends.

use super::{
    run::{Run, try_with_run, within},
    stacks::Stacks,
};
use core::panic::AssertUnwindSafe;
use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use std::{any::Any, format, io, panic::catch_unwind, string::String, vec::Vec};

type Thread = Coroutine<(), (), ()>;

/// The started threads of the blocks that run at the same time.
pub(super) struct Threads<'k> {
    kernel: &'k dyn Fn(),
    /// Threads of a block.
    in_block: usize,
    started: Vec<Option<Thread>>,
    stacks: Stacks,
}

impl<'k> Threads<'k> {
    /// For `blocks` blocks of `in_block` threads.
    pub(super) fn new(kernel: &'k dyn Fn(), blocks: usize, in_block: usize) -> Self {
        let count = blocks * in_block;
        Self { kernel, in_block, started: (0..count).map(|_| None).collect(), stacks: Stacks::reserve(count) }
    }

    /// Runs the current launch until its end or its first fault.
    pub(super) fn run(&mut self) {
        while let Some((place, thread)) = within(Run::next_thread) {
            let at = place * self.in_block + thread;
            let started = match &mut self.started[at] {
                Some(started) => started,
                none => match start(self.kernel, &mut self.stacks) {
                    Ok(thread) => none.insert(thread),
                    Err(error) => {
                        within(|run| run.fail_launch(&format!("no stack for a thread: {error}")));
                        return;
                    }
                },
            };
            let returned = matches!(started.resume(()), CoroutineResult::Return(()));
            if returned && let Some(ended) = self.started[at].take() {
                self.stacks.give(ended.into_stack());
            }
            within(|run| run.stopped((place, thread), returned));
        }
    }
}

/// After a fault, some threads are still inside the kernel. They are unwound, and their stacks are returned.
impl Drop for Threads<'_> {
    fn drop(&mut self) {
        for thread in &mut self.started {
            if let Some(mut thread) = thread.take() {
                thread.force_unwind();
                self.stacks.give(thread.into_stack());
            }
        }
    }
}

fn start(kernel: &dyn Fn(), stacks: &mut Stacks) -> io::Result<Thread> {
    let stack: DefaultStack = stacks.take()?;
    let body = move |yielder: &Yielder<(), ()>, ()| {
        within(|run| run.set_yielder(yielder));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(kernel)) {
            // No effect if a fault or the panic hook has already failed the launch.
            within(|run| run.fail_panic(&message(&*payload), None));
        }
    };
    // SAFETY: the coroutine borrows the kernel, which `Threads` keeps borrowed. It ends by itself or is unwound in
    // `Threads::drop`, before that borrow ends.
    Ok(unsafe { Coroutine::with_stack_unchecked(stack, body) })
}

fn message(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).into(),
        (_, Some(text)) => text.clone(),
        _ => "no message".into(),
    }
}

/// Installs a panic hook that turns a panic in a kernel into a fault with its location, which only the hook receives.
/// All other panics go to the previous hook.
pub(super) fn note_panics() {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed now. A panic of the kernel will be reported with the launch's location.
        return;
    }
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(std::boxed::Box::new(move |info| {
            let noted = try_with_run(|run| {
                if run.in_kernel {
                    run.fail_panic(&message(info.payload()), info.location());
                }
                run.in_kernel
            });
            if noted != Some(true) {
                previous(info);
            }
        }));
    });
}
