//! Which compiled module holds which kernel.
//!
//! A module is one width of keys and one family of kernels, so that a program loads, and the driver compiles, only what it
//! uses.

/// Families of kernels that are used together, and the kernels in each.
pub const FAMILIES: [(&str, &[&str]); 9] = [
    ("textbook", &["co_rank_splits", "merge_one_thread", "merge_basic", "merge_tiled", "merge_circular"]),
    ("merge", &["merge_small", "path_big", "merge_big", "merge_fused"]),
    ("batch", &["merge_small_batch", "merge_batch", "path_ragged", "merge_ragged"]),
    ("pairs", &["merge_pairs", "merge_batch_pairs", "merge_ragged_pairs"]),
    ("sort", &["block_sort", "split_runs", "merge_runs"]),
    (
        "divide",
        &[
            "count_once",
            "divide_once",
            "sort_once",
            "choose_digits",
            "count_twice",
            "count_digits",
            "place_parts",
            "place_buckets",
            "divide",
            "sort_buckets",
            "sort_wide_buckets",
            "sort_long_buckets",
            "sort_rest",
        ],
    ),
    ("divide_with_values", &["divide_with_values", "sort_buckets_with_values", "sort_rest_with_values"]),
    ("radix", &["sort_by_radix"]),
    ("detect", &["detect_runs", "set_indices", "reverse", "copy_runs", "split_long_runs", "merge_long_runs"]),
];

/// The family of a kernel, if there is a kernel of that name.
pub fn family(kernel: &str) -> Option<&'static str> {
    FAMILIES.iter().find(|(_, kernels)| kernels.contains(&kernel)).map(|(family, _)| *family)
}
