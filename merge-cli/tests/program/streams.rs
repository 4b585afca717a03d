//! Pipes in and out.

use crate::common::{self, Folder, GMERGE, Random, assert_same, spawn};
use std::fs;
use std::io::Read;
use std::process::Stdio;

#[test]
fn standard_input_of_any_length() {
    let mut random = Random::new();
    let folder = Folder::new();
    // Sizes around the first capacity, and several times the capacity.
    for size in [0, 1, 1000, 65_535, 65_536, 65_537, 1_000_003] {
        let keys = random.keys::<u32>(size);
        let mut expected = keys.clone();
        expected.sort();
        for name in ["-", "/dev/stdin"] {
            folder.run_with_input(&format!("sort {name} -o out.u32"), bytemuck::cast_slice(&keys)).succeeds();
            assert_same(&folder.read::<u32>("out.u32"), &expected, &format!("{name} {size}"));
        }
    }
}

#[test]
fn a_pipe_for_one_input_of_a_merge() {
    let folder = Folder::new();
    folder.write("b.u32", &[2u32, 3]);
    let bytes = bytemuck::cast_slice::<u32, u8>(&[1, 4]);
    folder.run_with_input("merge - b.u32 -o out.u32", bytes).succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3, 4]);
    folder.run_with_input("merge b.u32 - -o out.u32", bytes).succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3, 4]);
    let run = folder.run_with_input("batch b.u32 - -d 3 --a-len 2 -o out.u32", bytes);
    run.fails(2, &["b.u32: 2 keys in runs of 2 make 1, ", "-: 2 keys in runs of 1 make 2"]);
}

#[test]
fn named_pipes() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder
        .shell(
            "mkfifo one.u32 two.u32; cat in.u32 > one.u32 & gmerge sort one.u32 -o two.u32 & cat two.u32 > out; wait",
        )
        .succeeds();
    assert_eq!(folder.read::<u32>("out"), [1, 2, 3]);
}

#[test]
fn a_file_redirected_to_standard_input_is_read_from_where_it_is() {
    let folder = Folder::new();
    folder.write("in.u32", &[9u32, 3, 1, 2]);
    folder.shell("{ dd bs=4 count=1 of=/dev/null 2> /dev/null; gmerge sort - -o out.u32; } < in.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3]);
}

#[test]
fn a_reader_that_goes_away_is_no_news() {
    let folder = Folder::new();
    let mut command = folder.command(GMERGE);
    command.args("gen -n 100000000 --type u32 -o -".split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(&mut command);
    child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    let output = child.wait_with_output().unwrap();
    // The exit code that a shell reports for other programs.
    assert_eq!((output.status.code(), &*output.stderr), (Some(141), &b""[..]));

    for arguments in ["info", "--help", "sort --help"] {
        let run = folder.shell(&format!("gmerge {arguments} | true"));
        run.succeeds();
    }
    let run = folder.shell("gmerge info > /dev/full");
    run.fails(2, &["standard output: No space left on device"]);
}

#[test]
fn closed_standard_streams() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.shell("gmerge sort in.u32 -o out.u32 --stats text <&- >&- 2>&-").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3]);
    assert_eq!(folder.shell("gmerge sort none.u32 -o out.u32 2>&-").code(), Some(2));
    assert_eq!(folder.shell("gmerge check in.u32 --stats json 2>/dev/full").code(), Some(1));
}

#[test]
fn an_arrow_file_that_is_cut_is_an_error_in_a_pipe() {
    let folder = Folder::new();
    folder.run("gen -n 3000000 --type u32 --dist sorted -o k.arrow").succeeds();
    folder.write("k.u32", &[1u32]);
    let file = fs::read(folder.path("k.arrow")).unwrap();
    folder.run_with_input("check -", &file).succeeds();
    // Messages begin with these bytes. The last message is empty, and the footer follows it.
    let is_message = |&at: &usize| (at == 8 || at % 64 == 0) && file[at..].starts_with(&[0xff; 4]);
    let messages: Vec<usize> = (8..file.len()).filter(is_message).collect();
    assert!(messages.len() > 3, "{messages:?}");
    let footer = messages[messages.len() - 1] + 8;
    let cuts = messages[1..].iter().copied().chain([footer, footer + 100, file.len() - 10, file.len() - 1]);
    for cut in cuts {
        for command in [
            "check -",
            "sort - -o out.u32",
            "sort - -o out.u32 -S 1M",
            "merge - k.u32 -o out.u32 --assume-sorted",
            "union - k.u32 -o out.u32 --assume-sorted",
            "sort k.u32 --values - -o out.u32 --values-out out.rows",
        ] {
            folder.run_with_input(command, &file[..cut]).fails(2, &["-: Arrow file", "is it complete?"]);
        }
    }
    assert_eq!(folder.files(), ["k.arrow", "k.u32"]);
}

/// The .npy file of the numbers as `u4`, or as `u8` if they are indices.
fn npy(numbers: &[u32], places: bool) -> Vec<u8> {
    let shape = format!("({},)", numbers.len());
    match places {
        true => {
            common::npy("'<u8'", &shape, &numbers.iter().flat_map(|&n| u64::from(n).to_le_bytes()).collect::<Vec<_>>())
        }
        false => common::npy("'<u4'", &shape, bytemuck::cast_slice(numbers)),
    }
}

#[test]
fn arrays_to_standard_output_where_the_number_of_keys_is_known() {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..300_000u32).map(|i| i.wrapping_mul(0x9e37_79b9) | 1).collect();
    let mut order: Vec<u32> = (0..300_000).collect();
    order.sort_by_key(|&i| keys[i as usize]);
    let sorted: Vec<u32> = order.iter().map(|&i| keys[i as usize]).collect();
    folder.write("k.u32", &keys);
    folder.write("s.u32", &sorted);
    let raw = bytemuck::cast_slice(&keys);
    let half = sorted.iter().map(|&key| [key, key]).collect::<Vec<_>>().concat();
    let expect = |arguments: &str, input: &[u8], expected: &[u8]| {
        let run = folder.run_with_input(&format!("{arguments} -o - --format npy"), input);
        run.succeeds();
        assert!(run.stdout() == expected, "{arguments}: {} bytes", run.stdout().len());
    };
    for memory in ["", "-S 1M"] {
        expect(&format!("sort k.u32 {memory}"), b"", &npy(&sorted, false));
        expect(&format!("sort k.u32 --argsort {memory}"), b"", &npy(&order, true));
        expect(&format!("merge s.u32 s.u32 {memory}"), b"", &npy(&half, false));
        // The keys of a pipe are counted before they are written.
        expect(&format!("sort - --type u32 {memory}"), raw, &npy(&sorted, false));
        expect(&format!("sort - --type u32 --argsort {memory}"), raw, &npy(&order, true));
        expect(&format!("sort - --type u32 --top 7 {memory}"), raw, &npy(&sorted[..7], false));
        expect(&format!("sort - --type u32 --top 299999 {memory}"), raw, &npy(&sorted[..299_999], false));
    }
    expect("sort - --type u32 --segment-len 300000", raw, &npy(&sorted, false));
    expect("merge - s.u32", bytemuck::cast_slice(&sorted), &npy(&half, false));
    expect("merge -u s.u32 s.u32", b"", &npy(&sorted, false));
    expect("union - s.u32", bytemuck::cast_slice(&sorted), &npy(&sorted, false));
    for flags in
        ["--record-size 4 --key 0:u32", "--record-size 4 --key 0:u32 -S 1M", "--record-size 20 --key 0:bytes17"]
    {
        let size = if flags.contains("20") { 20 } else { 4 };
        let run = folder.run_with_input(&format!("sort - {flags} -o - --format npy"), &vec![1; 20 * 300_000]);
        run.succeeds();
        let shape = format!("{{'descr': '|V{size}', 'fortran_order': False, 'shape': ({},), }}", 20 * 300_000 / size);
        assert!(run.stdout()[10..].starts_with(shape.as_bytes()), "{flags}");
        assert_eq!(run.stdout().len(), 128 + 20 * 300_000, "{flags}");
    }
    // The values go to a named pipe.
    let script = "mkfifo v.npy; cat v.npy > moved & \
                  gmerge sort k.u32 --values k.u32 -o out.u32 --values-out v.npy -S 1M; wait";
    folder.shell(script).succeeds();
    assert_eq!(folder.read::<u8>("moved").len(), 128 + 4 * 300_000);
}

#[test]
fn arrays_to_standard_output_that_is_a_file() {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..300_000u32).map(|i| i % 1000).collect();
    folder.write("k.u32", &keys);
    folder.run("sort k.u32 -o s.u32").succeeds();
    let unique: Vec<u32> = (0..1000).collect();
    for (command, expected) in [
        ("sort -u k.u32", npy(&unique, false)),
        ("sort -u k.u32 -S 1M", npy(&unique, false)),
        ("sort -u k.u32 --argsort -S 1M", npy(&unique, true)),
        ("merge -u s.u32 s.u32 -S 1M", npy(&unique, false)),
        ("intersect s.u32 s.u32 -S 1M", npy(&folder.read::<u32>("s.u32"), false)),
        ("difference s.u32 s.u32 -S 1M", npy(&[], false)),
    ] {
        folder.shell(&format!("gmerge {command} -o - --format npy > out")).succeeds();
        assert!(folder.read::<u8>("out") == expected, "{command}");
        // The output begins at the current offset of the file.
        folder.shell(&format!("{{ printf 12345; gmerge {command} -o - --format npy; }} > out")).succeeds();
        assert!(folder.read::<u8>("out") == [b"12345", &expected[..]].concat(), "{command}");
        folder.shell(&format!("gmerge {command} -o /dev/fd/3 --format npy 3> out")).succeeds();
        assert!(folder.read::<u8>("out") == expected, "{command}");
        if command.ends_with("-S 1M") {
            // Appended bytes and bytes in a pipe cannot be overwritten later.
            fs::write(folder.path("out"), "old").unwrap();
            let message = "-: the header tells the number of keys, which";
            folder.shell(&format!("gmerge {command} -o - --format npy >> out")).fails(2, &[message]);
            assert_eq!(folder.read::<u8>("out"), b"old");
            let run = folder.run(&format!("{command} -o - --format npy"));
            run.fails(2, &[message]);
            assert_eq!(run.stdout(), b"");
        }
    }
    folder.shell("gmerge sort k.u32 -o - --format npy >> out").succeeds();
    assert!(folder.read::<u8>("out") == [b"old", &npy(&folder.read::<u32>("s.u32"), false)[..]].concat());
    folder.shell("gmerge sort -u k.u32 --values k.u32 -o out.u32 --values-out /dev/fd/3 3> v.npy").succeeds();
}
