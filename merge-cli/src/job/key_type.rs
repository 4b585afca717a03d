//! The type of the keys: from `--type`, or from the headers and extensions of the files.

use crate::say::error::{Failure, Result, name};
use crate::say::report;
use crate::spec::KeyType;
use std::path::Path;

/// A file with possible evidence of the type of the keys.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    path: &'a Path,
    told: Option<KeyType>,
    by: Evidence,
}

/// The evidence of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    Header,
    Extension,
}

impl Evidence {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Extension => "extension",
        }
    }
}

impl<'a> Source<'a> {
    /// The extension of `path`.
    pub fn extension(path: &'a Path) -> Self {
        Self { path, told: KeyType::of_extension(path).map(|(key_type, _)| key_type), by: Evidence::Extension }
    }

    /// A header of the file at `path`, with this type of keys.
    pub fn header(path: &'a Path, key_type: KeyType) -> Self {
        Self { path, told: Some(key_type), by: Evidence::Header }
    }
}

/// The type in `--type`, otherwise in the headers and extensions of `sources`. One source with a type suffices, and all
/// types must agree. `--type` overrules extensions, but no header.
pub fn decide(given: Option<KeyType>, sources: &[Source]) -> Result<KeyType> {
    if let Some(given) = given {
        let mut headers = sources.iter().filter(|source| source.by == Evidence::Header);
        if let Some((told, path)) =
            headers.find_map(|source| Some((source.told.filter(|told| *told != given)?, source.path)))
        {
            let message = format!("holds {told} keys by its header, expected {given} keys by --type: leave --type out");
            return Err(Failure::file(path, message));
        }
        report::verbose(format_args!("keys: {given}, by --type"));
        return Ok(given);
    }
    let mut found: Option<(KeyType, &Source)> = None;
    for source in sources {
        match (source.told, found) {
            (Some(here), Some((there, other))) if here != there => {
                return Err(contradiction(other, there, source, here));
            }
            (Some(here), None) => found = Some((here, source)),
            _ => {}
        }
    }
    let (key_type, Source { path, by, .. }) = found.ok_or_else(|| unknown(sources))?;
    report::verbose(format_args!("keys: {key_type}, by the {} of {}", by.name(), name(path)));
    Ok(key_type)
}

/// The error of files without any evidence of a type.
fn unknown(sources: &[Source]) -> Failure {
    let extensions = KeyType::names().replace(", ", ", .");
    let hint = format!("no extension tells the type of its keys (.{extensions} would): name it with --type");
    match sources.first() {
        Some(first) => Failure::file(first.path, hint),
        None => Failure::new(hint),
    }
}

/// The error of two files with different types.
fn contradiction(other: &Source, there: KeyType, source: &Source, here: KeyType) -> Failure {
    let (other_name, other_by, source_name, by) = (name(other.path), other.by, name(source.path), source.by);
    let by_its = if by == other_by { String::new() } else { format!(" by its {}", by.name()) };
    let hint = match (other_by, by) {
        (Evidence::Header, Evidence::Header) => "both must hold keys of the same type",
        (Evidence::Extension, Evidence::Extension) => "name the type of both with --type",
        _ => "rename the file, or name the type of the header with --type",
    };
    Failure::new(format!(
        "{other_name} holds {there} keys by its {} and {source_name} {here} keys{by_its}: {hint}",
        other_by.name()
    ))
}
