//! The state of the driver.

use crate::graph::Capture;
use crate::queue::{Event, Host, Stream};
use crate::settings::Settings;
use cuda_std::emulator::{Emulator, MAX_SHARED_BYTES};
use cuda_std::launch::{Instance, entry_point};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::c_void;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A status other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    pub const INVALID_VALUE: Self = Self(1);
    pub const OUT_OF_MEMORY: Self = Self(2);
    pub const NOT_INITIALIZED: Self = Self(3);
    pub const NO_DEVICE: Self = Self(100);
    pub const INVALID_DEVICE: Self = Self(101);
    pub const INVALID_IMAGE: Self = Self(200);
    pub const INVALID_CONTEXT: Self = Self(201);
    pub const INVALID_PTX: Self = Self(218);
    pub const INVALID_HANDLE: Self = Self(400);
    pub const NOT_FOUND: Self = Self(500);
    pub const NOT_READY: Self = Self(600);
    pub const ILLEGAL_ADDRESS: Self = Self(700);
    pub const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub const LAUNCH_FAILED: Self = Self(719);
    pub const CAPTURE_UNSUPPORTED: Self = Self(900);
    pub const UNKNOWN: Self = Self(999);

    /// Whether the GPU does not recover: all later calls fail, too.
    fn is_lasting(self) -> bool {
        matches!(self.0, 46 | 214 | 700..=703 | 710 | 714..=720 | 999)
    }
}

pub type Result<T> = std::result::Result<T, Status>;

thread_local! {
    /// The current context of the thread, or 0.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

pub fn set_current(context: usize) {
    CURRENT.set(context);
}

pub fn current_or_none() -> usize {
    CURRENT.get()
}

/// A GPU. Its primary context has its ordinal, counted from 1, as its handle.
#[derive(Default)]
pub struct Device {
    /// How often its context has been retained.
    pub retained: usize,
    /// Bytes of each allocation, by address.
    pub allocations: BTreeMap<usize, usize>,
    /// The contexts whose memory it can access.
    pub peers: HashSet<usize>,
}

impl Device {
    fn used(&self) -> usize {
        self.allocations.values().sum()
    }
}

pub struct Module {
    pub context: usize,
    pub exists: bool,
    entries: HashSet<String>,
}

pub struct Function {
    pub context: usize,
    pub kernel: &'static str,
    pub instance: &'static Instance,
    /// Bytes of dynamic shared memory that a block may have.
    pub shared_bytes: u32,
}

pub struct Driver {
    pub settings: Settings,
    pub emulator: Emulator,
    random: StdRng,
    /// The number of calls of each function.
    calls: HashMap<String, usize>,
    is_initialised: bool,
    /// What all calls return since a GPU has failed.
    lost: Option<Status>,
    pub devices: Vec<Device>,
    pub modules: Vec<Module>,
    pub functions: Vec<Function>,
    /// The first one is the default stream.
    pub streams: Vec<Stream>,
    pub events: Vec<Event>,
    pub captures: Vec<Capture>,
    /// Page-locked memory: its bytes and its context, by address.
    locked: HashMap<usize, (usize, usize)>,
}

impl Driver {
    fn new() -> Self {
        let settings = Settings::of_environment();
        let default = Stream { context: 0, priority: 0, exists: true, queue: Default::default(), capture: None };
        Self {
            emulator: Emulator::new(settings.seed),
            random: StdRng::seed_from_u64(settings.seed),
            calls: HashMap::new(),
            is_initialised: false,
            lost: None,
            devices: (0..settings.devices).map(|_| Device::default()).collect(),
            modules: Vec::new(),
            functions: Vec::new(),
            streams: vec![default],
            events: Vec::new(),
            captures: Vec::new(),
            locked: HashMap::new(),
            settings,
        }
    }

    /// Appends a line to the log. Without a log, standard error has the faults.
    pub fn log(&self, line: &str) {
        match &self.settings.log {
            Some(path) => {
                let file = OpenOptions::new().append(true).create(true).open(path);
                let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
            }
            None if line.starts_with("fault") => eprintln!("emulated GPU: {line}"),
            None => {}
        }
    }

    /// The GPU fails with this status, and with it all later calls.
    pub fn lose(&mut self, status: Status) -> Status {
        *self.lost.get_or_insert(status)
    }

    /// A random number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    /// Counts a call. An error if it has to fail.
    fn begin(&mut self, name: &str) -> Result<()> {
        self.log(name);
        let count = self.calls.entry(name.to_owned()).or_default();
        *count += 1;
        if let Some(&status) = self.settings.fail.get(&(name.to_owned(), *count)) {
            let status = Status(status);
            return Err(if status.is_lasting() { self.lose(status) } else { status });
        }
        let is_of_contexts =
            !(name.starts_with("cuInit") || name.starts_with("cuDriver") || name.starts_with("cuDeviceGet"));
        if let Some(status) = self.lost.filter(|_| is_of_contexts) {
            return Err(status);
        }
        if !self.is_initialised && !name.starts_with("cuInit") && !name.starts_with("cuDriver") {
            return Err(Status::NOT_INITIALIZED);
        }
        Ok(())
    }

    pub fn initialise(&mut self) -> Result<()> {
        if self.devices.is_empty() {
            return Err(Status::NO_DEVICE);
        }
        self.is_initialised = true;
        Ok(())
    }

    pub fn device(&self, ordinal: i32) -> Result<usize> {
        usize::try_from(ordinal).ok().filter(|&at| at < self.devices.len()).ok_or(Status::INVALID_DEVICE)
    }

    /// The thread's current context, which exists.
    pub fn current(&self) -> Result<usize> {
        self.context(current_or_none())
    }

    /// The context with this handle.
    pub fn context(&self, handle: usize) -> Result<usize> {
        let device = handle.checked_sub(1).and_then(|at| self.devices.get(at));
        if device.is_some_and(|device| device.retained > 0) { Ok(handle) } else { Err(Status::INVALID_CONTEXT) }
    }

    pub fn current_device(&mut self) -> Result<&mut Device> {
        let current = self.current()?;
        Ok(&mut self.devices[current - 1])
    }

    /// Releases a GPU's context. The last release frees all that it has.
    pub fn release(&mut self, device: usize) -> Result<()> {
        if self.devices[device].retained == 0 {
            return Err(Status::INVALID_CONTEXT);
        }
        self.devices[device].retained -= 1;
        if self.devices[device].retained > 0 {
            return Ok(());
        }
        let context = device + 1;
        self.drain_context(context)?;
        self.streams.iter_mut().filter(|stream| stream.context == context).for_each(|stream| stream.exists = false);
        let mut left: Vec<usize> = std::mem::take(&mut self.devices[device].allocations).into_keys().collect();
        let of_context = self.locked.iter().filter(|(_, (_, of))| *of == context);
        left.extend(of_context.map(|(address, _)| *address));
        if !left.is_empty() {
            self.log(&format!("fault: {} allocations are left when the context of device {device} ends", left.len()));
        }
        let of_context = self.events.iter_mut().filter(|event| event.context == context && event.exists);
        let events = of_context.map(|event| event.exists = false).count();
        if events > 0 {
            self.log(&format!("fault: {events} events are left when the context of device {device} ends"));
        }
        for address in left {
            self.locked.remove(&address);
            self.emulator.free(address);
        }
        self.modules.iter_mut().filter(|module| module.context == context).for_each(|module| module.exists = false);
        Ok(())
    }

    /// Free bytes of the current context's GPU.
    pub fn free_memory(&mut self) -> Result<usize> {
        Ok(self.settings.memory - self.current_device()?.used())
    }

    pub fn allocate(&mut self, bytes: usize) -> Result<usize> {
        self.check_no_capture()?;
        let free = self.free_memory()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if bytes > free {
            return Err(Status::OUT_OF_MEMORY);
        }
        let address = self.emulator.allocate(bytes);
        self.current_device()?.allocations.insert(address, bytes);
        Ok(address)
    }

    pub fn free(&mut self, address: usize) -> Result<()> {
        self.current()?;
        let found = self.devices.iter_mut().find_map(|device| device.allocations.remove(&address));
        if found.is_none() || !self.emulator.free(address) {
            self.log(&format!("fault: {address:#x} is freed, and is no allocation"));
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// Allocates page-locked memory of the host.
    pub fn allocate_locked(&mut self, bytes: usize) -> Result<*mut c_void> {
        self.check_no_capture()?;
        let context = self.current()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let start = self.emulator.allocate_shared(bytes);
        self.locked.insert(start.addr().get(), (bytes, context));
        Ok(start.as_ptr().cast())
    }

    pub fn free_locked(&mut self, address: usize) -> Result<()> {
        self.current()?;
        let Some((bytes, _)) = self.locked.remove(&address) else {
            self.log(&format!("fault: {address:#x} is freed, and is no page-locked memory"));
            return Err(Status::INVALID_VALUE);
        };
        self.check_unused(Host { start: address, bytes })?;
        self.emulator.free(address);
        Ok(())
    }

    /// Loads PTX. Returns the number of the module.
    pub fn load(&mut self, image: &[u8]) -> Result<usize> {
        self.check_no_capture()?;
        let context = self.current()?;
        let text =
            std::str::from_utf8(image).ok().filter(|text| text.contains(".target")).ok_or(Status::INVALID_IMAGE)?;
        let target = text.split_once(".target sm_").map_or("", |(_, rest)| rest);
        let digits: String = target.chars().take_while(char::is_ascii_digit).collect();
        if digits.parse::<i32>().is_ok_and(|target| target > self.settings.capability) {
            return Err(Status::INVALID_PTX);
        }
        let names = text.split(".entry ").skip(1).filter_map(|rest| rest.split('(').next());
        let entries = names.map(|name| name.trim().to_owned()).collect();
        self.modules.push(Module { context, exists: true, entries });
        Ok(self.modules.len() - 1)
    }

    /// Finds a kernel of a module. Returns the number of the function.
    pub fn function(&mut self, module: usize, name: &str) -> Result<usize> {
        let module = self.modules.get(module).filter(|module| module.exists).ok_or(Status::INVALID_HANDLE)?;
        if !module.entries.contains(name) {
            return Err(Status::NOT_FOUND);
        }
        let context = module.context;
        let Some((kernel, instance)) = entry_point(name) else {
            self.log(&format!("fault: the emulator has no kernel {name}"));
            return Err(Status::NOT_FOUND);
        };
        self.functions.push(Function { context, kernel, instance, shared_bytes: 48 << 10 });
        Ok(self.functions.len() - 1)
    }

    pub fn allow_shared(&mut self, function: usize, bytes: i32) -> Result<()> {
        let bytes =
            u32::try_from(bytes).ok().filter(|&bytes| bytes <= MAX_SHARED_BYTES).ok_or(Status::INVALID_VALUE)?;
        self.functions.get_mut(function).ok_or(Status::INVALID_HANDLE)?.shared_bytes = bytes;
        Ok(())
    }

    pub fn stream(&mut self, number: usize) -> Result<&mut Stream> {
        self.streams.get_mut(number).filter(|stream| stream.exists).ok_or(Status::INVALID_HANDLE)
    }

    pub fn event(&mut self, number: usize) -> Result<&mut Event> {
        self.events.get_mut(number).filter(|event| event.exists).ok_or(Status::INVALID_HANDLE)
    }
}

/// Makes a call of the driver, and then does some work of streams.
pub fn call(name: &str, work: impl FnOnce(&mut Driver) -> Result<()>) -> i32 {
    static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(|| Mutex::new(Driver::new()));
    let driver = &mut *DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    let result = driver.begin(name).and_then(|()| work(driver));
    for _ in 0..driver.below(3) {
        // A fault is reported by the next call.
        let _ = driver.step();
    }
    result.map_or_else(|status| status.0, |()| 0)
}
