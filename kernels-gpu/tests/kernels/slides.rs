//! The slides' example, with 9 keys and 7 keys, and the path that its 16 threads find.
//!
//! `cargo test -p kernels-gpu --test slides -- --nocapture` prints it.

// The grid has one row and one column more than there are keys.
#![allow(clippy::needless_range_loop)]

use crate::common::*;
use kernels_gpu::thread::diagonal::diagonal_search;

const A: [i32; 9] = [1, 2, 5, 6, 6, 9, 11, 15, 16];
const B: [i32; 7] = [4, 7, 8, 10, 12, 13, 14];
const MERGED: [i32; 16] = [1, 2, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// (x, y) after k steps: x keys of B and y keys of A.
fn path() -> Vec<(usize, usize)> {
    (0..=A.len() + B.len())
        .map(|k| {
            let y = diagonal_search(k, &A[..], &B[..]);
            (k - y, y)
        })
        .collect()
}

/// The grid of the slides, 1 where A[y] < B[x], with the path's points marked.
fn picture(path: &[(usize, usize)]) -> String {
    let mut text = String::from("         B:");
    B.iter().for_each(|key| text += &format!("{key:>4}"));
    for y in 0..=A.len() {
        text += &if y < A.len() { format!("\nA[{y}] = {:>2}  ", A[y]) } else { "\n           ".to_owned() };
        for x in 0..=B.len() {
            text += if path.contains(&(x, y)) { "*" } else { " " };
            if y < A.len() && x < B.len() {
                text += &format!(" {} ", u8::from(A[y] < B[x]));
            }
        }
    }
    text
}

#[test]
fn the_path_is_the_slides_path() {
    let path = path();
    println!("{}", picture(&path));
    for (thread, &(x, y)) in path[..16].iter().enumerate() {
        let from_a = y < A.len() && (x == B.len() || A[y] <= B[x]);
        let (name, index, key) = if from_a { ("A", y, A[y]) } else { ("B", x, B[x]) };
        println!("thread {thread:>2}: Q = ({x}, {y}), M[{thread}] = {name}[{index}] = {key}");
        assert_eq!(key, MERGED[thread], "thread {thread} at Q = ({x}, {y})");
    }
    // The threads that the slides trace. The slides stop thread 9 at (4, 5), where A[5] = 9 is not above B[3] = 10. The
    // path does not pass there, and the key would be 12.
    assert_eq!(path[..3], [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(path[9], (3, 6));
    // Every step goes right or down, and the last point is the corner.
    assert!(path.windows(2).all(|step| step[1].0 - step[0].0 + step[1].1 - step[0].1 == 1));
    assert_eq!(path[16], (7, 9));
}

#[test]
fn the_kernels_merge_the_example() {
    let seed = fresh_seed();
    assert_eq!(run::small(seed, &A, &B, 16).unwrap(), MERGED);
    assert_eq!(run::small(seed, &A, &B, 32).unwrap(), MERGED);
    assert_eq!(run::big::<i32, 4, 3>(seed, &A, &B).unwrap(), MERGED);
}
