//! Tests of `scripts/check-kernels`. A program of a few lines stands in for NVIDIA's ptxas. Copies of the checked-in
//! modules, changed by a test, stand in for newly compiled modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Two folders of modules: one for the checked-in modules, and one for the newly compiled modules. At first, both have
/// the same few modules of the project.
struct Modules(TempDir);

impl Modules {
    fn new() -> Self {
        let modules = Self(TempDir::new().unwrap());
        for folder in [modules.checked_in(), modules.fresh()] {
            fs::create_dir(&folder).unwrap();
            for module in ["merge_u64.ptx", "merge_u32.ptx", "sort_u32.ptx", "MANIFEST"] {
                fs::copy(root().join("kernels-gpu/ptx").join(module), folder.join(module)).unwrap();
            }
        }
        modules
    }

    fn checked_in(&self) -> PathBuf {
        self.0.path().join("checked-in")
    }

    fn fresh(&self) -> PathBuf {
        self.0.path().join("fresh")
    }

    fn edit_fresh(&self, module: &str, change: impl Fn(&str) -> String) {
        let path = self.fresh().join(module);
        let text = fs::read_to_string(&path).unwrap();
        let changed = change(&text);
        assert_ne!(text, changed);
        fs::write(path, changed).unwrap();
    }

    /// Runs the script with these variables. Returns its output if it succeeded, and its errors if not.
    fn check(&self, variables: &[(&str, &str)]) -> Result<String, String> {
        let mut command = Command::new(root().join("scripts/check-kernels"));
        command.arg(self.fresh()).arg(self.checked_in());
        command.env("PTXAS", root().join("tests/tests/stub/ptxas")).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

#[track_caller]
fn assert_complains(result: Result<String, String>, parts: &[&str]) {
    let complaint = result.expect_err("the script succeeded");
    for part in parts {
        assert!(complaint.contains(part), "no `{part}` in: {complaint}");
    }
}

const ADVICE: &str = "run scripts/build-kernels and check in the result";

#[test]
fn current_modules_without_local_memory_pass() {
    let output = Modules::new().check(&[]).unwrap();
    assert!(output.contains("no local memory on sm_80 sm_90 sm_100"), "{output}");
    let row = output.lines().find(|line| line.contains("merge_big ")).expect("each kernel has a row");
    assert!(row.ends_with(" u32  32 u64  32"), "{row}");
}

#[test]
fn modules_of_other_sources_are_found() {
    let modules = Modules::new();
    modules.edit_fresh("MANIFEST", |text| text.replacen("sources ", "sources 00", 1));
    assert_complains(modules.check(&[]), &["checked-in is not of the sources at hand", ADVICE]);

    let modules = Modules::new();
    modules.edit_fresh("MANIFEST", |text| text.replacen("sources ", "", 1));
    assert_complains(modules.check(&[]), &["MANIFEST does not say which sources the modules were made from"]);
}

#[test]
fn a_module_too_few_or_too_many_is_found() {
    let modules = Modules::new();
    fs::remove_file(modules.fresh().join("merge_u32.ptx")).unwrap();
    fs::copy(modules.fresh().join("merge_u64.ptx"), modules.fresh().join("merge_i31.ptx")).unwrap();
    let missing = "checked-in/merge_i31.ptx is missing";
    let extra = "checked-in/merge_u32.ptx is of no kernel in the sources";
    assert_complains(modules.check(&[]), &[missing, extra, ADVICE]);

    fs::remove_dir_all(modules.fresh()).unwrap();
    fs::create_dir(modules.fresh()).unwrap();
    assert_complains(modules.check(&[]), &["there are no modules in"]);
}

#[test]
fn a_change_by_hand_is_found_where_the_compiler_is_the_same() {
    let modules = Modules::new();
    modules.edit_fresh("merge_u32.ptx", |text| text.replacen("ret;", "bar.sync 0;\n\tret;", 1));
    assert_complains(modules.check(&[]), &["checked-in/merge_u32.ptx is not what the compiler makes", ADVICE]);

    modules.edit_fresh("MANIFEST", |text| text.replacen("compiler ", "compiler another ", 1));
    let output = modules.check(&[]).unwrap();
    assert!(output.contains("contents of 3 modules not compared"), "{output}");
}

#[test]
fn local_memory_is_found() {
    let modules = Modules::new();
    for (local, arch, said) in [
        ("merge_big_u32 sm_90 16 0 0", "sm_90", "16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
        ("merge_big_u32 sm_80 0 8 0", "sm_80", "0 bytes stack frame, 8 bytes spill stores, 0 bytes spill loads"),
        ("merge_big_u32 sm_100 0 0 4", "sm_100", "0 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads"),
    ] {
        let complaint = format!("merge_big_u32 uses local memory on {arch} (merge_u32.ptx): {said}");
        assert_complains(modules.check(&[("STUB_LOCAL", local)]), &[&complaint, "problems: 1\n"]);
    }
}

#[test]
fn a_module_is_assembled_only_for_gpus_that_run_it() {
    let modules = Modules::new();
    modules.edit_fresh("merge_u32.ptx", |text| text.replacen(".target sm_80", ".target sm_90", 1));
    modules.edit_fresh("MANIFEST", |text| text.replacen("compiler ", "compiler another ", 1));
    assert!(modules.check(&[("STUB_LOCAL", "merge_big_u32 sm_80 16 0 0")]).is_ok());
    assert!(modules.check(&[("STUB_LOCAL", "merge_big_u32 sm_90 16 0 0")]).is_err());
}

#[test]
fn what_ptxas_rejects_or_does_not_report_is_a_failure() {
    let modules = Modules::new();
    let rejected = modules.check(&[("STUB_REJECTS", "merge_u32.ptx")]);
    assert_complains(rejected, &["ptxas does not accept merge_u32.ptx for sm_80", "ptxas fatal : no"]);
    let silent = modules.check(&[("STUB_SILENT", "1")]);
    assert_complains(silent, &["ptxas's report of merge_u32.ptx for sm_100 does not name each of its kernels once"]);
}

#[test]
fn without_ptxas_it_says_where_to_get_it() {
    let result = Modules::new().check(&[("PTXAS", "no-such-ptxas")]);
    assert_complains(result, &["no program no-such-ptxas", "nvidia-cuda-nvcc", "PTXAS"]);
}
