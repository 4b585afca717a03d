//! The sources' algorithms with their printed mistakes, on the CPU.
//!
//! Each function follows the control flow of a figure or listing. The effect of a mistake on a GPU depends on the
//! contents of memory, so that every access is checked here. An index outside of an array, a slot without a key and an
//! endless loop are a [`Failure`]. A function with several mistakes has an argument for each, to show the effect of one
//! alone. Indices and lengths are `i64`, except in [`co_rank_int`] and [`bounds_int`], where their width is the
//! mistake.

use crate::common::merged;

/// The reason that a printed form ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An index outside of the named array.
    Index(&'static str, i64),
    /// A subarray of the named array, by begin and end, that is outside of it or has its ends in the wrong order.
    Subarray(&'static str, i64, i64),
    /// A read of a slot of the named array in shared memory that has no key.
    NoKey(&'static str, i64),
    /// A search of more than [`MAX_STEPS`] steps.
    Endless,
}

/// A result, or the failure that ended the form before it had one.
pub type Outcome<T> = Result<T, Failure>;

/// Many more steps than a binary search takes in the inputs of the tests.
pub const MAX_STEPS: usize = 1000;

/// Element `index` of an array.
fn at<T: Copy>(name: &'static str, array: &[T], index: i64) -> Outcome<T> {
    usize::try_from(index).ok().and_then(|i| array.get(i)).copied().ok_or(Failure::Index(name, index))
}

/// Elements `begin` to `end` of an array.
fn subarray<'a>(name: &'static str, array: &'a [u32], begin: i64, end: i64) -> Outcome<&'a [u32]> {
    let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
    range.and_then(|(from, to)| array.get(from..to)).ok_or(Failure::Subarray(name, begin, end))
}

/// The loop of figures 12.5 and 12.19 for arrays of `m` and `n` keys. `b_before` reads the key before `j`, and gets `i`
/// as well.
fn co_rank(
    k: i64,
    (m, n): (i64, i64),
    a: impl Fn(i64) -> Outcome<u32>,
    b: impl Fn(i64) -> Outcome<u32>,
    b_before: impl Fn(i64, i64) -> Outcome<u32>,
) -> Outcome<i64> {
    let mut i = k.min(m);
    let mut j = k - i;
    let (mut i_low, mut j_low) = ((k - n).max(0), (k - m).max(0));
    for _ in 0..MAX_STEPS {
        if i > 0 && j < n && a(i - 1)? > b(j)? {
            let delta = (i - i_low + 1) >> 1;
            j_low = j;
            (i, j) = (i - delta, j + delta);
        } else if j > 0 && i < m && b_before(i, j)? >= a(i)? {
            let delta = (j - j_low + 1) >> 1;
            i_low = i;
            (i, j) = (i + delta, j - delta);
        } else {
            return Ok(i);
        }
    }
    Err(Failure::Endless)
}

/// [`co_rank`] of arrays, which figure 12.5 prints correctly.
fn co_rank_of_arrays(k: i64, a: &[u32], b: &[u32]) -> Outcome<i64> {
    let lengths = (a.len() as i64, b.len() as i64);
    co_rank(k, lengths, |i| at("A", a, i), |j| at("B", b, j), |_, j| at("B", b, j - 1))
}

/// The rounding of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// As printed: the operands of the division are `int`, so that `ceil` has no effect.
    Down,
    /// As meant.
    Up,
}

impl Rounding {
    fn divide(self, dividend: i64, divisor: i64) -> i64 {
        match self {
            Self::Down => dividend / divisor,
            Self::Up => (dividend + divisor - 1) / divisor,
        }
    }
}

/// Merges `a` and `b` in `parts` segments of C, for threads (figure 12.9, lines 3 to 5) or blocks (figure 12.11, lines
/// 5 and 6). Unwritten keys are `None`.
pub fn merge_in_parts(a: &[u32], b: &[u32], parts: i64, rounding: Rounding) -> Outcome<Vec<Option<u32>>> {
    let total = (a.len() + b.len()) as i64;
    let per_part = rounding.divide(total, parts);
    let mut c = vec![None; total as usize];
    for part in 0..parts {
        // Only the end is limited to m + n.
        let k_curr = part * per_part;
        let k_next = ((part + 1) * per_part).min(total);
        let (i_curr, i_next) = (co_rank_of_arrays(k_curr, a, b)?, co_rank_of_arrays(k_next, a, b)?);
        let from_a = subarray("A", a, i_curr, i_next)?;
        let from_b = subarray("B", b, k_curr - i_curr, k_next - i_next)?;
        let merged = merged(from_a, from_b);
        (k_curr as usize..).zip(merged).for_each(|(k, key)| c[k] = Some(key));
    }
    Ok(c)
}

/// `k_curr` and `k_next` of [`merge_in_parts`], rounded up, in an `int` that wraps around.
pub fn bounds_int(part: i32, parts: i32, (m, n): (i32, i32)) -> (i32, i32) {
    let total = m.wrapping_add(n);
    let per_part = total / parts + i32::from(total % parts > 0);
    (part.wrapping_mul(per_part), (part + 1).wrapping_mul(per_part).min(total))
}

/// Figure 12.5 with an `int` that wraps around, for arrays of keys that `a` and `b` compute.
pub fn co_rank_int(
    k: i32,
    (m, n): (i32, i32),
    a: impl Fn(i32) -> Outcome<u64>,
    b: impl Fn(i32) -> Outcome<u64>,
) -> Outcome<i32> {
    let mut i = k.min(m);
    let mut j = k.wrapping_sub(i);
    let (mut i_low, mut j_low) = (k.wrapping_sub(n).max(0), k.wrapping_sub(m).max(0));
    for _ in 0..MAX_STEPS {
        if i > 0 && j < n && a(i - 1)? > b(j)? {
            let delta = i.wrapping_sub(i_low).wrapping_add(1) >> 1;
            j_low = j;
            (i, j) = (i.wrapping_sub(delta), j.wrapping_add(delta));
        } else if j > 0 && i < m && b(j - 1)? >= a(i)? {
            let delta = j.wrapping_sub(j_low).wrapping_add(1) >> 1;
            i_low = i;
            (i, j) = (i.wrapping_add(delta), j.wrapping_sub(delta));
        } else {
            return Ok(i);
        }
    }
    Err(Failure::Endless)
}

/// The mistakes of the tiled merge, figures 12.12 and 12.13. The mistake in the loads is in a test's own kernel.
#[derive(Clone, Copy, Debug)]
pub struct Tiled {
    /// Line 21: the number of rounds.
    pub rounds: Rounding,
    /// Line 53: the split at the end of a round assumes two full tiles.
    pub tiles_are_full: bool,
}

/// The tiled merge by one thread, in tiles of `tile` keys. Returns C and `C_completed`.
pub fn merge_tiled(a: &[u32], b: &[u32], tile: i64, form: Tiled) -> Outcome<(Vec<u32>, i64)> {
    let (mut a_s, mut b_s) = (vec![None; tile as usize], vec![None; tile as usize]);
    let (a_length, b_length) = (a.len() as i64, b.len() as i64);
    let c_length = a_length + b_length;
    let (mut c, mut c_completed, mut a_consumed, mut b_consumed) = (vec![], 0, 0, 0);
    let slot = |name, tile: &[Option<u32>], i| at(name, tile, i)?.ok_or(Failure::NoKey(name, i));
    for _ in 0..form.rounds.divide(c_length, tile) {
        for i in 0..tile {
            if i < a_length - a_consumed {
                a_s[i as usize] = Some(at("A", a, a_consumed + i)?);
            }
            if i < b_length - b_consumed {
                b_s[i as usize] = Some(at("B", b, b_consumed + i)?);
            }
        }
        let split = |k, lengths| {
            let b_slot = |j| slot("B_S", &b_s, j);
            co_rank(k, lengths, |i| slot("A_S", &a_s, i), b_slot, |_, j| b_slot(j - 1))
        };
        let loaded = (tile.min(a_length - a_consumed), tile.min(b_length - b_consumed));
        let c_next = tile.min(c_length - c_completed);
        let a_next = split(c_next, loaded)?;
        let keys = |name, tile: &[Option<u32>], n| (0..n).map(|i| slot(name, tile, i)).collect::<Outcome<Vec<u32>>>();
        c.extend(merged(&keys("A_S", &a_s, a_next)?, &keys("B_S", &b_s, c_next - a_next)?));

        if form.tiles_are_full {
            c_completed += tile;
            a_consumed += split(tile, (tile, tile))?;
        } else {
            c_completed += c_next;
            a_consumed += a_next;
        }
        b_consumed = c_completed - a_consumed;
    }
    Ok((c, c_completed))
}

/// The mistakes of the circular-buffer merge, figures 12.16 and 12.19.
#[derive(Clone, Copy, Debug)]
pub struct Circular {
    /// Figure 12.16, line 37: keys of B go behind `tile_size - A_S_consumed` slots.
    pub b_goes_where_a_does: bool,
    /// Figure 12.16, lines 32 and 37: keys are loaded from `A_consumed` and `B_consumed`, although the buffer has the
    /// next keys already.
    pub loads_from_consumed: bool,
    /// Figure 12.19: `j_m_1_cir` is computed from `i`.
    pub b_before_is_of_i: bool,
}

impl Circular {
    /// As meant.
    pub const MEANT: Self = Self { b_goes_where_a_does: false, loads_from_consumed: false, b_before_is_of_i: false };
}

/// A circular buffer: key `i` is `keys[(start + i) % keys.len()]`.
pub struct Buffer<'a> {
    /// The name in a [`Failure`].
    pub name: &'static str,
    /// The slots.
    pub keys: &'a [Option<u32>],
    /// The slot of key 0.
    pub start: i64,
}

impl Buffer<'_> {
    /// Key `i`. As in C, the remainder of a negative number is negative.
    fn at(&self, i: i64) -> Outcome<u32> {
        let slot = (self.start + i) % self.keys.len() as i64;
        at(self.name, self.keys, slot)?.ok_or(Failure::NoKey(self.name, slot))
    }
}

/// Figure 12.19: the co-rank of `k` in buffers of `m` and `n` keys.
pub fn co_rank_circular(k: i64, a: &Buffer, b: &Buffer, lengths: (i64, i64), form: Circular) -> Outcome<i64> {
    let b_before = |i, j| b.at(if form.b_before_is_of_i { i } else { j } - 1);
    co_rank(k, lengths, |i| a.at(i), |j| b.at(j), b_before)
}

/// The circular-buffer merge by a block of `threads` threads. `tile` is a multiple of `threads`.
pub fn merge_circular(a: &[u32], b: &[u32], tile: i64, threads: i64, form: Circular) -> Outcome<Vec<u32>> {
    let (mut a_s, mut b_s) = (vec![None; tile as usize], vec![None; tile as usize]);
    let (a_length, b_length) = (a.len() as i64, b.len() as i64);
    let c_length = a_length + b_length;
    let (mut c, mut c_completed, mut a_consumed, mut b_consumed) = (vec![], 0, 0, 0);
    let (mut a_s_start, mut b_s_start, mut a_s_consumed, mut b_s_consumed) = (0, 0, tile, tile);
    while c_completed < c_length {
        // Loads `count` keys to the slots that follow the first `kept` ones, counted from the buffer's start.
        let load = |keys: &[u32], consumed: i64, count: i64, buffer: &mut [Option<u32>], behind: i64| {
            let first = consumed + if form.loads_from_consumed { 0 } else { tile - count };
            for i in (0..count).take_while(|i| first + i < keys.len() as i64) {
                buffer[((behind + i) % tile) as usize] = Some(keys[(first + i) as usize]);
            }
        };
        load(a, a_consumed, a_s_consumed, &mut a_s, a_s_start + tile - a_s_consumed);
        let kept = tile - if form.b_goes_where_a_does { a_s_consumed } else { b_s_consumed };
        load(b, b_consumed, b_s_consumed, &mut b_s, b_s_start + kept);

        let (on_a, on_b) = (
            Buffer { name: "A_S", keys: &a_s, start: a_s_start },
            Buffer { name: "B_S", keys: &b_s, start: b_s_start },
        );
        let lengths = (tile.min(a_length - a_consumed), tile.min(b_length - b_consumed));
        let split = |k| co_rank_circular(k, &on_a, &on_b, lengths, form);
        let count = tile.min(c_length - c_completed);
        for thread in 0..threads {
            let (c_curr, c_next) =
                ((thread * (tile / threads)).min(count), ((thread + 1) * (tile / threads)).min(count));
            let (a_curr, a_next) = (split(c_curr)?, split(c_next)?);
            let keys = |buffer: &Buffer, from, to| (from..to).map(|i| buffer.at(i)).collect::<Outcome<Vec<u32>>>();
            let (from_a, from_b) = (keys(&on_a, a_curr, a_next)?, keys(&on_b, c_curr - a_curr, c_next - a_next)?);
            c.extend(merged(&from_a, &from_b));
        }
        a_s_consumed = split(count)?;
        b_s_consumed = count - a_s_consumed;
        a_consumed += a_s_consumed;
        c_completed += count;
        b_consumed = c_completed - a_consumed;
        a_s_start = (a_s_start + a_s_consumed) % tile;
        b_s_start = (b_s_start + b_s_consumed) % tile;
    }
    Ok(c)
}

/// The course's Algorithm 1: for each key of M, whether it comes from A. B comes first among equal keys.
pub fn algorithm_1(a: &[u32], b: &[u32]) -> Vec<bool> {
    let (mut i, mut j) = (0, 0);
    let from_a = |_| {
        let from_a = i < a.len() && (j >= b.len() || a[i] < b[j]);
        *(if from_a { &mut i } else { &mut j }) += 1;
        from_a
    };
    (0..a.len() + b.len()).map(from_a).collect()
}

/// The course's Algorithm 2: key `i` of the merge. `Q_x <= B` compares an index with an array, which bounds nothing.
/// With `bounded`, it compares with the length of B, as meant.
pub fn algorithm_2(i: i64, a: &[u32], b: &[u32], bounded: bool) -> Outcome<u32> {
    let (m, n) = (a.len() as i64, b.len() as i64);
    let (a_at, b_at) = (|y| at("A", a, y), |x| at("B", b, x));
    // Points are (x, y).
    let (mut low, mut high) = if i > m { ((i - m, m), (m, i - m)) } else { ((0, i), (i, 0)) };
    for _ in 0..MAX_STEPS {
        let offset = (low.1 - high.1).abs() / 2;
        let (x, y) = (low.0 + offset, low.1 - offset);
        if y >= 0 && (x <= n || !bounded) && (y == m || x == 0 || a_at(y)? > b_at(x - 1)?) {
            if x == n || y == 0 || a_at(y - 1)? <= b_at(x)? {
                return if y < m && (x == n || a_at(y)? <= b_at(x)?) { a_at(y) } else { b_at(x) };
            }
            low = (x + 1, y - 1);
        } else {
            high = (x - 1, y + 1);
        }
    }
    Err(Failure::Endless)
}

/// The co-rank of the lecture notes, which never raises `i_low` and `j_low` and rounds half of a range down.
pub fn co_rank_of_notes(k: i64, a: &[u32], b: &[u32]) -> Outcome<i64> {
    let (m, n) = (a.len() as i64, b.len() as i64);
    let mut i = k.min(m);
    let mut j = k - i;
    let (i_low, j_low) = ((k - n).max(0), (k - m).max(0));
    for _ in 0..MAX_STEPS {
        if i > 0 && j < n && at("A", a, i - 1)? > at("B", b, j)? {
            let delta = ((i - i_low) / 2).max(1);
            (i, j) = (i - delta, j + delta);
        } else if j > 0 && i < m && at("B", b, j - 1)? >= at("A", a, i)? {
            let delta = ((j - j_low) / 2).max(1);
            (i, j) = (i + delta, j - delta);
        } else {
            return Ok(i);
        }
    }
    Err(Failure::Endless)
}

/// The block sizes that the course's text allows for merged runs of `d` keys: multiples of `d` below 1024.
pub fn blocks_of_course(d: u32) -> Vec<u32> {
    (1..1024).filter(|threads| threads % d == 0).collect()
}
