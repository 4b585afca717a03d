//! Processes that mpirun or srun has started.

use super::{Exchange, Reduction};
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::request::{RequestCollection, multiple_scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use rustix::thread::CpuSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The most bytes of a message, because MPI counts the length in 31 bits.
const MESSAGE: usize = 1 << 30;
/// The number of tests for completion before a rank sleeps. Between tests, it yields its core.
const EAGER: u32 = 200;
/// The time of a sleep. MPI's own functions wait without sleeping, and take a core from a working rank.
const SLEEP: Duration = Duration::from_micros(100);

/// The ranks of `MPI_COMM_WORLD`. All calls are made by the thread that has called [`Mpi::start`].
pub struct Mpi {
    world: SimpleCommunicator,
    /// The number of this rank on its machine, and the number of ranks on the machine.
    local: (usize, usize),
    /// The number of ranks on the machine that may run on the same cores as this rank, itself included.
    sharing: usize,
    /// Dropping it ends MPI.
    _universe: Universe,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl Mpi {
    /// Starts MPI. `None` if MPI has already been started. A program that mpirun has not started is the only rank.
    ///
    /// # Safety
    /// No other thread runs, because the function may set an environment variable.
    pub unsafe fn start() -> Option<Self> {
        // SAFETY: by the contract of `start`, no other thread runs. So no thread can access environment variables at
        // the same time.
        unsafe { prefer_shared_memory() };
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)?;
        let world = universe.world();
        let machine = world.split_shared(world.rank());
        let local = (machine.rank() as usize, machine.size() as usize);
        let mut cores = vec![0u64; local.1];
        machine.all_gather_into(&hash_of_cores(), &mut cores[..]);
        let sharing = cores.iter().filter(|hash| **hash == cores[local.0]).count();
        Some(Self { world, local, sharing, _universe: universe })
    }

    /// The number of this rank on its machine.
    pub fn local_rank(&self) -> usize {
        self.local.0
    }

    /// The number of ranks on this machine.
    pub fn local_size(&self) -> usize {
        self.local.1
    }

    /// The number of ranks on this machine that may run on the same cores, this rank included. It is all ranks, unless
    /// mpirun or srun has bound ranks to cores.
    pub fn sharing_cores(&self) -> usize {
        self.sharing
    }

    /// The name of this machine.
    pub fn machine(&self) -> String {
        mpi::environment::processor_name().unwrap_or_default()
    }

    /// Ends all ranks immediately.
    pub fn abort(&self, code: u8) -> ! {
        self.world.abort(code.into())
    }
}

impl Exchange for Mpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn is_one_machine(&self) -> bool {
        self.local.1 == self.size()
    }

    fn all_reduce(&self, reduction: Reduction, numbers: &mut [u64]) {
        let operation = match reduction {
            Reduction::Sum => SystemOperation::sum(),
            Reduction::Min => SystemOperation::min(),
            Reduction::Max => SystemOperation::max(),
        };
        let own = numbers.to_vec();
        multiple_scope(1, |scope, requests| {
            requests.add(self.world.immediate_all_reduce_into(scope, &own[..], &mut *numbers, operation));
            complete(requests);
        });
    }

    fn sum_of_earlier(&self, numbers: &mut [u64]) {
        let own = numbers.to_vec();
        multiple_scope(1, |scope, requests| {
            let sum = SystemOperation::sum();
            requests.add(self.world.immediate_exclusive_scan_into(scope, &own[..], &mut *numbers, sum));
            complete(requests);
        });
        if self.rank() == 0 {
            // On rank 0, MPI leaves the result undefined.
            numbers.fill(0);
        }
    }

    fn all_to_all(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) {
        let (rank, size) = (self.rank(), self.size());
        receive[rank].copy_from_slice(send[rank]);
        multiple_scope(2 * size, |scope, requests| {
            // Receives are posted first, so that a message finds its buffer.
            for (from, bytes) in receive.iter_mut().enumerate().filter(|(from, _)| *from != rank) {
                let process = self.world.process_at_rank(from as i32);
                for message in bytes.chunks_mut(MESSAGE) {
                    requests.add(process.immediate_receive_into(scope, message));
                }
            }
            // Each rank begins with another receiver.
            for to in (1..size).map(|i| (rank + i) % size) {
                let process = self.world.process_at_rank(to as i32);
                for message in send[to].chunks(MESSAGE) {
                    requests.add(process.immediate_send(scope, message));
                }
            }
            complete(requests);
        });
    }
}

/// Makes Open MPI use shared memory without a search if mpirun reports that all ranks are on this machine. A choice of
/// the user has precedence. Otherwise each rank first searches for networks, which takes 0.2 s.
///
/// # Safety
/// No other thread reads or writes environment variables meanwhile.
unsafe fn prefer_shared_memory() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let (all, local) = (number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_LOCAL_SIZE"));
    if all.is_some() && all == local && std::env::var_os("OMPI_MCA_pml").is_none() {
        // SAFETY: `set_var` is sound while no other thread accesses environment variables, which is the contract of
        // this function.
        unsafe { std::env::set_var("OMPI_MCA_pml", "ob1") };
    }
}

/// A hash of the set of cores that this rank may run on.
fn hash_of_cores() -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Ok(cores) = rustix::thread::sched_getaffinity(None) {
        (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).for_each(|core| core.hash(&mut hasher));
    }
    hasher.finish()
}

/// Waits until all requests are done.
fn complete<D: ?Sized>(requests: &mut RequestCollection<'_, D>) {
    let mut done = Vec::new();
    let mut asked = 0;
    while !requests.test_all(&mut done) {
        asked += 1;
        if asked < EAGER { std::thread::yield_now() } else { std::thread::sleep(SLEEP) }
    }
}
