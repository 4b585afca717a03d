//! Moves items to many rooms in turn, a line of the cache at once.
//!
//! Written one by one, each item would touch another line and another page, and the processor would read every line from
//! memory only to have all of it overwritten. So the items of a room gather in a line of their own, which stays in the
//! cache. Once that is full, it goes to memory as a whole, past the cache.
//!
//! ```text
//!   gathered     │ . . 1 2 │          │ 3 4 5 6 │          │ 7 8 . . │   one after another, in the same line of the cache
//!                      │                   │                    │
//!                    copied             streamed              copied
//!                      ▼                   ▼                    ▼
//!   memory    …  │ . . 1 2 │──────────│ 3 4 5 6 │──────────│ 7 8 . . │  …
//!                    └──────────────── room ───────────────────┘
//! ```
//!
//! An item has the same place in its line here as there. The first line and the last are shared with the rooms before and
//! after, so that only the room's part of them is copied.

use std::mem;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Rooms, and for each the line that is not full yet.
pub(super) struct Lines<'a, T, const ROOMS: usize> {
    /// The lines, one after another.
    gathered: &'a mut [T],
    /// Up to where each of them is full. What is full as a whole is in its room already.
    ends: [u8; ROOMS],
    /// What is left of each room, apart from the items of its line.
    rooms: Vec<&'a mut [T]>,
}

impl<'a, T: Copy, const ROOMS: usize> Lines<'a, T, ROOMS> {
    /// Items of a line, a power of two. Of a size that does not divide a line, these are as many as make most of one.
    const ITEMS: usize = match size_of::<T>() {
        0 => 1,
        size if size > LINE => 1,
        size => 1 << (LINE / size).ilog2(),
    };

    /// Memory for the lines of so many rooms. What it holds does not matter: it is `any`.
    pub fn buffer(any: T, rooms: usize) -> Vec<T> {
        // A line more, as it may begin in the middle of one.
        vec![any; (rooms + 1) * Self::ITEMS]
    }

    /// `buffer` is one that [`buffer`](Self::buffer) has made for as many rooms. There are `ROOMS` at most.
    pub fn new(buffer: &'a mut [T], rooms: Vec<&'a mut [T]>) -> Self {
        let skipped = (Self::ITEMS - Self::place_in_line(buffer)) % Self::ITEMS;
        let gathered = &mut buffer[skipped..][..rooms.len() * Self::ITEMS];
        let mut ends = [0; ROOMS];
        assert!(rooms.len() <= ROOMS);
        ends.iter_mut().zip(&rooms).for_each(|(end, room)| *end = Self::place_in_line(room) as u8);
        Lines { gathered, ends, rooms }
    }

    /// How many items are between the beginning of a line and that of `items`, or 0 if none begins where a line does.
    fn place_in_line(items: &[T]) -> usize {
        let address = items.as_ptr().addr();
        let fits = Self::ITEMS * size_of::<T>() == LINE && address.is_multiple_of(size_of::<T>());
        if fits { address % LINE / size_of::<T>() } else { 0 }
    }

    /// Moves an item to the next place of a room.
    #[inline(always)]
    pub fn push(&mut self, room: usize, item: T) {
        if size_of::<T>() == 0 {
            return;
        }
        let place = usize::from(self.ends[room]) % Self::ITEMS;
        self.gathered[room * Self::ITEMS + place] = item;
        self.ends[room] = place as u8 + 1;
        if place + 1 == Self::ITEMS {
            self.write(room);
            self.ends[room] = 0;
        }
    }

    /// Writes the line of a room to it.
    #[inline(always)]
    fn write(&mut self, room: usize) {
        let to = mem::take(&mut self.rooms[room]);
        let line = &self.gathered[room * Self::ITEMS..][..Self::ITEMS];
        let line = &line[Self::place_in_line(to)..usize::from(self.ends[room])];
        let (to, rest) = to.split_at_mut(line.len());
        self.rooms[room] = rest;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if size_of_val(line) == LINE && to.as_ptr().addr().is_multiple_of(LINE) {
            // SAFETY: both are as long as the line, `to` begins where a line does, and `drop` waits for what is written
            // before anyone else can read it.
            return unsafe { stream(line.as_ptr(), to.as_mut_ptr()) };
        }
        to.copy_from_slice(line);
    }

    /// Writes the lines that are not full.
    pub fn finish(mut self) {
        if size_of::<T>() > 0 {
            (0..self.rooms.len()).for_each(|room| self.write(room));
        }
    }
}

impl<T, const ROOMS: usize> Drop for Lines<'_, T, ROOMS> {
    /// Waits for the lines that go to memory past the cache: other threads read the rooms next.
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: every x86-64 processor has this instruction, of SSE.
        unsafe {
            std::arch::x86_64::_mm_sfence()
        };
    }
}

/// Copies a line to memory past the cache.
///
/// The instructions are spelt out, as the intrinsics for them take numbers, and what is copied may be uninitialised.
///
/// # Safety
/// `LINE` bytes can be read at `from` and written at `to`, which is a multiple of `LINE`. This thread calls `_mm_sfence`
/// before `to` is read, or written again.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn stream<T>(from: *const T, to: *mut T) {
    // SAFETY: by the contract above. Every x86-64 processor has these instructions, of SSE.
    unsafe {
        std::arch::asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movntps [{to}], {a}",
            "movntps [{to} + 16], {b}",
            "movntps [{to} + 32], {c}",
            "movntps [{to} + 48], {d}",
            from = in(reg) from,
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use std::mem::MaybeUninit;

    const ROOMS: usize = 256;

    /// Rooms of `lengths`, then 0, then `rest`, in memory that begins so many items after any place where a line does.
    fn check<T: Copy + PartialEq + Debug>(item: impl Fn(usize) -> T, skipped: usize, lengths: &[usize], rest: usize) {
        let length_of = |room: usize| match room {
            room if room < lengths.len() => lengths[room],
            room if room == ROOMS - 1 => rest,
            _ => 0,
        };
        let total: usize = (0..ROOMS).map(length_of).sum();
        let nothing = item(usize::MAX);
        let mut memory = vec![nothing; skipped + total + 1];
        let (mut rooms, mut left) = (Vec::new(), &mut memory[skipped..][..total]);
        for room in 0..ROOMS {
            rooms.push(left.split_off_mut(..length_of(room)).unwrap());
        }
        let mut buffer = Lines::<_, ROOMS>::buffer(nothing, ROOMS);
        let mut lines = Lines::<_, ROOMS>::new(&mut buffer, rooms);
        // In turn, while there is room.
        let (mut want, mut pushed) = (vec![Vec::new(); ROOMS], 0);
        for round in 0.. {
            let open: Vec<_> = (0..ROOMS).filter(|room| length_of(*room) > round).collect();
            for room in open.iter().rev() {
                lines.push(*room, item(pushed));
                want[*room].push(item(pushed));
                pushed += 1;
            }
            if open.is_empty() {
                break;
            }
        }
        lines.finish();
        assert_eq!(memory[skipped..][..total], want.concat(), "{lengths:?}, {skipped} skipped");
        assert!(memory[..skipped].iter().chain(&memory[skipped + total..]).all(|item| *item == nothing));
    }

    fn check_all<T: Copy + PartialEq + Debug>(item: impl Fn(usize) -> T) {
        let line = LINE / size_of::<T>().max(1);
        let step = if cfg!(miri) { 7 } else { 1 };
        for skipped in (0..=line).step_by(step) {
            for length in [0, 1, line - 1, line, line + 1, 2 * line, 3 * line + 2] {
                check(&item, skipped, &[length, 2, line, 0, length, length], length);
            }
        }
    }

    #[test]
    fn items_of_all_sizes_go_to_rooms_of_all_lengths() {
        check_all(|i| i as u8);
        check_all(|i| i as u16);
        check_all(|i| i as u32);
        check_all(|i| i as u64);
        check_all(|i| i as u128);
        check_all(|i| [i as u8; 3]);
        check_all(|i| [i as u8; 8]);
        check_all(|i| [i as u32; 3]);
        check_all(|i| [i as u64; 2]);
        check_all(|i| [i as u64; 5]);
        check_all(|i| [i as u64; 9].map(|i| i as u8));
        check_all(|_| ());
    }

    #[test]
    fn items_stay_as_uninitialised_as_they_are() {
        let mut memory = [MaybeUninit::<(u8, u32)>::uninit(); 100];
        let (room, other) = memory.split_at_mut(3);
        let mut rooms: Vec<&mut [_]> = vec![room, other];
        rooms.resize_with(ROOMS, Default::default);
        let mut buffer = Lines::<_, ROOMS>::buffer(MaybeUninit::uninit(), ROOMS);
        let mut lines = Lines::<_, ROOMS>::new(&mut buffer, rooms);
        for i in 0..97 {
            lines.push(1, if i % 2 == 0 { MaybeUninit::new((i, i.into())) } else { MaybeUninit::uninit() });
        }
        (0..3).for_each(|_| lines.push(0, MaybeUninit::uninit()));
        lines.finish();
        for i in (0..97).step_by(2) {
            // SAFETY: these are the places of the items that are initialised.
            assert_eq!(unsafe { memory[3 + usize::from(i)].assume_init() }, (i, i.into()));
        }
    }

    #[test]
    #[should_panic]
    fn more_items_than_there_is_room_for_go_nowhere() {
        let mut memory = [0u64; 20];
        let mut rooms: Vec<&mut [_]> = vec![&mut memory[..5]];
        rooms.resize_with(ROOMS, Default::default);
        let mut buffer = Lines::<_, ROOMS>::buffer(0, ROOMS);
        let mut lines = Lines::<_, ROOMS>::new(&mut buffer, rooms);
        (0..20).for_each(|i| lines.push(0, i));
        lines.finish();
    }
}
