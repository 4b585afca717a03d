//! A queue that runs its launches in the emulator, for tests of operations by the launches that a GPU gets.

pub mod own;

use super::*;
use crate::gpu::operation::Operation;
use cuda_std::Word;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};

/// An emulated GPU, and the launches on it.
pub struct Device {
    emulator: RefCell<Emulator>,
    random: RefCell<StdRng>,
    launched: RefCell<Vec<Entry>>,
    seed: u64,
}

impl Device {
    /// A device without arrays. `seed` decides the order of threads' turns, the order of launches that have none, and
    /// the numbers of [`Queue::random`].
    pub fn new(seed: u64) -> Self {
        Self {
            emulator: RefCell::new(Emulator::new(seed)),
            random: RefCell::new(StdRng::seed_from_u64(seed)),
            launched: RefCell::default(),
            seed,
        }
    }

    /// A copy of `values`.
    pub fn array<T: Word>(&self, values: &[T]) -> Buffer<T> {
        self.emulator.borrow_mut().buffer(values)
    }

    /// An uninitialised array of `len` elements.
    pub fn uninit<T: Word>(&self, len: usize) -> Buffer<T> {
        self.emulator.borrow_mut().uninit(len)
    }

    /// An uninitialised workspace of `bytes` bytes.
    pub fn workspace(&self, bytes: usize) -> Address {
        self.emulator.borrow_mut().allocate(bytes) as Address
    }

    /// The elements of an array. All of its elements have to be initialised.
    pub fn read<T: Word>(&self, array: Buffer<T>) -> Vec<T> {
        self.checked(self.emulator.borrow_mut().read(array))
    }

    /// `count` words from `at` on. All words have to be initialised.
    pub fn words(&self, at: Address, count: usize) -> Vec<u32> {
        let mut words = vec![0; count];
        let read = self.emulator.borrow_mut().download(at as usize, bytemuck::cast_slice_mut(&mut words));
        self.checked(read);
        words
    }

    /// The bits of the first `count` elements of an array. These elements have to be initialised.
    pub fn elements<T: Word>(&self, array: Buffer<T>, count: usize) -> Vec<u64> {
        self.read(array.first(count)).into_iter().map(Word::to_register).collect()
    }

    /// The result of a launch or a read. A fault fails the test with the fault's message.
    fn checked<T>(&self, result: Result<T, Fault>) -> T {
        result.unwrap_or_else(|fault| panic!("{fault} (seed {})", self.seed))
    }

    /// Writes the first elements of an array.
    pub fn write<T: Word + bytemuck::NoUninit>(&self, array: Buffer<T>, first: &[T]) {
        let written = self.emulator.borrow_mut().upload(address(array) as usize, bytemuck::cast_slice(first));
        self.checked(written);
    }

    /// Runs an operation on arrays of the device. Returns its workspace.
    pub fn run<K>(&self, operation: &impl Operation<K>) -> Address {
        let workspace = self.workspace(operation.workspace_bytes());
        self.run_in(operation, workspace);
        workspace
    }

    /// Runs an operation on arrays of the device, in a workspace with any contents.
    pub fn run_in<K>(&self, operation: &impl Operation<K>, workspace: Address) {
        // SAFETY: the emulator reports accesses outside of arrays, and runs every launch to its end.
        let queued = unsafe { operation.launch(&self.queue(), workspace) };
        queued.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Begins a profile of the next launches, or ends it.
    pub fn set_profiled(&self, on: bool) {
        self.emulator.borrow_mut().set_profiled(on);
    }

    /// The bank conflicts and the sectors of the launches since [`set_profiled`](Self::set_profiled).
    pub fn profile(&self) -> cuda_std::emulator::Profile {
        self.emulator.borrow().profile()
    }

    /// The seed that the device was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The queue of the device's launches.
    pub fn queue(&self) -> Emulated<'_> {
        Emulated { device: self, added: None }
    }

    /// The entry points of all launches so far, in their order.
    pub fn launched(&self) -> Vec<Entry> {
        self.launched.borrow().clone()
    }

    /// The kernels launched so far.
    pub fn kernels(&self) -> HashSet<&'static str> {
        self.launched.borrow().iter().map(|(kernel, _)| *kernel).collect()
    }
}

/// The address of an array.
pub fn address<T>(array: Buffer<T>) -> Address {
    array.as_mut_ptr() as Address
}

/// The work of a thread of the kernel's instance with this suffix, if it exists and takes these arguments.
pub(super) fn thread<A: Arguments>(suffix: &str, arguments: A) -> Option<Box<dyn Fn() + Send + Sync>> {
    let instance = A::instance(suffix)?;
    // SAFETY: `A::instance` has confirmed that the instance takes these arguments. The emulator reports accesses
    // outside of arrays.
    Some(unsafe { instance.threads(arguments.pointers().as_ref().as_ptr()) })
}

/// Work of a queue: a launch, or words to clear.
type Work = Box<dyn FnOnce(&mut Emulator) -> Result<(), Fault>>;

/// A queue of launches that run at once, or when a join runs them.
pub struct Emulated<'a> {
    device: &'a Device,
    /// The work that a join has yet to run, if this is one of its two queues.
    added: Option<RefCell<VecDeque<Work>>>,
}

impl Emulated<'_> {
    /// Does `work` now, or when the join runs it.
    fn work(&self, work: Work) {
        match &self.added {
            Some(added) => added.borrow_mut().push_back(work),
            None => self.device.checked(work(&mut self.device.emulator.borrow_mut())),
        }
    }
}

impl Queue for Emulated<'_> {
    /// Few, so that persistent blocks take more than one tile even of short arrays.
    fn multiprocessors(&self) -> usize {
        2
    }

    /// At times one or two, so that blocks take more than one part of the work also where there are few parts.
    fn blocks(&self, each: usize) -> usize {
        let all = each * self.multiprocessors();
        match self.device.random.borrow_mut().random_range(0..4) {
            0 => all.min(1),
            1 => all.min(2),
            _ => all,
        }
    }

    unsafe fn add(&self, launch: Launch<'_>) -> Result<(), Error> {
        let Launch { kernel, suffix, shape: Shape { blocks, threads, shared_bytes }, thread, .. } = launch;
        let thread = thread.unwrap_or_else(|| panic!("no {kernel}_{suffix} takes these arguments"));
        if blocks == 0 {
            return Ok(());
        }
        self.device.launched.borrow_mut().push((kernel, suffix.to_owned()));
        let blocks = u32::try_from(blocks).expect("a grid has few blocks");
        self.work(Box::new(move |emulator| emulator.launch(kernel, blocks, threads, shared_bytes, thread)));
        Ok(())
    }

    unsafe fn clear(&self, at: Address, count: usize) -> Result<(), Error> {
        self.work(Box::new(move |emulator| emulator.fill(at as usize, 0, count * size_of::<u32>())));
        Ok(())
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), Error> {
        self.work(Box::new(move |emulator| emulator.copy(from as usize, to as usize, bytes)));
        Ok(())
    }

    /// Runs the launches of one queue before the launches of the other, or in between, as the seed decides: no order is
    /// promised.
    fn join(&self, work: &OnTwo<'_>) -> Result<(), Error> {
        let sides = [(), ()].map(|()| Emulated { device: self.device, added: Some(RefCell::default()) });
        work(&sides[0], &sides[1])?;
        let mut sides = sides.map(|side| side.added.expect("it is a side").into_inner());
        let mut random = self.device.random.borrow_mut();
        let first = random.random_range(0..3);
        while sides.iter().any(|side| !side.is_empty()) {
            let side = if first < 2 { first } else { random.random_range(0..2) };
            let side = if sides[side].is_empty() { 1 - side } else { side };
            sides[side].pop_front().into_iter().for_each(|work| self.work(work));
        }
        Ok(())
    }

    fn random(&self) -> u64 {
        self.device.random.borrow_mut().random()
    }
}
