//! The kernels, assembled by NVIDIA's ptxas. It is named by the environment variable PTXAS, or is on the PATH.

use std::process::Command;

#[test]
#[ignore = "needs ptxas, of CUDA"]
fn nothing_is_kept_in_local_memory() {
    let assembler = std::env::var("PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    for generation in ["sm_80", "sm_90", "sm_100"] {
        let output = Command::new(&assembler)
            .args(["-v", "-o", "/dev/null", "-arch", generation])
            .arg(concat!(env!("OUT_DIR"), "/kernels.ptx"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let frames: Vec<&str> = said.lines().filter(|line| line.contains("bytes stack frame")).collect();
        // Nine kernels for each of the four lines of `kernels!`.
        assert_eq!(frames.len(), 36, "{said}");
        let is_free = |line: &&str| line.trim() == "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
        assert!(frames.iter().all(is_free), "{generation}: {said}");
    }
}
