//! `--stats`

use crate::common::Folder;
use serde_json::Value;

const PHASES: [&str; 7] = ["read", "check", "upload", "compute", "exchange", "download", "write"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.u32", &vec![1u32; 10_000]);
    folder.write("b.u32", &vec![1u32; 5_000]);
    folder
}

fn json(folder: &Folder, arguments: &str) -> Value {
    let run = folder.run(&format!("{arguments} --stats json"));
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    assert_eq!(run.stderr().lines().count(), 1);
    serde_json::from_str(&run.stderr()).unwrap()
}

#[test]
fn one_json_object() {
    let folder = folder();
    let cases = [
        ("sort a.u32 -o out.u32 --engine cpu", "sort", 10_000, Value::Null),
        ("merge a.u32 b.u32 -o out.u32 --engine cpu --kernel tiled", "merge", 15_000, "tiled".into()),
        ("batch a.u32 b.u32 -d 3 --a-len 2 -o out.u32 --engine cpu", "batch", 15_000, Value::Null),
        ("check a.u32", "check", 10_000, Value::Null),
        ("gen -n 777 -o new.u32", "gen", 777, Value::Null),
    ];
    for (arguments, op, keys, kernel) in cases {
        let stats = json(&folder, arguments);
        assert_eq!(stats["op"], op);
        assert_eq!(stats["type"], "u32");
        assert_eq!(stats["keys"], keys);
        assert_eq!(stats["bytes"], keys * 4);
        assert_eq!(stats["engine"], "cpu");
        assert_eq!(stats["kernel"], kernel);
        let mut sum = 0.0;
        for phase in PHASES {
            let (ms, rate) = (&stats["phases"][phase]["ms"], &stats["phases"][phase]["gb_per_s"]);
            assert!(rate.as_f64().unwrap() >= 0.0);
            sum += ms.as_f64().unwrap();
        }
        let total = stats["total_ms"].as_f64().unwrap();
        assert!(sum <= total + 0.01, "{stats}");
        let busy = if op == "check" { "read" } else { "write" };
        assert!(stats["phases"][busy]["ms"].as_f64().unwrap() > 0.0);
    }
    folder.write("large.u32", &vec![1u32; 1 << 20]);
    assert_eq!(json(&folder, "sort large.u32 -o out.u32 --engine cpu --parallel 3")["threads"], 3);
}

#[test]
fn nothing_handled_is_no_division_by_zero() {
    let folder = Folder::new();
    folder.write("empty.f64", &[0f64; 0]);
    let stats = json(&folder, "sort empty.f64 -o empty.f64");
    assert_eq!((&stats["keys"], &stats["bytes"]), (&0.into(), &0.into()));
    assert_eq!(stats["phases"]["write"]["gb_per_s"], 0.0);
}

#[test]
fn a_table_for_people() {
    let folder = folder();
    let run = folder.run("merge a.u32 b.u32 -o out.u32 --engine cpu --stats text");
    assert_eq!(run.code(), Some(0));
    let stderr = run.stderr();
    assert!(stderr.starts_with("merge: 15000 u32 keys, 60000 bytes, engine cpu, kernel auto, threads "), "{stderr}");
    for phase in PHASES.iter().chain(&["total"]) {
        assert!(stderr.lines().any(|line| line.starts_with(phase)), "{stderr}");
    }
    let widths: Vec<usize> = stderr.lines().skip(1).map(str::len).collect();
    assert!(widths.iter().all(|&width| width == widths[0]), "{stderr}");
    assert_eq!(run.stdout(), b"");
}

#[test]
fn values_count_as_bytes() {
    let folder = folder();
    folder.write("a.rows", &vec![1u8; 30_000]);
    folder.write("b.rows", &vec![1u8; 15_000]);
    let run = "merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows --engine cpu";
    let stats = json(&folder, run);
    assert_eq!((&stats["keys"], &stats["value_bytes"], &stats["bytes"]), (&15_000.into(), &3.into(), &105_000.into()));
    assert_eq!(json(&folder, "merge a.u32 b.u32 -o out.u32 --engine cpu")["value_bytes"], Value::Null);
    let sort = "sort a.u32 --values a.rows -o out.u32 --values-out out.rows --engine cpu";
    let stats = json(&folder, sort);
    assert_eq!((&stats["keys"], &stats["value_bytes"], &stats["bytes"]), (&10_000.into(), &3.into(), &70_000.into()));
    let run = folder.run(&format!("{run} --stats text"));
    let stderr = run.stderr();
    let start = "merge: 15000 u32 keys with values of 3 bytes, 105000 bytes, engine cpu, kernel auto, threads ";
    assert!(stderr.starts_with(start), "{stderr}");
}

#[test]
fn disorder_comes_with_statistics_too() {
    let folder = Folder::new();
    folder.write("keys.u32", &[2u32, 1]);
    let run = folder.run("check keys.u32 --stats json");
    assert_eq!(run.code(), Some(1));
    let stderr = run.stderr();
    let (stats, message) = stderr.trim_end().split_once('\n').unwrap();
    assert_eq!(serde_json::from_str::<Value>(stats).unwrap()["keys"], 2);
    assert_eq!(message, "gmerge: keys.u32: disorder at index 1: 1 after 2 (byte 4)");
}

#[test]
fn a_merge_with_values_takes_time() {
    let folder = folder();
    // Values of 4 and of 8 bytes are merged with the keys: nothing else is computed.
    for width in [4, 8] {
        folder.write("a.rows", &vec![1u8; 10_000 * width]);
        folder.write("b.rows", &vec![1u8; 5_000 * width]);
        let stats =
            json(&folder, "merge a.u32 b.u32 --values a.rows b.rows -o out.u32 --values-out out.rows --engine cpu");
        assert!(stats["phases"]["compute"]["ms"].as_f64().unwrap() > 0.0, "{stats}");
    }
}
