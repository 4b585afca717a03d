//! Which compiled module holds which kernel.
//!
//! A module is one width of keys and one family of kernels, so that a program loads, and the driver compiles, only what
//! it uses.

use crate::kernels::bounds::{merge_bounds::MERGE_BOUNDS, search_bounds::SEARCH_BOUNDS};
use crate::kernels::count_below::COUNT_BELOW;
use crate::kernels::extract_bits::EXTRACT_BITS;
use crate::kernels::groups::{reduce_groups::REDUCE_GROUPS, run_lengths::RUN_LENGTHS, unique::UNIQUE};
use crate::kernels::merge_batch::MERGE_BATCH;
use crate::kernels::merge_fused::MERGE_FUSED;
use crate::kernels::merge_path::{MERGE_BIG, PATH_BIG};
use crate::kernels::merge_ragged::{MERGE_RAGGED, PATH_RAGGED};
use crate::kernels::narrow::{
    count_keys::COUNT_KEYS,
    fill_keys::FILL_KEYS,
    scan_counts::SCAN_COUNTS,
    widen::{NARROW_KEYS, WIDEN_KEYS},
};
use crate::kernels::pad_keys::PAD_KEYS;
use crate::kernels::set_operation::{balance_path::BALANCE_PATH, combine_sets::COMBINE_SETS};
use crate::kernels::sort::block_sort::BLOCK_SORT;
use crate::kernels::sort::detect_runs::{COPY_RUNS, DETECT_RUNS, REVERSE};
use crate::kernels::sort::divide::{
    choose_digits::CHOOSE_DIGITS,
    count_digits::COUNT_DIGITS,
    count_twice::COUNT_TWICE,
    divide::DIVIDE,
    once::{COUNT_ONCE, DIVIDE_ONCE, SORT_ONCE},
    place_buckets::PLACE_BUCKETS,
    place_parts::PLACE_PARTS,
    sort_buckets::SORT_BUCKETS,
    sort_rest::SORT_REST,
};
use crate::kernels::sort::indices::SET_INDICES;
use crate::kernels::sort::merge_pass::{
    many_runs::{MERGE_MANY_RUNS, SPLIT_MANY_RUNS},
    merge_runs::MERGE_RUNS,
    pad_runs::PAD_RUNS,
    split_runs::SPLIT_RUNS,
};
use crate::kernels::sort::radix::sort_by_radix::SORT_BY_RADIX;
use crate::kernels::sort::segments::{
    find_segments::FIND_SEGMENTS, merge_segments::MERGE_SEGMENTS, sort_middle_by_bins::SORT_MIDDLE_BY_BINS,
    sort_middle_segments::SORT_MIDDLE_SEGMENTS, sort_rows::SORT_ROWS, sort_segments::SORT_SEGMENTS,
    sort_short_segments::SORT_SHORT_SEGMENTS, sort_wide_rows::SORT_WIDE_ROWS,
};
use crate::kernels::sort::sort_small::SORT_SMALL;
use crate::kernels::sort::windows::{MERGE_WINDOWS, SORT_WINDOWS};
use crate::kernels::sum_lengths::SUM_LENGTHS;
use crate::kernels::top_k::{
    choose_digit::CHOOSE_DIGIT,
    collect::COLLECT,
    count_chunks::COUNT_CHUNKS,
    count_digit::COUNT_DIGIT,
    gather::GATHER,
    pack::PACK,
    segments::{copy_firsts::COPY_FIRSTS, select_segments::SELECT_SEGMENTS},
    take_sample::TAKE_SAMPLE,
};
use crate::kernels::words::{GATHER_WORDS, JOIN_WORDS, SPLIT_WORDS};
use crate::textbook::co_rank::CO_RANK_SPLITS;
use crate::textbook::merge_basic::MERGE_BASIC;
use crate::textbook::merge_circular::MERGE_CIRCULAR;
use crate::textbook::merge_small::MERGE_SMALL;
use crate::textbook::merge_small_batch::MERGE_SMALL_BATCH;
use crate::textbook::merge_tiled::MERGE_TILED;
use crate::textbook::sequential::MERGE_ONE_THREAD;
use cuda_std::launch::Kernel;

/// The folder of the compiled modules and their manifest, for the build script of the library.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub const COMPILED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");

/// Families of kernels that are used together, and the kernels in each.
pub const FAMILIES: [(&str, &[Kernel]); 21] = [
    ("textbook", &[CO_RANK_SPLITS, MERGE_ONE_THREAD, MERGE_BASIC, MERGE_TILED, MERGE_CIRCULAR]),
    ("merge", &[MERGE_SMALL, PATH_BIG, MERGE_BIG, MERGE_FUSED, COUNT_BELOW]),
    ("batch", &[MERGE_SMALL_BATCH, MERGE_BATCH, PATH_RAGGED, MERGE_RAGGED]),
    ("sets", &[BALANCE_PATH, COMBINE_SETS]),
    ("groups", &[UNIQUE, RUN_LENGTHS, REDUCE_GROUPS]),
    ("bounds", &[MERGE_BOUNDS, SEARCH_BOUNDS]),
    ("many_runs", &[PAD_RUNS, SPLIT_MANY_RUNS, MERGE_MANY_RUNS]),
    ("sort_small", &[SORT_SMALL]),
    ("sort", &[BLOCK_SORT, SPLIT_RUNS, MERGE_RUNS]),
    (
        "divide",
        &[
            COUNT_ONCE,
            DIVIDE_ONCE,
            SORT_ONCE,
            CHOOSE_DIGITS,
            COUNT_TWICE,
            COUNT_DIGITS,
            PLACE_PARTS,
            PLACE_BUCKETS,
            DIVIDE,
            SORT_BUCKETS,
            SORT_REST,
        ],
    ),
    ("radix", &[SORT_BY_RADIX]),
    ("windows", &[SORT_WINDOWS, MERGE_WINDOWS]),
    ("top_k", &[TAKE_SAMPLE, GATHER, PACK, COUNT_DIGIT, CHOOSE_DIGIT, COUNT_CHUNKS, COLLECT]),
    ("top_k_segments", &[SELECT_SEGMENTS, COPY_FIRSTS]),
    ("segments", &[FIND_SEGMENTS, SORT_SEGMENTS, MERGE_SEGMENTS, SORT_ROWS, SORT_WIDE_ROWS, SORT_SHORT_SEGMENTS]),
    ("middle_segments", &[SORT_MIDDLE_BY_BINS, SORT_MIDDLE_SEGMENTS]),
    ("narrow", &[COUNT_KEYS, SCAN_COUNTS, FILL_KEYS, WIDEN_KEYS, NARROW_KEYS]),
    ("words", &[SPLIT_WORDS, JOIN_WORDS, GATHER_WORDS, EXTRACT_BITS]),
    ("detect", &[DETECT_RUNS, SET_INDICES, REVERSE, COPY_RUNS]),
    ("pad", &[PAD_KEYS]),
    ("offsets", &[SUM_LENGTHS]),
];

/// The family of a kernel, if there is a kernel of that name.
pub fn family(kernel: &str) -> Option<&'static str> {
    let holds = |kernels: &[Kernel]| kernels.iter().any(|other| other.name == kernel);
    FAMILIES.iter().find(|(_, kernels)| holds(kernels)).map(|(family, _)| *family)
}
