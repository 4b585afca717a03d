//! Runs a block: each thread is a coroutine, which runs until it waits or ends.

use super::{
    run::{try_with_run, within},
    stacks::Stacks,
};
use core::panic::AssertUnwindSafe;
use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use std::{any::Any, format, io, panic::catch_unwind, string::String, vec::Vec};

type Thread = Coroutine<(), (), ()>;

/// The started threads of a block.
pub(super) struct Threads<'k> {
    kernel: &'k dyn Fn(),
    started: Vec<Option<Thread>>,
    stacks: Stacks,
}

impl<'k> Threads<'k> {
    pub(super) fn new(kernel: &'k dyn Fn(), count: usize) -> Self {
        Self { kernel, started: (0..count).map(|_| None).collect(), stacks: Stacks::reserve(count) }
    }

    /// Runs block `block` of the current launch until its end or its first fault. Returns whether there was no fault.
    pub(super) fn run_block(&mut self, block: u32) -> bool {
        within(|run| run.start_block(block));
        while let Some(at) = within(|run| run.next_thread()) {
            let thread = match &mut self.started[at] {
                Some(thread) => thread,
                none => match start(self.kernel, &mut self.stacks) {
                    Ok(thread) => none.insert(thread),
                    Err(error) => {
                        within(|run| run.fail_launch(&format!("no stack for a thread: {error}")));
                        return false;
                    }
                },
            };
            let returned = matches!(thread.resume(()), CoroutineResult::Return(()));
            if returned && let Some(thread) = self.started[at].take() {
                self.stacks.give(thread.into_stack());
            }
            within(|run| run.stopped(at, returned));
        }
        !within(|run| run.has_failed())
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
