//! The program, started by mpirun, compared with `gmerge`. On Debian, the package openmpi-bin has mpirun.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_gmerge-mpi");
/// The time limit of a run, in seconds.
const LIMIT: &str = "120";

/// mpirun with a time limit and these arguments, which include a command for each rank.
fn mpirun(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT, "mpirun"]).args(arguments).current_dir(folder);
    let allow = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"];
    command.envs(allow.map(|name| (name, "1"))).env("OMPI_MCA_hwloc_base_binding_policy", "none");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs gmerge-mpi on `ranks` ranks.
fn run(folder: &Path, ranks: usize, arguments: &str) -> Output {
    let ranks = ranks.to_string();
    let arguments = ["-n", &ranks, PROGRAM].into_iter().chain(arguments.split(' ')).collect::<Vec<_>>();
    let output = mpirun(folder, &arguments).output().unwrap();
    assert!(!text(&output).contains("failed to run command"), "no mpirun: install the package openmpi-bin");
    output
}

fn gmerge(folder: &Path, arguments: &str) -> Output {
    let program = Path::new(PROGRAM).parent().unwrap().join("examples/gmerge");
    let output = Command::new(program).args(arguments.split(' ')).current_dir(folder).output();
    output.expect("the example gmerge, which `cargo test` or `cargo build --examples` builds")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of gmerge-mpi itself.
fn lines(output: &Output) -> Vec<String> {
    text(output).lines().filter(|line| line.starts_with("gmerge-mpi: ")).map(str::to_owned).collect()
}

fn succeed(output: Output) {
    assert!(output.status.success(), "{}", text(&output));
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with the file `name` of `count` keys with the distribution `kind`.
fn keys(name: &str, count: usize, kind: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    succeed(gmerge(folder.path(), &format!("gen -n {count} --seed 7 --dist {kind} -o {name}")));
    folder
}

/// Checks that both programs write the same `outputs` with the same arguments.
fn check_same(folder: &Path, ranks: &[usize], arguments: &str, outputs: &[&str]) {
    succeed(gmerge(folder, arguments));
    let read = || outputs.iter().map(|name| fs::read(folder.join(name)).unwrap()).collect::<Vec<_>>();
    let expected = read();
    for ranks in ranks {
        outputs.iter().for_each(|name| fs::write(folder.join(name), "old").unwrap());
        let before = names(folder);
        succeed(run(folder, *ranks, arguments));
        assert!(read() == expected, "{ranks} ranks: {arguments}");
        assert_eq!(names(folder), before);
    }
}

#[test]
fn keys_are_sorted_as_by_gmerge() {
    for (name, count, kind) in [("a.u32", 100_003, "uniform"), ("a.f64", 30_000, "uniform"), ("a.i16be", 5000, "dups")]
    {
        let folder = keys(name, count, kind);
        let extension = name.split_once('.').unwrap().1;
        let out = format!("out.{extension}");
        check_same(folder.path(), &[1, 2, 4, 7], &format!("sort {name} -o {out}"), &[&out]);
        check_same(folder.path(), &[4], &format!("sort {name} {name} --reverse -o {out}"), &[&out]);
        check_same(folder.path(), &[3], &format!("sort {name} -o out.npy"), &["out.npy"]);
    }
    for count in [0, 3] {
        let folder = keys("a.u64", count, "uniform");
        check_same(folder.path(), &[1, 7], "sort a.u64 -o out.u64", &["out.u64"]);
    }
}

#[test]
fn values_and_records_move_as_by_gmerge() {
    let folder = keys("a.u32", 60_000, "dups");
    let folder = folder.path();
    for width in [4, 8, 12] {
        succeed(gmerge(folder, &format!("gen -n 60000 --record-size {width} -o a.rows")));
        let arguments = "sort a.u32 --values a.rows -o out.u32 --values-out out.rows";
        check_same(folder, &[1, 2, 7], arguments, &["out.u32", "out.rows"]);
    }
    succeed(gmerge(folder, "gen -n 20000 --record-size 100 -o a.dat"));
    for key in ["0:bytes10", "8:u32,16:f64:desc", "3:i8"] {
        check_same(folder, &[1, 2, 4], &format!("sort a.dat -o out.dat --record-size 100 --key {key}"), &["out.dat"]);
    }
    // In spilled chunks.
    check_same(folder, &[2], "sort a.dat -o out.dat --record-size 100 --key 0:bytes10 -S 1M -T .", &["out.dat"]);
    let arguments = "sort a.u32 --values a.rows -o out.u32 --values-out out.rows -S 1M -T .";
    check_same(folder, &[2], arguments, &["out.u32", "out.rows"]);
    let output = run(folder, 2, "sort a.dat -o out.dat --record-size 100 --key 0:bytes17");
    assert!(lines(&output)[0].ends_with("a.dat: expected a --key of at most 16 bytes, found 17"), "{}", text(&output));
}

#[test]
fn each_rank_reads_and_writes_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for rank in 0..3 {
        let count = [10_000, 0, 777][rank];
        succeed(gmerge(folder, &format!("gen -n {count} --seed {rank} --dist zipf -o in.{rank}.u32")));
    }
    succeed(gmerge(folder, "sort in.0.u32 in.1.u32 in.2.u32 -o all.u32"));
    succeed(run(folder, 3, "sort in.{rank}.u32 -o out.{rank}.u32 --parts"));
    let parts: Vec<_> = (0..3).map(|rank| fs::read(folder.join(format!("out.{rank}.u32"))).unwrap()).collect();
    assert!(parts.concat() == fs::read(folder.join("all.u32")).unwrap());
    succeed(run(folder, 3, "sort in.{rank}.u32 -o out.u32"));
    assert!(fs::read(folder.join("out.u32")).unwrap() == parts.concat());
    let output = run(folder, 3, "sort in.{rank}.u32 -o out.u32 --parts");
    assert!(lines(&output)[0].ends_with("out.u32: has no {rank} in its name, expected it there with --parts"));
}

#[test]
fn a_check_tells_the_first_key_out_of_order() {
    let folder = keys("a.u32", 50_000, "sorted");
    let folder = folder.path();
    succeed(run(folder, 4, "check a.u32"));
    let sorted = fs::read(folder.join("a.u32")).unwrap();
    // Disorder within slices, and at the first key of a slice.
    for indices in [&[20_000, 30_000][..], &[12_500], &[49_999], &[37_500, 37_501]] {
        let mut bytes = sorted.clone();
        indices.iter().for_each(|index| bytes[4 * index..][..4].fill(0));
        fs::write(folder.join("b.u32"), bytes).unwrap();
        let (expected, found) = (gmerge(folder, "check b.u32"), run(folder, 4, "check b.u32"));
        assert_eq!((expected.status.code(), found.status.code()), (Some(1), Some(1)));
        let expected = text(&expected).trim_end().strip_prefix("gmerge: ").unwrap().to_owned();
        assert!(matches!(&lines(&found)[..], [line] if line.ends_with(&expected)), "{}", text(&found));
    }
    succeed(gmerge(folder, "gen -n 3000 --record-size 24 -o a.dat"));
    succeed(run(folder, 3, "sort a.dat -o b.dat --record-size 24 --key 4:u64"));
    succeed(run(folder, 3, "check b.dat --record-size 24 --key 4:u64"));
    assert_eq!(run(folder, 3, "check a.dat --record-size 24 --key 4:u64").status.code(), Some(1));
}

#[test]
fn a_truncated_input_on_one_rank_is_one_message() {
    let folder = keys("in.0.u32", 1000, "uniform");
    let folder = folder.path();
    for rank in 1..4 {
        fs::copy(folder.join("in.0.u32"), folder.join(format!("in.{rank}.u32"))).unwrap();
    }
    fs::write(folder.join("in.2.u32"), [1; 3999]).unwrap();
    fs::write(folder.join("out.u32"), "old").unwrap();
    let before = names(folder);
    let output = run(folder, 4, "sort in.{rank}.u32 -o out.u32");
    assert!(!output.status.success());
    let message = "in.2.u32: length is 3999 bytes, expected a multiple of 4";
    assert!(
        matches!(&lines(&output)[..], [line] if line.starts_with("gmerge-mpi: rank 2 on ") && line.contains(message))
    );
    assert_eq!((fs::read(folder.join("out.u32")).unwrap(), names(folder)), (b"old".to_vec(), before));
}

#[test]
fn a_full_disk_on_one_rank_is_one_message() {
    let folder = keys("a.u32", 4_000_000, "uniform");
    let folder = folder.path();
    fs::write(folder.join("out.u32"), "old").unwrap();
    let before = names(folder);
    // Rank 1 cannot write beyond the first 6 MiB of a file. So it can write neither its part of the output nor the 8 MB
    // that it spills.
    for memory in ["", " -S 1M -T ."] {
        let sort = format!("{PROGRAM} sort a.u32 -o out.u32{memory}");
        let limited = format!("ulimit -f 12288; exec {sort}");
        let all = format!("exec {sort}");
        let output =
            mpirun(folder, &["-n", "1", "sh", "-c", &all, ":", "-n", "1", "sh", "-c", &limited]).output().unwrap();
        assert!(!output.status.success());
        let lines = lines(&output);
        let names_rank_1 = |line: &str| line.starts_with("gmerge-mpi: rank 1 on ") && line.ends_with("File too large");
        assert!(matches!(&lines[..], [line] if names_rank_1(line)), "{}", text(&output));
        assert_eq!((fs::read(folder.join("out.u32")).unwrap(), names(folder)), (b"old".to_vec(), before.clone()));
    }
}

/// A program in the background. Dropping this ends it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes of gmerge-mpi in a folder, in the order of ranks.
fn ranks_in(folder: &Path) -> Vec<(usize, u32)> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let rank = |process: u32| {
        let link = |name: &str| fs::read_link(format!("/proc/{process}/{name}")).ok();
        if link("exe")? != fs::canonicalize(PROGRAM).ok()? || link("cwd")? != fs::canonicalize(folder).ok()? {
            return None;
        }
        let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
        let rank = variables.find_map(|text| text.strip_prefix("OMPI_COMM_WORLD_RANK="))?;
        Some((rank.parse().ok()?, process))
    };
    let mut ranks: Vec<_> = processes.filter_map(rank).collect();
    ranks.sort();
    ranks
}

/// Waits until `found` returns a value.
fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_rank_ends_all_and_nothing_is_lost() {
    let folder = keys("a.u64", 4_000_000, "uniform");
    let folder = folder.path();
    fs::write(folder.join("out.u64"), "old").unwrap();
    let before = names(folder);
    for victim in [2, 0] {
        let command = ["-n", "4", PROGRAM, "sort", "a.u64", "-o", "out.u64", "-S", "2M", "-T", "."];
        let mut running = Running(mpirun(folder, &command).spawn().unwrap());
        // Rank 0 has opened the temporary file of the output.
        let has_output = |process: u32| {
            let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
            let is_output = |path: PathBuf| path.starts_with(folder) && !path.ends_with("a.u64") && path != folder;
            files.filter_map(|file| fs::read_link(file.ok()?.path()).ok()).any(is_output).then_some(())
        };
        let process = wait_for(|| {
            let ranks = ranks_in(folder);
            ranks.first().filter(|first| first.0 == 0).and_then(|first| has_output(first.1))?;
            ranks.iter().find(|rank| rank.0 == victim).map(|rank| rank.1)
        });
        let killed = Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
        assert!(killed.success());
        assert!(!running.0.wait().unwrap().success());
        wait_for(|| ranks_in(folder).is_empty().then_some(()));
        assert_eq!((fs::read(folder.join("out.u64")).unwrap(), names(folder)), (b"old".to_vec(), before.clone()));
    }
}

/// The greatest observed memory of a rank of a sort, in KiB.
fn peak_of_sort(folder: &Path, arguments: &str) -> u64 {
    let command = ["-n", "2", PROGRAM, "sort"].into_iter().chain(arguments.split(' ')).collect::<Vec<_>>();
    let mut running = Running(mpirun(folder, &command).spawn().unwrap());
    let mut peak = 0;
    while running.0.try_wait().unwrap().is_none() {
        for (_, process) in ranks_in(folder) {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
            peak = peak.max(line.map_or(0, |number| number.trim().parse().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(running.0.wait().unwrap().success());
    peak
}

#[test]
fn every_rank_keeps_to_its_memory() {
    let folder = keys("a.u32", 12_000_000, "uniform");
    let folder = folder.path();
    succeed(gmerge(folder, "gen -n 1 -o one.u32"));
    let program = peak_of_sort(folder, "one.u32 -o out.u32");
    let limited = peak_of_sort(folder, "a.u32 -o out.u32 -S 8M -T .");
    let free = peak_of_sort(folder, "a.u32 -o out.u32");
    assert!(program > 0 && limited < program + (16 << 10), "{limited} KiB, and {program} for one key");
    // Already the keys of a rank take 22.9 MiB.
    assert!(free > program + (20 << 10), "{free} KiB without a limit, and {program} for one key");
    succeed(run(folder, 2, "check out.u32"));
}

#[test]
fn flags_of_gmerge_that_are_not_supported_are_refused() {
    let folder = keys("a.u32", 10, "uniform");
    for flag in ["--unique", "--top 3", "--argsort", "--check", "--segment-len 2", "--merge", "--stats json", "-c"] {
        let output = run(folder.path(), 2, &format!("sort a.u32 -o out.u32 {flag}"));
        assert!(!output.status.success());
        assert_eq!(text(&output).matches("gmerge-mpi: sort has no flag ").count(), 1, "{}", text(&output));
    }
    assert_eq!(names(folder.path()), ["a.u32"]);
    for (arguments, message) in [
        ("sort a.u32 -o /dev/null", "/dev/null: cannot be written by several programs at once"),
        ("sort /dev/null -o out.u32 --type u32", "/dev/null: is no regular file"),
        ("sort b.u32 -o out.u32", "b.u32: No such file or directory"),
        ("sort a.u32 -o no/out.u32", "no/out.u32: cannot write to folder no: No such file or directory"),
    ] {
        let output = run(folder.path(), 3, arguments);
        assert!(matches!(&lines(&output)[..], [line] if line.contains(message)), "{}", text(&output));
    }
}
