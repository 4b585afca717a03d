//! `gmerge completions` and `gmerge man`, compared with `--help`.

use crate::common::Folder;
use std::collections::BTreeSet;

fn text(folder: &Folder, arguments: &str) -> String {
    let run = folder.run(arguments);
    run.succeeds();
    String::from_utf8(run.stdout().to_vec()).unwrap()
}

/// The commands that `gmerge --help` lists.
fn commands(folder: &Folder) -> Vec<String> {
    let help = text(folder, "--help");
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The lines of a command's description are indented further than its name.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands: Vec<_> = names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(["sort", "union", "man", "help"].iter().all(|name| commands.iter().any(|command| command == name)));
    commands.into_iter().filter(|command| command != "help").collect()
}

/// The long flags that a command's help lists.
fn flags(folder: &Folder, command: &str) -> BTreeSet<String> {
    let help = text(folder, &format!("{command} --help"));
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split([' ', ',']).filter(|word| word.starts_with("--")));
    let flags: BTreeSet<_> = words.map(str::to_owned).collect();
    assert!(flags.contains("--help") && flags.contains("--progress"), "{command}: {flags:?}");
    flags
}

#[test]
fn completions_have_every_command_and_flag() {
    let folder = Folder::new();
    let commands = commands(&folder);
    let flags: BTreeSet<_> = commands.iter().flat_map(|command| flags(&folder, command)).collect();
    for flag in ["--top", "--files0-from", "--parallel", "--assume-sorted", "--values-out"] {
        assert!(flags.contains(flag), "no {flag} in {flags:?}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&folder, &format!("completions {shell}"));
        for command in &commands {
            assert!(script.contains(&**command), "no {command} for {shell}");
        }
        for flag in &flags {
            let written = if shell == "fish" { format!("-l {}", &flag[2..]) } else { flag.clone() };
            assert!(script.contains(&written), "no {flag} for {shell}");
        }
    }
    folder.run("completions csh").fails(2, &["csh", "bash"]);
}

#[test]
fn manual_pages_have_every_command_and_flag() {
    let folder = Folder::new();
    folder.run("man -o deep/man1").succeeds();
    let mut pages = String::new();
    let page = |name: &str| {
        let page = std::fs::read_to_string(folder.path(&format!("deep/man1/{name}"))).unwrap();
        assert!(page.contains(".TH gmerge"), "{name}: {page}");
        // Dashes are escaped, so that they can be copied from the page.
        (page.replace("\\-", "-"), page)
    };
    let (plain, raw) = page("gmerge.1");
    pages += &raw;
    for command in commands(&folder) {
        assert!(plain.contains(&format!("gmerge-{command}(1)")), "no {command} in {plain}");
        let (plain, raw) = page(&format!("gmerge-{command}.1"));
        for flag in flags(&folder, &command) {
            assert!(plain.contains(&flag), "no {flag} in {plain}");
        }
        pages += &raw;
    }
    assert_eq!(text(&folder, "man"), pages);
    assert_eq!(std::fs::read_dir(folder.path("deep/man1")).unwrap().count(), commands(&folder).len() + 1);
    folder.run("man -o /dev/null/man1").fails(2, &["/dev/null/man1: Not a directory"]);
    folder.shell("gmerge man > /dev/full").fails(2, &["standard output: No space left on device"]);
    folder.shell("gmerge man | true; gmerge completions zsh | true").succeeds();
}
