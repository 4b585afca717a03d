//! Flags of sort(1) that this program does not have, and what to do instead.

/// The flags, and why there are none like them or what stands for them.
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
    (&["--files0-from"], "gmerge merge has it"),
];

/// What to do instead of a value for `--check`, which is another flag here.
pub const CHECK: &str = "it reads the output back; gmerge check and gmerge sort -c check a file that exists";

/// What to do instead of the flag of that name, if sort(1) has it.
pub fn hint(flag: &str) -> Option<&'static str> {
    FLAGS.iter().find(|(names, _)| names.contains(&flag)).map(|(_, hint)| *hint)
}

/// Whether the command, after the name of the program, does a part of what sort(1) does.
pub fn is_like(command: &str) -> bool {
    command.split(' ').nth(1).is_some_and(|command| ["sort", "merge", "check"].contains(&command))
}
