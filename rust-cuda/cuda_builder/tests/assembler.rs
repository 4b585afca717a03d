//! Assembles PTX. Needs NVIDIA's ptxas, on the path or named by `PTXAS`:
//! `cargo test -p gmerge-cuda-builder --test assembler -- --ignored`.

use cuda_builder::{Assembler, CudaBuilderError};
use std::path::Path;

#[test]
#[ignore = "needs ptxas"]
fn modules_become_machine_code_and_what_is_no_ptx_an_error() {
    let assembler = Assembler::find().expect("ptxas is on the path, or PTXAS names it");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-gpu/ptx/textbook_u32.ptx");
    let ptx = std::fs::read_to_string(module).unwrap();
    for capability in [80, 90, 100] {
        let code = assembler.assemble(&ptx, capability).unwrap();
        assert!(code.starts_with(b"\x7fELF"), "machine code for {capability} is an ELF file");
    }
    let error = assembler.assemble("no PTX", 90).unwrap_err();
    assert!(matches!(&error, CudaBuilderError::BuildFailed { command, .. } if command.contains("sm_90")), "{error}");
}
