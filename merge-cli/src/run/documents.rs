//! `gmerge completions` and `gmerge man`: generated from the definition of the command line, so that they are always up
//! to date.

use crate::args::Args;
use crate::os::standard::print;
use crate::say::error::{Failure, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::Path;
use std::{fs, io};

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "gmerge", &mut script);
    print(&script)
}

/// Prints the manual pages, or writes each to a file in `folder`.
pub fn man(folder: Option<&Path>) -> Result<()> {
    let pages = pages().map_err(|error| Failure::new(format!("cannot make the manual pages: {error}")))?;
    let Some(folder) = folder else {
        return print(&pages.into_iter().flat_map(|(_, page)| page).collect::<Vec<_>>());
    };
    fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
    pages.iter().try_for_each(|(name, page)| {
        let path = folder.join(name);
        fs::write(&path, page).map_err(|error| Failure::io(&path, &error))
    })
}

/// The manual pages, and the names of their files.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut program = Args::command().disable_help_subcommand(true);
    // Gives the commands their full names and the global flags.
    program.build();
    let commands = program.get_subcommands().cloned();
    let pages = [program.clone()].into_iter().chain(commands).map(|command| {
        let man = Man::new(command);
        let mut page = Vec::new();
        man.render(&mut page)?;
        Ok((man.get_filename(), page))
    });
    pages.collect()
}
