//! The jobs of `gmerge search`.

use super::keys::order_of;
use super::records::TYPE_OF_FIELD;
use super::{Items, Job, LookUp, Needle, Search, numbers, refuse};
use crate::args::{CommonArgs, SearchArgs};
use crate::coding::Coding;
use crate::file::Target;
use crate::file::input::check_standard_input;
use crate::records::{Layout, Records};
use crate::say::error::{Failure, Result};
use merge_host::Bound;
use std::path::{Path, PathBuf};

/// The job of these flags.
pub fn job(args: SearchArgs) -> Result<Job> {
    refuse::beside(args.records.flag(), &[("--type", args.common.key_type.is_some())], TYPE_OF_FIELD)?;
    match args.needles.clone() {
        None => look_up(args),
        Some(needles) => search(args, needles),
    }
}

/// The job of a search of keys on the command line.
fn look_up(args: SearchArgs) -> Result<Job> {
    let SearchArgs {
        input: path,
        keys,
        needles: _,
        right,
        output,
        writing,
        reverse,
        order,
        assume_sorted,
        records,
        common,
    } = args;
    let of_needles = [
        ("--assume-sorted", assume_sorted),
        ("--format", writing.format.is_some()),
        ("--output", output.is_some()),
        ("--right", right),
        ("--sync", writing.sync),
    ];
    if let Some(flag) = refuse::first(&of_needles) {
        return Err(Failure::new(format!("{flag} needs --needles: the result for KEY is text on standard output")));
    }
    let CommonArgs { key_type: _, endian: _, parallel: threads, stats } = common;
    let flags = common.key_flags(None, order_of(reverse, order)).beside(&records);
    let mut inputs = [flags.open_keys(&path)?];
    let items = Items::decide(records, &mut inputs, flags, None)?;
    let [mut input] = inputs;
    if !input.is_regular() {
        let expected = "is a stream, expected a regular file to search for KEY: --needles also takes streams";
        return Err(Failure::file(&path, expected));
    }
    let count = items.count(&input)?.unwrap_or(0);
    let stats = items.stats("search", stats);
    let records = match items {
        Items::Keys(_) => Records::new(Layout::of_keys(input.coding()), flags.order)?,
        Items::Records(records) => records,
    };
    input.set_coding(Coding::BYTES);
    let needle = |text: String| {
        let mut ends = records.layout.parse(&text)?;
        if records.key.compare(&ends[0], &ends[1]).is_gt() {
            ends.reverse();
        }
        Ok(Needle { text, ends })
    };
    let needles = keys.into_iter().map(needle).collect::<Result<_>>()?;
    Ok(Job::LookUp(LookUp { input, count, records, needles, threads, stats }))
}

/// The job of a search of the keys in the file at `needles`.
fn search(args: SearchArgs, needles: PathBuf) -> Result<Job> {
    // clap refuses keys beside needles.
    let SearchArgs {
        input,
        keys: _,
        needles: _,
        right,
        output,
        writing,
        reverse,
        order,
        assume_sorted,
        records,
        common,
    } = args;
    const WHY: &str = "a file of needles holds keys, and records are looked up by KEY";
    refuse::beside(records.flag(), &[("--needles", true)], WHY)?;
    let CommonArgs { key_type: _, endian: _, parallel: threads, stats } = common;
    let flags = common.key_flags(writing.format, order_of(reverse, order));
    let paths = [input, needles];
    let named = ["FILE", "NEEDLES"].map(str::to_owned).into_iter().zip(paths.iter().map(PathBuf::as_path));
    check_standard_input(named)?;
    let target = Target::find(output.as_deref().unwrap_or(Path::new("-")), writing.sync)?;
    let mut inputs = [flags.open_keys(&paths[0])?, flags.open_keys(&paths[1])?];
    if let Some(input) = inputs.iter().find(|input| input.header_record().is_some()) {
        return Err(Failure::file(input.path(), format!("holds records by its header: {WHY}")));
    }
    let key_type = flags.decide(&mut inputs, None)?;
    let stats = Items::Keys(key_type).stats("search", stats);
    let (output, limit) = numbers::indices(target, flags, "--needles")?;
    let bound = if right { Bound::Upper } else { Bound::Lower };
    Ok(Job::Search(Search { inputs, key_type, bound, output, limit, assume_sorted, threads, stats }))
}
