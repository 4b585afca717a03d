//! Arrays of NumPy in Fortran order, and columns of arrays.

use crate::common::{Folder, Random, fortran_npy, npy};

/// Shapes of two dimensions and more, with rows and columns of one item among them, and with short and long columns.
const SHAPES: [&[usize]; 8] = [&[1, 1], &[1, 5], &[5, 1], &[3, 4], &[2, 3, 4], &[4, 1, 3, 2], &[5000, 3], &[3, 5000]];

/// An array of numbers, in C order.
struct Array {
    shape: Vec<usize>,
    numbers: Vec<i16>,
}

impl Array {
    fn random(random: &mut Random, shape: &[usize]) -> Self {
        let count = shape.iter().product();
        Self { shape: shape.to_vec(), numbers: (0..count).map(|_| random.below(300) as i16 - 150).collect() }
    }

    fn shape(&self) -> String {
        format!("({})", self.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
    }

    fn bytes(numbers: &[i16], endian: char) -> Vec<u8> {
        numbers.iter().flat_map(|n| if endian == '>' { n.to_be_bytes() } else { n.to_le_bytes() }).collect()
    }

    /// The file in C order.
    fn file(&self, endian: char) -> Vec<u8> {
        npy(&format!("'{endian}i2'"), &self.shape(), &Self::bytes(&self.numbers, endian))
    }

    /// The file in Fortran order.
    fn fortran(&self, endian: char) -> Vec<u8> {
        fortran_npy(&format!("'{endian}i2'"), &self.shape(), &Self::bytes(&self.transposed().numbers, endian))
    }

    /// The array with its dimensions in reverse.
    fn transposed(&self) -> Self {
        let shape: Vec<usize> = self.shape.iter().rev().copied().collect();
        let numbers = (0..self.numbers.len()).map(|mut at| {
            let mut index = 0;
            for length in shape.iter().rev() {
                (index, at) = (index * length + at % length, at / length);
            }
            self.numbers[index]
        });
        Self { numbers: numbers.collect(), shape }
    }

    /// The array with each row along the last axis sorted.
    fn sorted_rows(&self, reverse: bool) -> Self {
        let mut numbers = self.numbers.clone();
        for row in numbers.chunks_mut(self.shape[self.shape.len() - 1]) {
            row.sort();
            if reverse {
                row.reverse();
            }
        }
        Self { numbers, shape: self.shape.clone() }
    }

    /// The rows of the first dimension in this order.
    fn gathered(&self, places: &[usize]) -> Self {
        let width = self.numbers.len() / self.shape[0];
        let numbers = places.iter().flat_map(|&row| self.numbers[row * width..][..width].to_vec()).collect();
        Self { numbers, shape: self.shape.clone() }
    }
}

#[test]
fn rows_and_columns_of_both_orders() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let found = || folder.read::<u8>("out.npy");
    for (shape, endian) in SHAPES.iter().flat_map(|shape| [(shape, '<'), (shape, '>')]) {
        let array = Array::random(&mut random, shape);
        folder.write("c.npy", &array.file(endian));
        folder.write("f.npy", &array.fortran(endian));
        let last = shape.len() - 1;
        for (name, flags) in ["c", "f"].iter().flat_map(|name| ["", "-r", "-S 1M"].map(|flags| (name, flags))) {
            let what = format!("{name} {shape:?} {endian} {flags}");
            let reverse = flags == "-r";
            for axis in [-1, last as i64] {
                folder.run(&format!("sort {name}.npy --axis {axis} -o out.npy {flags}")).succeeds();
                assert!(found() == array.sorted_rows(reverse).file(endian), "{what}");
            }
            folder.run(&format!("sort {name}.npy --axis 0 -o out.npy {flags}")).succeeds();
            let columns = array.transposed().sorted_rows(reverse).transposed();
            assert!(found() == columns.fortran(endian), "columns of {what}");
        }
    }
}

#[test]
fn rows_in_fortran_order_are_records_and_values() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let found = || folder.read::<u8>("out.npy");
    for shape in SHAPES {
        let array = Array::random(&mut random, shape);
        let width = array.numbers.len() / shape[0];
        let mut places: Vec<usize> = (0..shape[0]).collect();
        places.sort_by_key(|&row| &array.numbers[row * width..][..width]);
        let sorted = array.gathered(&places);
        folder.write("f.npy", &array.fortran('<'));
        for flags in ["--rows", "--rows --check", "--rows --key 0 -u", "--rows --top 1000000"] {
            folder.run(&format!("sort f.npy -o out.npy {flags}")).succeeds();
            if !flags.contains("-u") {
                assert!(found() == sorted.file('<'), "{shape:?} {flags}");
            }
        }
        folder.run("sort f.npy --rows --argsort -o out.u64").succeeds();
        assert!(folder.read::<u64>("out.u64").into_iter().eq(places.iter().map(|&place| place as u64)), "{shape:?}");
        folder.write("sorted.npy", &sorted.fortran('<'));
        folder.run("check sorted.npy --rows").succeeds();
        folder.run("merge sorted.npy sorted.npy --rows -o out.npy").succeeds();
        let mut twice = sorted.gathered(&(0..2 * shape[0]).map(|row| row / 2).collect::<Vec<_>>());
        twice.shape[0] *= 2;
        assert!(found() == twice.file('<'), "{shape:?}");
        folder.run("intersect sorted.npy sorted.npy --rows -o out.npy").succeeds();
        assert!(found() == sorted.file('<'), "{shape:?}");
        let keys: Vec<u32> = (0..shape[0] as u32).rev().collect();
        folder.write("k.u32", &keys);
        folder.run("sort k.u32 --values f.npy -o out.u32 --values-out out.npy --check").succeeds();
        assert!(found() == array.gathered(&(0..shape[0]).rev().collect::<Vec<_>>()).file('<'), "{shape:?}");
    }
}

/// Items of a size that divides no block, and keys beyond the memory.
#[test]
fn large_arrays_in_fortran_order() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let (rows, columns) = (70_001, 3);
    let bytes = random.bytes(5 * rows * columns);
    let items: Vec<&[u8]> = bytes.chunks(5).collect();
    let transposed: Vec<u8> =
        (0..columns).flat_map(|j| (0..rows).map(move |i| i * columns + j)).fold(Vec::new(), |mut file, index| {
            file.extend_from_slice(items[index]);
            file
        });
    folder.write("f.npy", &fortran_npy("'|V5'", "(70001, 3)", &transposed));
    let mut sorted: Vec<&[u8]> = bytes.chunks(5 * columns).collect();
    sorted.sort();
    let expected = npy("'|V5'", "(70001, 3)", &sorted.concat());
    for flags in ["", "-S 1M", "-S 1M --check"] {
        folder.run(&format!("sort f.npy --rows -o out.npy {flags}")).succeeds();
        assert!(folder.read::<u8>("out.npy") == expected, "{flags}");
    }
    let array = Array::random(&mut random, &[1000, 1500]);
    folder.write("f.npy", &array.fortran('<'));
    folder.write("c.npy", &array.file('<'));
    for flags in ["", "-S 1M"] {
        folder.run(&format!("sort f.npy --axis 1 -o out.npy {flags}")).succeeds();
        assert!(folder.read::<u8>("out.npy") == array.sorted_rows(false).file('<'), "{flags}");
        folder.run(&format!("sort c.npy --axis 0 -o out.npy {flags}")).succeeds();
        let columns = array.transposed().sorted_rows(false).transposed();
        assert!(folder.read::<u8>("out.npy") == columns.fortran('<'), "{flags}");
    }
}

#[test]
fn several_arrays_and_streams_of_both_orders() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let a = Array::random(&mut random, &[5, 3]);
    let b = Array::random(&mut random, &[5, 2]);
    folder.write("a.npy", &a.file('<'));
    folder.write("b.npy", &b.fortran('>'));
    // Columns are beside each other.
    folder.run("sort a.npy b.npy --axis 0 -o out.npy").succeeds();
    let both = Array { shape: vec![5, 5], numbers: [a.transposed().numbers, b.transposed().numbers].concat() };
    assert!(folder.read::<u8>("out.npy") == both.sorted_rows(false).transposed().fortran('<'));
    // Rows are below each other.
    let (a, b) = (a.transposed(), b.transposed());
    folder.write("a.npy", &a.file('<'));
    folder.write("b.npy", &b.fortran('>'));
    folder.run("sort a.npy b.npy --axis 1 -o out.npy").succeeds();
    assert!(folder.read::<u8>("out.npy") == both.sorted_rows(false).file('<'));
    folder.run("sort b.npy --axis 1 -o out.i16").succeeds();
    assert!(folder.read::<i16>("out.i16") == b.sorted_rows(false).numbers);
    // A stream is read in its own order.
    let run = folder.run_with_input("sort - --axis 0 -o - --format npy", &b.fortran('<'));
    run.succeeds();
    assert!(run.stdout() == b.transposed().sorted_rows(false).transposed().fortran('<'));
    let parts = ["-: a stream of an array in C order, expected the name of a regular file for --axis 0"];
    folder.refuses_input("sort - --axis 0 -o new.npy", &a.file('<'), &parts);
    let parts = ["-: a stream of an array in Fortran order, expected the name of a regular file"];
    for flags in ["--axis 1", "--rows", "--axis -1"] {
        folder.refuses_input(&format!("sort - {flags} -o new.npy"), &b.fortran('<'), &parts);
    }
    folder.write("k.u32", &[2u32, 1]);
    folder.refuses_input("sort k.u32 --values - -o new --values-out new.npy", &b.fortran('<'), &parts);
    let not_npy = "expected an .npy file for --axis 0";
    for (arguments, parts) in [
        ("a.npy b.npy --axis 0 -o new.npy", &["a.npy holds rows of dtype shape [3]", "b.npy of dtype shape [2]"][..]),
        ("a.npy --axis 0 -o new.i16", &["new.i16: ", not_npy]),
        ("a.npy --axis 0 -o new.arrow", &["new.arrow: ", not_npy]),
        ("a.npy --axis 0 -o new.npy --format raw", &["new.npy: ", not_npy]),
        ("a.npy --axis 0 -o new.npy --values b.npy --values-out out.npy", &["--axis 0", "--values"]),
        ("a.npy --axis 0 --argsort -o new.npy", &["--axis", "--argsort"]),
        ("k.u32 --axis 0 -o new.npy", &["k.u32: is no .npy file", "--axis"]),
        ("b.npy -o new.npy", &["b.npy: .npy header", "2 dimensions", "see --rows and --axis"]),
    ] {
        folder.refuses(&format!("sort {arguments}"), parts);
    }
    // A file that shrinks, and arrays without rows or columns.
    let file = b.fortran('<');
    folder.write("short.npy", &file[..file.len() - 1]);
    folder.refuses("sort short.npy --rows -o new.npy", &["short.npy: length is ", "by its .npy header"]);
    for (shape, axis) in [("(0, 3)", 1), ("(3, 0)", 0)] {
        folder.write("none.npy", &fortran_npy("'<i2'", shape, &[]));
        folder.run(&format!("sort none.npy --axis {axis} -o out.npy")).succeeds();
        let expected = if axis == 0 { fortran_npy("'<i2'", shape, &[]) } else { npy("'<i2'", shape, &[]) };
        assert!(folder.read::<u8>("out.npy") == expected);
        folder.refuses(&format!("sort none.npy --axis {} -o new.npy", 1 - axis), &["rows without keys", "--axis"]);
    }
}
