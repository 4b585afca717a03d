//! Runs a block: each thread is a coroutine, and one runs until it waits or ends.

use super::{
    run::{try_with_run, within},
    stacks::Stacks,
};
use core::panic::AssertUnwindSafe;
use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use std::{any::Any, format, io, panic::catch_unwind, string::String, vec::Vec};

type Thread = Coroutine<(), (), ()>;

/// The threads of a block that have started and not ended.
pub(super) struct Threads<'k> {
    kernel: &'k dyn Fn(),
    started: Vec<Option<Thread>>,
    stacks: Stacks,
}

impl<'k> Threads<'k> {
    pub(super) fn new(kernel: &'k dyn Fn(), count: usize) -> Self {
        Self { kernel, started: (0..count).map(|_| None).collect(), stacks: Stacks::reserve(count) }
    }

    /// Runs block `block` of the current launch to its end or its first fault; tells whether it ended well.
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

/// After a fault threads are left in the middle of the kernel: they unwind, and so give their stacks back.
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
            // Without effect if a fault, or the panic hook, has said more already.
            within(|run| run.fail_panic(&message(&*payload), None));
        }
    };
    // SAFETY: the coroutine ends, by itself or unwound by `Threads::drop`, while `Threads` holds the kernel.
    Ok(unsafe { Coroutine::with_stack_unchecked(stack, body) })
}

fn message(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).into(),
        (_, Some(text)) => text.clone(),
        _ => "no message".into(),
    }
}

/// Makes a panic in a kernel a fault with the place where it happened, which only the panic hook is told. All other
/// panics go to the hook that was there before.
pub(super) fn note_panics() {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed now. A panic of the kernel will be reported with the launch's place.
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
