//! Complex numbers in .npy files, in NumPy's order, against the standard library's stable sort; and strings of
//! characters in fields.

use crate::common::{Folder, Random, TestKey, gathered, npy, tried};
use std::cmp::Ordering;

/// A type of complex numbers.
struct Complex {
    descr: &'static str,
    /// Bytes of a part.
    part: usize,
    is_big: bool,
}

const TYPES: [Complex; 4] = [
    Complex { descr: "'<c8'", part: 4, is_big: false },
    Complex { descr: "'>c8'", part: 4, is_big: true },
    Complex { descr: "'<c16'", part: 8, is_big: false },
    Complex { descr: "'>c16'", part: 8, is_big: true },
];

impl Complex {
    /// The real and the imaginary parts of the numbers with these bytes.
    fn numbers<T: TestKey>(&self, bytes: &[u8]) -> Vec<[T; 2]> {
        let bits = |part: &[u8]| {
            let of = |bits: u128, byte: &u8| bits << 8 | u128::from(*byte);
            if self.is_big { part.iter().fold(0, of) } else { part.iter().rev().fold(0, of) }
        };
        let parts: Vec<T> = bytes.chunks(self.part).map(|part| T::from_bits(bits(part))).collect();
        parts.as_chunks().0.to_vec()
    }

    /// The bytes of numbers with these parts.
    fn bytes(&self, numbers: &[[f64; 2]]) -> Vec<u8> {
        let part = |part: &f64| {
            let mut bytes =
                if self.part == 4 { (*part as f32).to_le_bytes().to_vec() } else { part.to_le_bytes().to_vec() };
            if self.is_big {
                bytes.reverse();
            }
            bytes
        };
        numbers.as_flattened().iter().flat_map(part).collect()
    }

    /// Numbers of which parts are often equal or special: zeros, infinities and NaNs of both signs.
    fn random(&self, random: &mut Random, count: usize) -> Vec<u8> {
        let parts = |random: &mut Random| match self.part {
            4 => random.keys::<f32>(2 * count).into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>(),
            _ => random.keys::<f64>(2 * count).into_iter().flat_map(f64::to_le_bytes).collect(),
        };
        let mut bytes = parts(random);
        // Every other number repeats an earlier one.
        for i in (1..count).step_by(2) {
            let (earlier, size) = (random.below(i), 2 * self.part);
            bytes.copy_within(earlier * size..(earlier + 1) * size, i * size);
        }
        if self.is_big {
            bytes.chunks_mut(self.part).for_each(<[u8]>::reverse);
        }
        bytes
    }

    fn compare(&self, a: &[u8], b: &[u8], nans: &str, reverse: bool) -> Ordering {
        match self.part {
            4 => compare(self.numbers::<f32>(a)[0], self.numbers(b)[0], nans, reverse),
            _ => compare(self.numbers::<f64>(a)[0], self.numbers(b)[0], nans, reverse),
        }
    }

    /// The permutation that sorts the numbers with these bytes.
    fn places(&self, bytes: &[u8], nans: &str, reverse: bool) -> Vec<usize> {
        match self.part {
            4 => places(&self.numbers::<f32>(bytes), nans, reverse),
            _ => places(&self.numbers::<f64>(bytes), nans, reverse),
        }
    }

    fn sorted(&self, bytes: &[u8], nans: &str, reverse: bool) -> Vec<u8> {
        let numbers: Vec<&[u8]> = bytes.chunks(2 * self.part).collect();
        gathered(&numbers, &self.places(bytes, nans, reverse)).concat()
    }

    /// The .npy file of numbers with these bytes.
    fn file(&self, bytes: &[u8]) -> Vec<u8> {
        npy(self.descr, &format!("({},)", bytes.len() / (2 * self.part)), bytes)
    }
}

/// NumPy's order, in which first the places of NaNs decide.
fn compare<T: TestKey>(a: [T; 2], b: [T; 2], nans: &str, reverse: bool) -> Ordering {
    let nans_of = |parts: [T; 2]| parts.map(|part| part.is_nan());
    let by_nans = match nans {
        "last" => nans_of(a).cmp(&nans_of(b)),
        "first" => nans_of(b).cmp(&nans_of(a)),
        _ => Ordering::Equal,
    };
    by_nans.then(a[0].order_by(&b[0], nans, reverse)).then(a[1].order_by(&b[1], nans, reverse))
}

/// The permutation that sorts `numbers`.
fn places<T: TestKey>(numbers: &[[T; 2]], nans: &str, reverse: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..numbers.len()).collect();
    places.sort_by(|&a, &b| compare(numbers[a], numbers[b], nans, reverse));
    places
}

#[test]
fn complex_numbers_with_nans_are_in_the_order_of_numpy() {
    let folder = Folder::new();
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    // As numpy.sort returns them.
    let sorted = [
        [-infinity, infinity],
        [-1.5, 2.0],
        [1.0, -infinity],
        [1.0, 3.0],
        [2.0, -1.0],
        [infinity, 0.0],
        [-infinity, nan],
        [-1.5, nan],
        [1.0, nan],
        [infinity, nan],
        [nan, -infinity],
        [nan, 0.0],
        [nan, 7.0],
        [nan, nan],
    ];
    let shuffled: Vec<[f64; 2]> = (0..14).map(|i| sorted[i * 5 % 14]).collect();
    for complex in TYPES {
        folder.write("in.npy", &complex.file(&complex.bytes(&shuffled)));
        folder.run("sort in.npy -o out.npy --check").succeeds();
        assert!(folder.read::<u8>("out.npy") == complex.file(&complex.bytes(&sorted)), "{}", complex.descr);
        folder.run("check out.npy -u").succeeds();
        folder.run("check in.npy").fails(1, &["in.npy: disorder at index 3: (-1.5, 2.0j) after (NaN (0x7f"]);
    }
}

#[test]
fn complex_numbers_are_sorted_in_every_order() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let cases = TYPES.iter().flat_map(|complex| [0, 1, 300, 60_000].map(|count| (complex, count)));
    for (complex, count) in tried(cases) {
        let bytes = complex.random(&mut random, count);
        folder.write("in.npy", &complex.file(&bytes));
        for (nans, reverse) in ["last", "first", "total"].iter().flat_map(|nans| [(nans, false), (nans, true)]) {
            let expected = complex.sorted(&bytes, nans, reverse);
            let order = format!("--nan {nans} {}", if reverse { "-r" } else { "" });
            let what = format!("{} {count} {order}", complex.descr);
            for flags in if count > 1000 { &["-S 1M"][..] } else { &["", "--check"] } {
                folder.run(&format!("sort in.npy -o out.npy {order} {flags}")).succeeds();
                assert!(folder.read::<u8>("out.npy") == complex.file(&expected), "{what} {flags}");
            }
            folder.run(&format!("check out.npy {order}")).succeeds();
            folder.run(&format!("sort in.npy --argsort -o out.u64 {order}")).succeeds();
            let places = complex.places(&bytes, nans, reverse).into_iter().map(|place| place as u64);
            assert!(folder.read::<u64>("out.u64").into_iter().eq(places), "{what}");
        }
    }
}

#[test]
fn commands_on_complex_numbers() {
    let (folder, mut random) = (Folder::new(), Random::new());
    for complex in TYPES {
        let size = 2 * complex.part;
        let a = complex.sorted(&complex.random(&mut random, 500), "last", false);
        // Some numbers are in both files.
        let b = complex.sorted(&[complex.random(&mut random, 200), a[..100 * size].to_vec()].concat(), "last", false);
        let both = complex.sorted(&[&a[..], &b].concat(), "last", false);
        folder.write("a.npy", &complex.file(&a));
        folder.write("b.npy", &complex.file(&b));
        let numbers = |bytes: &[u8]| bytes.chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let times = |number: &[u8], bytes: &[u8]| bytes.chunks(size).filter(|other| *other == number).count();
        let mut distinct = numbers(&both);
        distinct.dedup();
        let repeated = |count: &dyn Fn(usize, usize) -> usize| -> Vec<u8> {
            distinct.iter().flat_map(|number| number.repeat(count(times(number, &a), times(number, &b)))).collect()
        };
        for (command, expected) in [
            ("merge", both.clone()),
            ("sort -m", both.clone()),
            ("merge --check", both.clone()),
            ("sort", both.clone()),
            ("sort -u", distinct.concat()),
            ("merge -u", distinct.concat()),
            ("sort --top 33", both[..33 * size].to_vec()),
            ("union", repeated(&usize::max)),
            ("intersect", repeated(&usize::min)),
            ("difference", repeated(&usize::saturating_sub)),
            ("symmetric-difference", repeated(&usize::abs_diff)),
        ] {
            folder.run(&format!("{command} a.npy b.npy -o out.npy")).succeeds();
            assert!(folder.read::<u8>("out.npy") == complex.file(&expected), "{} {command}", complex.descr);
        }
        folder.run("merge a.npy b.npy -o out.bin").succeeds();
        assert!(folder.read::<u8>("out.bin") == both, "without a header");
        let run = folder.run_with_input("sort - -o - --format npy", &complex.file(&both));
        run.succeeds();
        assert!(run.stdout() == complex.file(&both), "{} in a pipe", complex.descr);
    }
}

#[test]
fn rows_of_complex_numbers_and_of_strings_are_records() {
    let (folder, mut random) = (Folder::new(), Random::new());
    for complex in TYPES {
        let size = 2 * complex.part;
        let bytes = complex.random(&mut random, 600);
        folder.write("in.npy", &npy(complex.descr, "(200, 3)", &bytes));
        // By some columns, one of which may descend.
        let sorted_by = |columns: [usize; 3], descending: Option<usize>| {
            let mut rows: Vec<&[u8]> = bytes.chunks(3 * size).collect();
            rows.sort_by(|a, b| {
                let orders = columns.iter().map(|&column| {
                    let [a, b] = [a, b].map(|row| &row[column * size..][..size]);
                    complex.compare(a, b, "last", Some(column) == descending)
                });
                orders.fold(Ordering::Equal, Ordering::then)
            });
            npy(complex.descr, "(200, 3)", &rows.concat())
        };
        folder.run("sort in.npy --rows -o out.npy").succeeds();
        assert!(folder.read::<u8>("out.npy") == sorted_by([0, 1, 2], None), "{}", complex.descr);
        folder.run("sort in.npy --rows --key 2,0:desc,1 -o out.npy").succeeds();
        assert!(folder.read::<u8>("out.npy") == sorted_by([2, 0, 1], Some(0)), "{}", complex.descr);
    }
    folder.write("in.npy", &npy("'|S2'", "(3, 2)", b"bbaaabzzabaa"));
    folder.run("sort in.npy --rows --key 0,1:desc -o out.npy").succeeds();
    assert!(folder.read::<u8>("out.npy") == npy("'|S2'", "(3, 2)", b"abzzabaabbaa"));
}

#[test]
fn complex_numbers_and_strings_of_characters_in_fields() {
    let (folder, mut random) = (Folder::new(), Random::new());
    // Code points have more than one byte, and their little-endian bytes are in another order.
    let texts = ["", "a", "ab", "é", "Ā", "\u{1f600}z"];
    for complex in TYPES {
        let (size, order) = (2 * complex.part, if complex.is_big { '>' } else { '<' });
        let numbers = complex.random(&mut random, 2000);
        let text = |text: &str| -> Vec<u8> {
            let codes = text.chars().map(u32::from).chain([0, 0]).take(2);
            codes.flat_map(|code| if complex.is_big { code.to_be_bytes() } else { code.to_le_bytes() }).collect()
        };
        let records: Vec<(&str, &[u8])> =
            numbers.chunks(size).map(|number| (texts[random.below(texts.len())], number)).collect();
        let file = |records: &[(&str, &[u8])]| {
            let descr = format!("[('n', '|u1'), ('t', '{order}U2'), ('z', {}), ('w', '<c32')]", complex.descr);
            let record = |(name, number): &(&str, &[u8])| [&[7][..], &text(name), number, &[0; 32]].concat();
            npy(&descr, "(2000,)", &records.iter().flat_map(record).collect::<Vec<u8>>())
        };
        folder.write("in.npy", &file(&records));
        let by_text = |a: &str, b: &str| a.chars().cmp(b.chars());
        let by_number = |a: &[u8], b: &[u8], reverse| complex.compare(a, b, "last", reverse);
        type Compare<'a> = &'a dyn Fn(&(&str, &[u8]), &(&str, &[u8])) -> Ordering;
        let orders: [(&str, Compare); 4] = [
            ("z", &|a, b| by_number(a.1, b.1, false)),
            ("t", &|a, b| by_text(a.0, b.0)),
            ("t:desc,z", &|a, b| by_text(b.0, a.0).then(by_number(a.1, b.1, false))),
            ("z:desc,n,t", &|a, b| by_number(a.1, b.1, true).then(by_text(a.0, b.0))),
        ];
        for (key, compare) in orders {
            let mut sorted = records.clone();
            sorted.sort_by(compare);
            for flags in ["", "--check -S 1M"] {
                folder.run(&format!("sort in.npy --key {key} -o out.npy {flags}")).succeeds();
                assert!(folder.read::<u8>("out.npy") == file(&sorted), "{} {key} {flags}", complex.descr);
            }
            folder.run(&format!("check out.npy --key {key}")).succeeds();
        }
        folder.refuses("sort in.npy --key w -o new", &["in.npy: field \"w\" for --key has dtype '<c32'", "a number"]);
    }
    let text = |text: &str| text.chars().flat_map(|code| u32::from(code).to_be_bytes()).collect::<Vec<u8>>();
    folder.write("in.npy", &npy("'>U2'", "(2,)", &text("Āzé\0")));
    folder.run("check in.npy").fails(1, &["in.npy: disorder at index 1: \"é\" after \"Āz\""]);
}

/// A header tells that a file has records, even without `--key`.
#[test]
fn flags_about_keys_are_refused_with_records_of_a_header() {
    let folder = Folder::new();
    folder.write("v.u8", &[1u8, 2]);
    folder.write("offsets.u64", &[0u64, 2]);
    for (descr, size) in [("'<c8'", 8), ("'|S3'", 3), ("'<U2'", 8), ("[('a', '<u4')]", 4)] {
        folder.write("in.npy", &npy(descr, "(2,)", &vec![0; 2 * size]));
        folder.write("two.npy", &npy(descr, "(2, 2)", &vec![0; 4 * size]));
        let expected = format!("holds records of dtype {descr}, expected keys for ");
        for (command, flag) in [
            ("sort in.npy --segment-len 2", "--segment-len"),
            ("sort in.npy --segments offsets.u64", "--segments"),
            ("sort two.npy --axis 1", "--axis"),
            ("sort two.npy --axis 0", "--axis"),
            ("sort in.npy --values v.u8 --values-out out.v", "--values"),
            ("sort in.npy --type f64", "--type"),
            ("sort in.npy in.npy -m --engine gpu", "--engine gpu"),
            ("merge in.npy in.npy --values v.u8 v.u8 --values-out out.v", "--values"),
            ("merge in.npy in.npy --kernel tiled", "--kernel"),
            ("merge in.npy in.npy --engine gpu", "--engine gpu"),
            ("union in.npy in.npy --engine gpu", "--engine gpu"),
            ("union in.npy in.npy --type u8", "--type"),
        ] {
            folder.refuses(&format!("{command} -o new"), &[&expected, flag]);
        }
        folder.refuses("batch in.npy in.npy -d 2 -o new", &["in.npy: holds records by its header", "gmerge batch"]);
        folder.run("check in.npy --type u8").fails(2, &[&expected, "--type"]);
    }
    folder.write("in.npy", &npy("'<c8'", "(1,)", &[0; 8]));
    folder.write("big.npy", &npy("'>c8'", "(1,)", &[0; 8]));
    folder.refuses("merge in.npy big.npy -o new", &["big.npy: holds records of another dtype than in.npy"]);
    folder.refuses("sort in.npy -o new.arrow", &["new.arrow: ", "no Arrow file holds records"]);
}

#[test]
fn keys_that_are_too_long_are_refused() {
    let folder = Folder::new();
    folder.write("in", &[0u8; 17 << 20]);
    let flags = format!("--record-size {} --key 0:bytes{}", 17 << 20, 17 << 20);
    folder.refuses(&format!("sort in -o new {flags}"), &["--key: ", "16777216"]);
    folder.run(&format!("check in {flags}")).fails(2, &["--key: ", "16777216"]);
}
