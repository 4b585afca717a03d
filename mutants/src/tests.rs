//! Tests of the woven sources.

use crate::find::places;
use crate::weave::{CHOICE, weave};
use std::process::Command;

const SOURCE: &str = "
pub const COUNT: usize = 1 + 2;
pub fn twice(x: u32) -> u32 {
    let mut y = x;
    y += x;
    if x < 3 && y > 100 { y = y.min(7); }
    y
}
#[cfg(test)]
mod tests { fn one() -> u32 { 1 + 1 } }
";

/// The errors of [`SOURCE`], in the order of their numbers.
fn errors() -> Vec<String> {
    places(SOURCE).unwrap().into_iter().flat_map(|place| place.errors).map(|error| error.what).collect()
}

#[test]
fn places_outside_of_constants_and_tests() {
    let expected = [
        "`y += x;` is left out",
        "`+=` becomes `-=`",
        "`&&` becomes `||`",
        "`<` becomes `<=`",
        "`<` becomes `>=`",
        "3 becomes 4",
        "`>` becomes `>=`",
        "`>` becomes `<=`",
        "100 becomes 101",
        "`y = y.min(7);` is left out",
        "`min` becomes `….max(7)`",
        "7 becomes 8",
    ];
    assert_eq!(errors(), expected);
}

/// The woven source compiles, and each number chooses its error.
#[test]
fn a_number_chooses_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let woven = weave(SOURCE, &places(SOURCE).unwrap(), 0);
    let print = "fn main() { println!(\"{} {} {}\", twice(1), twice(3), twice(60)); }";
    let (source, program) = (folder.path().join("main.rs"), folder.path().join("main"));
    std::fs::write(&source, format!("{}{CHOICE}{print}", woven.text)).unwrap();
    let rustc =
        Command::new("rustc").args(["--edition=2024", "--cap-lints=allow", "-o"]).arg(&program).arg(&source).status();
    assert!(rustc.unwrap().success());
    let run = |number: usize| {
        let output = Command::new(&program).env("MUTANT", number.to_string()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(run(1000), "2 6 120");
    for (number, expected) in [(0, "1 3 60"), (1, "0 0 0"), (2, "2 6 7"), (4, "2 6 7"), (9, "2 6 120")] {
        assert_eq!(run(number), expected, "{}", errors()[number]);
    }
    // Reached places are recorded by their first number, once each.
    let reached = folder.path().join("reached");
    Command::new(&program).env("MUTANTS_REACHED", &reached).output().unwrap();
    let mut numbers: Vec<u32> =
        std::fs::read_to_string(&reached).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort();
    assert_eq!(numbers, [0, 1, 2, 3, 5, 6, 8]);
}
