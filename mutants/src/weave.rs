//! Writes sources that contain all planted errors, of which one is chosen when a test program starts.

use crate::find::{Kind, Place};
use std::fmt::Write;
use std::ops::Range;

/// A planted error.
#[derive(Clone)]
pub struct Mutant {
    pub number: u32,
    /// The number of the first error at the same place.
    pub place: u32,
    /// The file, relative to the root of the repository.
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub what: String,
}

/// A source file with all of its errors.
pub struct Woven {
    pub text: String,
    /// The bytes of each place in `text`.
    places: Vec<Range<usize>>,
}

impl Woven {
    /// The index of the innermost place with byte `at`.
    pub fn place_at(&self, at: usize) -> Option<usize> {
        let places = 0..self.places.len();
        places.filter(|&place| self.places[place].contains(&at)).min_by_key(|&place| self.places[place].len())
    }

    /// The indices of the places that begin in `range`. If none does, the first place behind it.
    pub fn places_in(&self, range: Range<usize>) -> Vec<usize> {
        let start = |place: &usize| self.places[*place].start;
        let found: Vec<usize> = (0..self.places.len()).filter(|place| range.contains(&start(place))).collect();
        if !found.is_empty() {
            return found;
        }
        (0..self.places.len()).filter(|place| start(place) >= range.end).min_by_key(start).into_iter().collect()
    }

    /// The indices of the places that begin in the line of byte `at`.
    pub fn places_in_line(&self, at: usize) -> Vec<usize> {
        let start = self.text[..at].rfind('\n').map_or(0, |before| before + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |after| at + after);
        (0..self.places.len()).filter(|&place| (start..end).contains(&self.places[place].start)).collect()
    }
}

/// The module of each crate that tells which error is chosen. A test program gets the number of the error in the
/// variable `MUTANT`. With `MUTANTS_REACHED` it appends to a file the first number of each place that it reaches.
pub const CHOICE: &str = r#"
#[doc(hidden)]
#[allow(missing_docs)]
pub mod __mutants {
    extern crate std;
    use core::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

    const UNREAD: u32 = u32::MAX;
    const RECORD: u32 = u32::MAX - 1;
    static CHOSEN: AtomicU32 = AtomicU32::new(UNREAD);
    static REACHED: [AtomicU8; 1 << 20] = [const { AtomicU8::new(0) }; 1 << 20];

    /// The place's chosen error, counted from 0, or `count`.
    #[inline(never)]
    pub fn at(first: u32, count: u32) -> u32 {
        let mut chosen = CHOSEN.load(Relaxed);
        if chosen >= RECORD {
            slow(chosen, first);
            chosen = CHOSEN.load(Relaxed);
        }
        chosen.wrapping_sub(first).min(count)
    }

    #[cold]
    #[inline(never)]
    fn slow(chosen: u32, first: u32) {
        // While places are recorded, each of them comes here each time that it is reached.
        if chosen == RECORD && REACHED[first as usize].load(Relaxed) != 0 {
            return;
        }
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let record = std::env::var_os("MUTANTS_REACHED");
        if chosen == UNREAD {
            CHOSEN.store(if record.is_some() { RECORD } else { number("MUTANT").unwrap_or(RECORD - 1) }, Relaxed);
        }
        if let Some(path) = record && REACHED[first as usize].swap(1, Relaxed) == 0 {
            use std::io::Write;
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(std::format!("{first}\n").as_bytes()).unwrap();
        }
    }
}
"#;

/// Weaves the errors of `places` into `source`. `first` is the number of the first one.
pub fn weave(source: &str, places: &[Place], first: u32) -> Woven {
    let mut weaver = Weaver {
        source,
        places,
        next: 0,
        number: first,
        woven: Woven { text: String::new(), places: vec![0..0; places.len()] },
    };
    weaver.write(0..source.len());
    weaver.woven
}

struct Weaver<'s> {
    source: &'s str,
    places: &'s [Place],
    /// The next place.
    next: usize,
    /// The number of its first error.
    number: u32,
    woven: Woven,
}

impl Weaver<'_> {
    /// Writes the bytes in `range` of the source, with the errors of the places in it.
    fn write(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while let Some(place) = self.places.get(self.next).filter(|place| place.range.end <= range.end) {
            let (index, begin) = (self.next, place.range.start);
            self.woven.text.push_str(&self.source[at..begin]);
            let start = self.woven.text.len();
            self.next += 1;
            self.write_place(place);
            self.woven.places[index] = start..self.woven.text.len();
            at = place.range.end;
        }
        self.woven.text.push_str(&self.source[at..range.end]);
    }

    fn write_place(&mut self, place: &Place) {
        let (first, count) = (self.number, place.errors.len());
        self.number += count as u32;
        let text = &mut self.woven.text;
        match place.kind {
            Kind::Statement => {
                write!(text, "if crate::__mutants::at({first}, 1) != 0 {{ ").expect("a string takes any text");
                self.write(place.range.clone());
                self.woven.text.push_str(" }");
            }
            Kind::Expression => {
                write!(text, "(match crate::__mutants::at({first}, {count}) {{ ").expect("a string takes any text");
                for (i, error) in place.errors.iter().enumerate() {
                    write!(text, "{i} => {{ {} }} ", error.text).expect("a string takes any text");
                }
                text.push_str("_ => { ");
                self.write(place.range.clone());
                self.woven.text.push_str(" } })");
            }
        }
    }
}
