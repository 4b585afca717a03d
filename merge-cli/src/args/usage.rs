//! Errors of the command line as one line, like all other errors, with the expected and the found text.

use super::sort_1;
use crate::say::error::shown;
use crate::say::report;
use crate::spec::KeyType;
use clap::error::{ContextKind as Context, ContextValue, ErrorKind};
use std::error::Error;
use std::path::Path;

/// The most edits between an unknown flag and a suggested flag.
const MOST_EDITS: usize = 2;

/// Prints help and the version as clap does, and an error as one line.
///
/// # Errors
/// If help or the version cannot be written to standard output.
pub fn print(error: &clap::Error) -> std::io::Result<()> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.print()
        }
        _ => {
            report::error(&message(error));
            Ok(())
        }
    }
}

/// The line for an error that clap has found.
pub fn message(error: &clap::Error) -> String {
    let of = |kind| error.get(kind).map(text).unwrap_or_default();
    let (argument, value) = (of(Context::InvalidArg), of(Context::InvalidValue));
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => invalid_value(error, &argument),
        ErrorKind::TooManyValues => {
            let hint = hint((argument == "--check").then_some(sort_1::CHECK));
            format!("{argument}: expected no value, found {value}{hint}")
        }
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            let (expected, found) =
                (of(Context::MinValues) + &of(Context::ExpectedNumValues), of(Context::ActualNumValues));
            format!("{argument}: expected {expected} values, found {found}")
        }
        ErrorKind::ArgumentConflict => match of(Context::PriorArg) {
            other if other == argument => format!("{argument} cannot be used multiple times"),
            other => format!("{argument} and {other} cannot be used together"),
        },
        ErrorKind::MissingRequiredArgument => format!("{} needs {argument}", last(&command(error))),
        ErrorKind::MissingSubcommand => {
            format!("{} needs a command, one of {}", of(Context::InvalidSubcommand), of(Context::ValidSubcommand))
        }
        ErrorKind::InvalidSubcommand => {
            let (found, close) = (of(Context::InvalidSubcommand), of(Context::SuggestedSubcommand));
            let close = Some(close).filter(|close| !close.is_empty()).map(|close| format!("did you mean {close}?"));
            let program = command(error);
            format!("{program} has no command {found}: {}", close.unwrap_or_else(|| format!("see {program} --help")))
        }
        ErrorKind::UnknownArgument => unknown_argument(error),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8, expected that of all but names of files".to_owned(),
        _ => shown(&error.to_string()),
    }
}

/// The line for a missing value, an unknown name as a value, or a value that a parser refuses.
fn invalid_value(error: &clap::Error, argument: &str) -> String {
    let possible = error.get(Context::ValidValue).map(text).filter(|names| !names.is_empty());
    let expected = match (error.source(), &possible) {
        (Some(why), _) => why.to_string(),
        (None, Some(names)) => format!("expected one of {names}"),
        (None, None) => "expected a value".to_owned(),
    };
    match error.get(Context::InvalidValue) {
        Some(ContextValue::String(value)) if error.source().is_some() || !value.is_empty() => {
            let has_order =
                possible.is_some() && KeyType::with_endian(value).is_some_and(|(_, endian)| endian.is_some());
            let hint = hint(has_order.then_some("--endian tells the byte order"));
            format!("{argument}: {expected}, found {}{hint}", shown(value))
        }
        _ => format!("{argument}: {expected}, found none"),
    }
}

/// The line for an unknown flag, or for an excess argument.
fn unknown_argument(error: &clap::Error) -> String {
    let Some(ContextValue::String(raw)) = error.get(Context::InvalidArg) else { return shown(&error.to_string()) };
    let (command, found) = (command(error), shown(raw));
    if !raw.starts_with('-') {
        return format!("{}: expected no further argument, found {found}", last(&command));
    }
    let close = match error.get(Context::SuggestedArg) {
        Some(ContextValue::String(close)) if strsim::levenshtein(raw, close) <= MOST_EDITS => {
            Some(format!("did you mean {close}?"))
        }
        _ => None,
    };
    let of_sort = sort_1::hint(raw).filter(|_| sort_1::is_like(&command)).map(str::to_owned);
    let of_file = (command.contains(' ') && Path::new(raw).exists()).then(|| format!("./{found} names the file"));
    let may_be_key = last(&command) == "search" && !raw.starts_with("--");
    let of_key = may_be_key.then(|| "-- precedes keys that begin with a hyphen".to_owned());
    let why = of_sort.or(close).or(of_file).or(of_key).unwrap_or_else(|| format!("see {command} --help"));
    format!("{} has no flag {found}: {why}", last(&command))
}

/// The names of the program and the command, from clap's line of usage.
fn command(error: &clap::Error) -> String {
    let usage = error.get(Context::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip(1);
    words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect::<Vec<_>>().join(" ")
}

/// The last word: the name of the command, or of the program if there is no command.
fn last(command: &str) -> &str {
    command.rsplit(' ').next().unwrap_or_default()
}

/// A hint behind a colon, if there is one.
fn hint(hint: Option<&str>) -> String {
    hint.map(|hint| format!(": {hint}")).unwrap_or_default()
}

/// A part of an error as text of one line.
fn text(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(texts) => texts.iter().map(|text| shown(text)).collect::<Vec<_>>().join(", "),
        ContextValue::None => String::new(),
        ContextValue::String(text) if text.is_empty() => String::new(),
        other => shown(&other.to_string()),
    }
}
