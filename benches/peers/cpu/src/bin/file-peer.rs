//! A peer of `gmerge sort IN.u32 -o OUT.u32`: reads a file, sorts it with rdst on all cores, and writes it.
//!
//! ```text
//! file-peer IN.u32 OUT.u32
//! ```

use rayon::prelude::*;
use rdst::RadixSort;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Bytes that a thread reads at once.
const READ_BLOCK: usize = 4 << 20;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (from, to) = (arguments.next().expect("IN"), arguments.next().expect("OUT"));
    let start = Instant::now();
    let file = File::open(from)?;
    let mut keys = vec![0u32; file.metadata()?.len() as usize / 4];
    // SAFETY: the slice covers the bytes of `keys`, and every bit pattern is a `u32`.
    let bytes = unsafe { std::slice::from_raw_parts_mut(keys.as_mut_ptr().cast::<u8>(), size_of_val(&*keys)) };
    let blocks = bytes.par_chunks_mut(READ_BLOCK).enumerate();
    blocks.try_for_each(|(i, block)| file.read_exact_at(block, (i * READ_BLOCK) as u64))?;
    let read = start.elapsed();
    keys.radix_sort_unstable();
    let sorted = start.elapsed();
    // SAFETY: the slice covers the bytes of `keys`, which are initialised.
    let bytes = unsafe { std::slice::from_raw_parts(keys.as_ptr().cast::<u8>(), size_of_val(&*keys)) };
    File::create(to)?.write_all(bytes)?;
    let all = start.elapsed();
    println!("read {read:.2?}, sort {:.2?}, write {:.2?}, all {all:.2?}", sorted - read, all - sorted);
    Ok(())
}
