//! When checked-in modules are used, when they are compiled again, and the error if neither is possible.

use cuda_builder::{
    CudaBuilderError, Modules, SourceHash, current_modules, packaged_modules, read_modules, write_modules,
};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A source file, and a folder of two modules compiled from it.
struct Project(TempDir);

impl Project {
    fn new() -> Self {
        let project = Self(TempDir::new().unwrap());
        project.write_source("fn kernel() {}");
        write_modules(&modules("checked in"), &project.hash(), "rustc 1.2.3", &project.ptx()).unwrap();
        project
    }

    fn write_source(&self, text: &str) {
        fs::write(self.0.path().join("lib.rs"), text).unwrap();
    }

    fn hash(&self) -> SourceHash {
        SourceHash::of(self.0.path(), &["lib.rs"], &[]).unwrap()
    }

    fn ptx(&self) -> PathBuf {
        self.0.path().join("ptx")
    }

    fn current(
        &self,
        compile: impl FnOnce() -> Result<Modules, CudaBuilderError>,
    ) -> Result<Modules, CudaBuilderError> {
        current_modules(&self.ptx(), &self.hash(), compile)
    }
}

fn modules(text: &str) -> Modules {
    ["merge_u32", "sort_u32"].map(|name| (name.to_owned(), text.to_owned())).into()
}

fn no_compiler() -> Result<Modules, CudaBuilderError> {
    Err(CudaBuilderError::NoCompiler { looked: "/usr/bin/rustc: has no core".to_owned() })
}

/// The error names the folder that is out of date, the compilers that were tried, and a remedy.
#[track_caller]
fn assert_out_of_date(project: &Project, result: Result<Modules, CudaBuilderError>) {
    let error = result.expect_err("out-of-date modules are refused");
    assert!(matches!(error, CudaBuilderError::OutOfDate { .. }), "{error}");
    let (folder, text) = (project.ptx().display().to_string(), error.to_string());
    for part in [&folder, "/usr/bin/rustc: has no core", "`rustup component add rust-src`", "CUDA_BUILDER_RUSTC"] {
        assert!(text.contains(part), "no {part} in: {text}");
    }
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn current_modules_need_no_compiler() {
    let project = Project::new();
    let found = project.current(|| panic!("nothing is to be compiled")).unwrap();
    assert_eq!(found, modules("checked in"));
}

#[test]
fn modules_of_other_sources_are_compiled_afresh() {
    let project = Project::new();
    project.write_source("fn kernel() { changed() }");
    let fresh = modules("fresh");
    assert_eq!(project.current(|| Ok(fresh.clone())).unwrap(), fresh);
}

#[test]
fn modules_of_other_sources_are_an_error_without_a_compiler() {
    let project = Project::new();
    project.write_source("fn kernel() { changed() }");
    assert_out_of_date(&project, project.current(no_compiler));
}

#[test]
fn one_module_that_is_not_the_one_of_the_manifest_is_enough() {
    let project = Project::new();
    fs::write(project.ptx().join("sort_u32.ptx"), "changed").unwrap();
    assert_out_of_date(&project, project.current(no_compiler));

    let project = Project::new();
    fs::write(project.ptx().join("sort_u64.ptx"), "checked in").unwrap();
    assert_out_of_date(&project, project.current(no_compiler));

    let project = Project::new();
    fs::remove_file(project.ptx().join("sort_u32.ptx")).unwrap();
    assert_out_of_date(&project, project.current(no_compiler));
}

#[test]
fn modules_without_a_manifest_are_of_unknown_sources() {
    let project = Project::new();
    fs::remove_file(project.ptx().join("MANIFEST")).unwrap();
    assert_out_of_date(&project, project.current(no_compiler));
    fs::write(project.ptx().join("MANIFEST"), "").unwrap();
    assert_out_of_date(&project, project.current(no_compiler));
}

#[test]
fn no_modules_are_an_error_without_a_compiler() {
    let project = Project::new();
    fs::remove_dir_all(project.ptx()).unwrap();
    assert_out_of_date(&project, project.current(no_compiler));
    fs::create_dir(project.ptx()).unwrap();
    assert_out_of_date(&project, project.current(no_compiler));
}

#[test]
fn other_errors_of_the_compiler_stay_as_they_are() {
    let project = Project::new();
    project.write_source("fn kernel() { changed() }");
    let result = project.current(|| Err(CudaBuilderError::Ptx("no end".to_owned())));
    assert!(matches!(result, Err(CudaBuilderError::Ptx(text)) if text == "no end"));
}

#[test]
fn a_module_that_cannot_be_read_is_an_error_that_names_it() {
    let project = Project::new();
    fs::write(project.ptx().join("sort_u32.ptx"), [0xff, 0xfe]).unwrap();
    let error = project.current(no_compiler).unwrap_err();
    assert!(error.to_string().contains("sort_u32.ptx"), "{error}");
}

#[test]
fn writing_removes_modules_that_are_no_more_and_nothing_else() {
    let project = Project::new();
    fs::write(project.ptx().join("notes.txt"), "kept").unwrap();
    let one: Modules = [("merge_u64".to_owned(), "text".to_owned())].into();
    write_modules(&one, &project.hash(), "rustc 1.2.3", &project.ptx()).unwrap();
    assert_eq!(read_modules(&project.ptx()).unwrap(), one);
    assert!(project.ptx().join("notes.txt").exists());
}

#[test]
fn packaged_modules_need_no_sources_but_are_complete() {
    let project = Project::new();
    project.write_source("fn other() {}");
    assert_eq!(packaged_modules(&project.ptx()).unwrap(), modules("checked in"));

    let assert_incomplete = || {
        let error = packaged_modules(&project.ptx()).expect_err("an incomplete package is refused");
        assert!(matches!(error, CudaBuilderError::Incomplete { .. }), "{error}");
        assert!(error.to_string().contains(&project.ptx().display().to_string()), "{error}");
    };
    fs::write(project.ptx().join("sort_u32.ptx"), "changed").unwrap();
    assert_incomplete();
    fs::remove_file(project.ptx().join("sort_u32.ptx")).unwrap();
    assert_incomplete();
    fs::remove_dir_all(project.ptx()).unwrap();
    assert_incomplete();
}
