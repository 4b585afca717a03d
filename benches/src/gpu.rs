//! Cases on a GPU.

use crate::case::with_types;
use crate::cpu::OnCpu;
use crate::input::{Input, Value, to_be_sorted, values};
use crate::verify::verify;
use crate::{Case, Failure, MOST_COMPARED, Op, Times, Work};
use merge_host::cust::event::{Event, EventFlags};
use merge_host::cust::memory::{AsyncCopyDestination, DeviceBuffer, DeviceCopy};
use merge_host::cust::stream::Stream;
use merge_host::{BatchKernel, Engine, Gpu, Key, MergeKernel};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// A GPU with a stream, the last input in its memory, and how long copies take on it.
pub struct Device {
    // Dropped before the engine, which the memory belongs to.
    last_input: RefCell<Option<(Case, Rc<dyn Any>)>>,
    stream: Stream,
    copies: RefCell<HashMap<usize, Times>>,
    name: String,
    engine: Engine,
    cpu: Engine,
}

impl Device {
    /// The first GPU.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn first() -> Result<Self, Failure> {
        let engine = Engine::gpu(0)?;
        let name = merge_host::devices()?.swap_remove(0).name;
        let stream = engine.as_gpu().ok_or("the engine has no GPU")?.stream()?;
        let (last_input, copies) = (RefCell::default(), RefCell::default());
        Ok(Self { last_input, stream, copies, name, engine, cpu: Engine::cpu() })
    }

    /// What the driver calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn gpu(&self) -> &Gpu {
        self.engine.as_gpu().expect("it was made with a GPU")
    }

    /// How long `work` takes on the stream. Waits for it.
    fn time(&self, work: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
        let (start, end) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);
        start.record(&self.stream)?;
        work()?;
        end.record(&self.stream)?;
        end.synchronize()?;
        Ok(Duration::from_secs_f64(f64::from(end.elapsed_time_f32(&start)?) / 1e3))
    }

    /// How long a copy takes that reads and writes `bytes` bytes together, and whether it was measured just now.
    pub(crate) fn copy(&self, bytes: usize) -> Result<(Times, bool), Failure> {
        if let Some(&times) = self.copies.borrow().get(&bytes) {
            return Ok((times, false));
        }
        let (from, mut to) = (self.gpu().buffer::<u8>(bytes / 2)?, self.gpu().buffer::<u8>(bytes / 2)?);
        let mut runs = Vec::new();
        for _ in 0..18 {
            // SAFETY: both arrays live until `time` has waited.
            runs.push(self.time(|| Ok(unsafe { from.async_copy_to(&mut to, &self.stream) }?))?);
        }
        let times = Times { of_copy: Some(1.0), ..Times::of(runs.split_off(3), bytes, bytes / 2) };
        self.copies.borrow_mut().insert(bytes, times);
        Ok((times, true))
    }

    /// The input of a case in the GPU's memory. The last one is kept, for the next case may have the same.
    fn input<K: Key + DeviceCopy>(&self, case: Case) -> Result<Rc<DeviceInput<K>>, Failure> {
        let op = match case.op {
            Op::Merge(_) => Op::Merge(MergeKernel::Auto),
            Op::Batch { d, .. } => Op::Batch { kernel: BatchKernel::Auto, d },
            other => other,
        };
        let which = Case { op, value: None, ..case };
        let mut last = self.last_input.borrow_mut();
        if let Some(kept) = last.as_ref().filter(|(case, _)| *case == which)
            && let Ok(input) = kept.1.clone().downcast()
        {
            return Ok(input);
        }
        // Its memory may be needed.
        *last = None;
        let input = Rc::new(DeviceInput::<K>::new(self, case)?);
        *last = Some((which, input.clone()));
        Ok(input)
    }
}

/// An input in the GPU's memory.
struct DeviceInput<K: DeviceCopy> {
    a: DeviceBuffer<K>,
    b: DeviceBuffer<K>,
    a_offsets: DeviceBuffer<u64>,
    b_offsets: DeviceBuffer<u64>,
}

impl<K: Key + DeviceCopy> DeviceInput<K> {
    fn new(device: &Device, case: Case) -> Result<Self, Failure> {
        let gpu = device.gpu();
        let input = Input::<K>::unsorted(case);
        let offsets = |of: &[usize]| gpu.upload(&of.iter().map(|&offset| offset as u64).collect::<Vec<_>>());
        let (a_offsets, b_offsets) = (offsets(&input.a.offsets)?, offsets(&input.b.offsets)?);
        let (mut a, mut b) = (gpu.upload(&input.a.keys)?, gpu.upload(&input.b.keys)?);
        if to_be_sorted(case) {
            // Much faster than on the CPU. The result is checked against keys that the CPU sorted, or that nobody did.
            for side in [&mut a, &mut b] {
                let mut workspace = gpu.buffer(Gpu::sort_workspace_bytes::<K>(side.len()))?;
                gpu.sort(side, &mut workspace, &device.stream)?;
                device.stream.synchronize()?;
            }
        }
        Ok(Self { a, b, a_offsets, b_offsets })
    }
}

pub(crate) fn set_up(device: &Device, case: Case) -> Result<Box<dyn Work + '_>, Failure> {
    fn set_up<K: Key + DeviceCopy, V: Value>(device: &Device, case: Case) -> Result<Box<dyn Work + '_>, Failure> {
        Ok(Box::new(OnGpu::<K, V>::new(device, case)?))
    }
    with_types!(case, set_up(device, case))
}

/// A case in the GPU's memory.
struct OnGpu<'d, K: DeviceCopy, V: Value> {
    device: &'d Device,
    case: Case,
    input: Rc<DeviceInput<K>>,
    input_values: [DeviceBuffer<V>; 2],
    keys: DeviceBuffer<K>,
    values: DeviceBuffer<V>,
    workspace: DeviceBuffer<u8>,
}

impl<'d, K: Key + DeviceCopy, V: Value> OnGpu<'d, K, V> {
    fn new(device: &'d Device, case: Case) -> Result<Self, Failure> {
        let (gpu, n) = (device.gpu(), case.n);
        let input = device.input::<K>(case)?;
        let places = |from: usize, len: usize| gpu.upload(&values::<V>(case, from, len));
        let (m, rest) = (input.a.len(), input.b.len());
        let workspace = match (case.op, case.value) {
            (Op::Merge(kernel), None) => Gpu::merge_workspace_bytes::<K>(kernel, n),
            (Op::Merge(_), Some(_)) => Gpu::merge_pairs_workspace_bytes::<K>(n),
            (Op::Batch { .. }, _) => 0,
            (Op::Ragged, _) => Gpu::merge_ragged_workspace_bytes::<K>(n),
            (Op::Sort, _) => Gpu::sort_workspace_bytes::<K>(n),
        };
        Ok(Self {
            input_values: [places(0, m)?, places(m, rest)?],
            keys: gpu.buffer(n)?,
            values: gpu.buffer(if case.value.is_some() { n } else { 0 })?,
            workspace: gpu.buffer(workspace)?,
            device,
            case,
            input,
        })
    }
}

impl<K: Key + DeviceCopy, V: Value> Work for OnGpu<'_, K, V> {
    fn time(&mut self) -> Result<Duration, Failure> {
        let (gpu, stream) = (self.device.gpu(), &self.device.stream);
        let DeviceInput { a, b, a_offsets, b_offsets } = &*self.input;
        let [av, bv] = &self.input_values;
        let (keys, values, workspace) = (&mut *self.keys, &mut *self.values, &mut *self.workspace);
        if self.case.op == Op::Sort {
            // SAFETY: both arrays live until `time` has waited for what comes after.
            unsafe { a.async_copy_to(keys, stream) }?;
        }
        self.device.time(|| {
            match (self.case.op, self.case.value) {
                (Op::Merge(kernel), None) => gpu.merge(kernel, a, b, keys, workspace, stream),
                (Op::Merge(_), Some(_)) => gpu.merge_pairs((a, av), (b, bv), (keys, values), workspace, stream),
                (Op::Batch { kernel, d }, None) => gpu.merge_batch_with(kernel, a, b, keys, d, d / 2, stream),
                (Op::Batch { d, .. }, Some(_)) => {
                    gpu.merge_batch_pairs((a, av), (b, bv), (keys, values), d, d / 2, stream)
                }
                // SAFETY: the offsets ascend from 0 to the lengths.
                (Op::Ragged, None) => unsafe {
                    gpu.merge_ragged((a, a_offsets), (b, b_offsets), keys, workspace, stream)
                },
                // SAFETY: as above.
                (Op::Ragged, Some(_)) => unsafe {
                    let (a, b) = ((&**a, &**av, &**a_offsets), (&**b, &**bv, &**b_offsets));
                    gpu.merge_ragged_pairs(a, b, (keys, values), workspace, stream)
                },
                (Op::Sort, _) => gpu.sort(keys, workspace, stream),
            }?;
            Ok(())
        })
    }

    fn verify(&self) -> Result<u64, Failure> {
        let gpu = self.device.gpu();
        let (keys, values) = (gpu.download(&self.keys)?, gpu.download(&self.values)?);
        if self.case.n <= MOST_COMPARED {
            let mut expected = OnCpu::<K, V>::new(&self.device.cpu, self.case)?;
            expected.run()?;
            if let Some(i) = (0..keys.len()).find(|&i| keys[i].to_ordered() != expected.keys[i].to_ordered()) {
                return Err(format!("wrong result: key {i} of {} is not that of the CPU engine", keys.len()).into());
            }
            if let Some(i) = (0..values.len()).find(|&i| values[i] != expected.values[i]) {
                return Err(format!("wrong result: value {i} of {} is not that of the CPU engine", keys.len()).into());
            }
        }
        // Keys alone are compared by a checksum, for which they need not be sorted.
        let input = match self.case.value {
            None => Input::unsorted(self.case),
            Some(_) => Input::new(self.case, &self.device.cpu)?,
        };
        verify(self.case, &input, &keys, &values)
    }
}
