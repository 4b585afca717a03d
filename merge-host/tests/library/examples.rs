//! The examples run, and their assertions hold.

#[path = "../../../examples/compaction.rs"]
mod compaction;
#[path = "../../../examples/merge_runs.rs"]
mod merge_runs;
#[path = "../../../examples/sort_vec.rs"]
mod sort_vec;

#[test]
fn compaction_keeps_the_newest() {
    compaction::main().unwrap();
}

#[test]
fn runs_are_merged() {
    merge_runs::main().unwrap();
}

#[test]
fn vectors_are_sorted() {
    sort_vec::main().unwrap();
}
