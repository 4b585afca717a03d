//! Flags of sort(1) that this program does not have, and alternatives.

/// The flags, each with its replacement, or with the reason why there is none.
const FLAGS: [(&[&str], &str); 12] = [
    (
        &["-n", "--numeric-sort", "-g", "--general-numeric-sort", "--sort"],
        "keys are numbers, compared by the type that --type or the file's extension names",
    ),
    (
        &["--human-numeric-sort", "-M", "--month-sort", "-V", "--version-sort"],
        "keys are binary numbers or bytes, and no text",
    ),
    (
        &[
            "-b",
            "--ignore-leading-blanks",
            "-d",
            "--dictionary-order",
            "-f",
            "--ignore-case",
            "-i",
            "--ignore-nonprinting",
        ],
        "keys are binary numbers or bytes, and no text: all of their bits count",
    ),
    (&["-k"], "gmerge sort and gmerge check order records by --key OFFSET:TYPE, and --record-size"),
    (&["-t", "--field-separator"], "no character separates fields: --key OFFSET:TYPE tells where they are"),
    (&["-z", "--zero-terminated"], "no character ends a key or record: all have the same size"),
    (&["-R", "--random-sort", "--random-source"], "gmerge sorts, and does not shuffle"),
    (&["--buffer-size"], "its name is --memory here, or -S"),
    (&["--temporary-directory"], "its name is --tmp-dir here, or -T"),
    (&["--compress-program"], "temporary files are not compressed"),
    (&["--debug"], "--verbose prints how keys are read"),
    (&["--files0-from"], "gmerge sort and gmerge merge have it"),
];

/// The hint for a value of `--check`, which is another flag in this program.
pub const CHECK: &str = "it reads the output back; gmerge check and gmerge sort -c check a file that exists";

/// The hint for the flag `flag`, if sort(1) has it.
pub fn hint(flag: &str) -> Option<&'static str> {
    FLAGS.iter().find(|(names, _)| names.contains(&flag)).map(|(_, hint)| *hint)
}

/// Whether `command`, which begins with the name of the program, is a command with a counterpart in sort(1).
pub fn is_like(command: &str) -> bool {
    command.split(' ').nth(1).is_some_and(|command| ["sort", "merge", "check"].contains(&command))
}
