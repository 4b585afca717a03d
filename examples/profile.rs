//! Prints the bank conflicts and the global memory sectors of an operation, for each source line of its kernels. The
//! emulator runs the kernels, so that no GPU is needed. The arguments are an operation, the number of keys, and
//! optionally the type of the keys, `u32` or `u64`:
//!
//! ```sh
//! cargo run -p merge-host --example profile -- sort 200000
//! cargo run -p merge-host --example profile -- merge 100000 u64
//! ```

use cuda_std::Word;
use cuda_std::emulator::Profile;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::groups::Unique;
use merge_host::launches::merge::Merge;
use merge_host::launches::segments::{Bounds, SortSegments};
use merge_host::launches::sets::Sets;
use merge_host::launches::sort::Sort;
use merge_host::launches::top_k::TopK;
use merge_host::launches::{Arrays, KeyOrder};
use merge_host::{GpuKey, MergeKernel, SetOperation, SortKernel};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::process::ExitCode;

const USAGE: &str = "profile merge|merge-sort|segments|sort|top|union|unique KEYS [u32|u64]";

/// Decides the keys and the order of threads.
const SEED: u64 = 1;

/// Keys of a segment, and of the result of `top`.
const PART: usize = 1000;

/// Runs the operation on `n` random keys, and returns its profile. `None` if there is no such operation.
fn profile<K: GpuKey + Word>(operation: &str, n: usize) -> Option<Profile> {
    let device = Device::new(SEED);
    device.set_profiled(true);
    let coding = KeyOrder::ASCENDING.coding::<K>().into();
    let mut random = StdRng::seed_from_u64(SEED);
    let mut array = |n: usize, sorted: bool| {
        let mut keys: Vec<u64> = (0..n).map(|_| random.next_u64() >> (64 - 8 * size_of::<K>())).collect();
        if sorted {
            keys.sort_unstable();
        }
        let keys: Vec<K> = keys.into_iter().map(Word::from_register).collect();
        Arrays::keys(address(device.array(&keys)), n)
    };
    let out = |n| Arrays::keys(address(device.uninit::<K>(n)), n);
    let count = address(device.uninit::<u64>(1));
    let mut sort = |kernel| device.run(&Sort::new(kernel, coding, array(n, false), false));
    _ = match operation {
        "sort" => sort(SortKernel::Auto),
        "merge-sort" => sort(SortKernel::MergePath),
        "segments" => {
            let bounds = Bounds::of_length(PART, n);
            device.run(&SortSegments { coding, at: array(n, false), bounds, indexes: false })
        }
        "top" => device.run(&TopK { coding, from: array(n, false), out: out(PART.min(n)) }),
        "unique" => device.run(&Unique { coding, at: array(n, true), out: out(n), count }),
        "merge" | "union" => {
            let (a, b, out) = (array(n / 2, true), array(n - n / 2, true), out(n));
            match operation {
                "merge" => device.run(&Merge { kernel: MergeKernel::Auto, coding, a, b, out }),
                _ => device.run(&Sets { coding, operation: SetOperation::Union, a, b, out, count }),
            }
        }
        _ => return None,
    };
    Some(device.profile())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let profile = match arguments[..] {
        [operation, n] | [operation, n, "u32"] => n.parse().ok().and_then(|n| profile::<u32>(operation, n)),
        [operation, n, "u64"] => n.parse().ok().and_then(|n| profile::<u64>(operation, n)),
        _ => None,
    };
    match profile {
        Some(profile) => {
            print!("{profile}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
