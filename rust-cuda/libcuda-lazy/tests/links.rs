//! A program with the usual calls of `cust` finds all symbols.

use cust::function::FunctionAttribute;
use cust::memory::{CopyDestination, DeviceBuffer, LockedBuffer, mem_get_info};
use cust::prelude::*;
use libcuda_lazy as _;

#[test]
fn a_program_with_all_the_usual_calls_links_and_runs() {
    // Without a driver or a device it ends at the first call. With a device, the empty module has no such kernel.
    let error = run().expect_err("there is no kernel to run");
    assert!(!error.to_string().is_empty(), "{error:?}");
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let _context = cust::quick_init()?;
    let device = Device::get_device(0)?;
    println!("{} {}", device.name()?, device.total_memory()?);
    device.get_attribute(cust::device::DeviceAttribute::MultiprocessorCount)?;
    let module = Module::from_ptx(".version 7.0\n.target sm_80\n.address_size 64\n", &[])?;
    let function = module.get_function("missing")?;
    function.get_attribute(FunctionAttribute::NumRegisters)?;
    function.max_active_blocks_per_multiprocessor(256.into(), 0)?;
    mem_get_info()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let event = Event::new(EventFlags::DEFAULT)?;
    let mut buffer = DeviceBuffer::from_slice(&[1u32, 2, 3])?;
    let mut pinned = LockedBuffer::new(&0u32, 3)?;
    buffer.copy_to(&mut pinned)?;
    buffer.copy_from(&pinned)?;
    buffer.set_zero()?;
    event.record(&stream)?;
    // SAFETY: the kernel takes no arguments and accesses no memory.
    unsafe { cust::launch!(function<<<1, 1, 0, stream>>>())? };
    stream.synchronize()?;
    Ok(())
}
