//! `gmerge info`

use crate::common::{Folder, engines};

#[test]
fn everything_is_named() {
    let run = Folder::new().run("info");
    run.succeeds();
    let text = String::from_utf8(run.stdout().to_vec()).unwrap();
    for title in ["gmerge", "devices", "driver", "kernel modules", "CPU threads", "engine auto"] {
        let line = text.lines().find(|line| line.starts_with(title)).unwrap_or_else(|| panic!("no {title} in {text}"));
        assert!(!line[title.len()..].trim().is_empty(), "{line}");
    }
    assert_eq!(text.contains("cpu, because there is no GPU"), engines() == ["cpu"], "{text}");
    let threads = std::thread::available_parallelism().unwrap();
    assert!(
        text.lines().any(|line| line.starts_with("CPU threads") && line.ends_with(&format!(" {threads}"))),
        "{text}"
    );
}
