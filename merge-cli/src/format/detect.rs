//! Detection of a file's format: by the first bytes of an input, by the extension of an output, and by `--format` for
//! both.

use super::{Format, arrow, npy};
use crate::say::error::{Failure, Result};
use std::path::Path;

/// Length of the prefix of an input that shows its format, in bytes. A shorter input has fewer.
pub const PREFIX: usize = 256;

/// The first and last bytes of a Parquet file.
pub const PARQUET: &[u8; 4] = b"PAR1";
/// The first bytes of a file in Feather's first version, which has nothing in common with Arrow's formats.
const FEATHER_1: &[u8] = b"FEA1";

/// The name of a format with numbers as lines of text.
const TEXT: &str = "text";
/// The extensions and names of formats that this program does not support.
const FOREIGN: [(&[&str], &str); 13] = [
    (&["csv", "tsv"], "CSV"),
    (&["json", "jsonl", "ndjson"], "JSON"),
    (&["txt"], TEXT),
    (&["npz"], "NumPy's archives"),
    (&["h5", "hdf5", "hdf"], "HDF5"),
    (&["orc"], "ORC"),
    (&["avro"], "Avro"),
    (&["pkl", "pickle"], "pickle"),
    (&["mat"], "MATLAB"),
    (&["xlsx", "xls"], "Excel"),
    (&["db", "sqlite"], "SQLite"),
    (&["gz", "zst", "bz2", "xz", "lz4", "br"], "compressed files"),
    (&["zip", "tar", "tgz", "7z"], "archives"),
];

/// The axis of an array along which keys lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The only one: an array of one dimension, or a file of another format.
    Only,
    /// The last one: the keys of a row.
    Last,
    /// The first one: the keys of a column.
    First,
}

/// The content of a file, for messages about the extension of a raw file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Keys or records. If `is_typed`, the command line gives their type.
    Keys { is_typed: bool, axis: Axis },
    /// The values of keys.
    Values,
    /// Offsets of runs.
    Offsets,
}

/// The format of the input at `path` that begins with `first`: [`PREFIX`] bytes, or all of a shorter input.
///
/// `forced` is the format that the command line gives for the input. The content must agree with it, unless it is
/// [`Format::Raw`]. An extension of an unsupported format is an error, unless the command line gives the type of a raw
/// file. An Arrow stream is accepted in place of an Arrow file and vice versa, because the content tells them apart.
pub fn detect(path: &Path, first: &[u8], forced: Option<Format>, content: Content) -> Result<Format> {
    if forced == Some(Format::Raw) {
        return Ok(Format::Raw);
    }
    let found = of_content(first);
    match forced.or(Format::of_extension(path)) {
        Some(expected) if !expected.reads(found) => Err(unlike(path, first, expected, forced.is_some())),
        None if found == Format::Raw && !matches!(content, Content::Keys { is_typed: true, .. }) => {
            let hint = match content {
                Content::Keys { .. } => "name the type of raw numbers with --type",
                Content::Values => "give --format raw",
                Content::Offsets => "save it as .npy",
            };
            foreign(path, content, hint).map_or(Ok(found), Err)
        }
        _ => Ok(found),
    }
}

/// The format of the output at `path`: `forced`, if the command line gives a format, otherwise the format of the
/// extension.
///
/// # Errors
///
/// An extension of a format that this program does not write.
pub fn of_output(path: &Path, forced: Option<Format>) -> Result<Format> {
    match forced.or(Format::of_extension(path)) {
        Some(format) => Ok(format),
        None => foreign(path, Content::Keys { is_typed: false, axis: Axis::Only }, "give --format raw")
            .map_or(Ok(Format::Raw), Err),
    }
}

/// The format of the output of values at `path`, by its extension. `forced` is the format that the command line gives
/// for keys. If it is raw, the extension of an unsupported format is no error.
pub fn of_values(path: &Path, forced: Option<Format>) -> Result<Format> {
    match Format::of_extension(path).or(forced.filter(|format| *format == Format::Raw)) {
        Some(format) => Ok(format),
        None => foreign(path, Content::Values, "give --format raw").map_or(Ok(Format::Raw), Err),
    }
}

impl Format {
    /// The format of the extension of `path`, if it has a header.
    pub fn of_extension(path: &Path) -> Option<Self> {
        match &*extension(path)? {
            "npy" => Some(Self::Npy),
            "arrow" | "feather" | "ipc" => Some(Self::Arrow),
            "arrows" => Some(Self::Arrows),
            "parquet" | "pq" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// Whether content in the format `found` is accepted where this format is expected.
    fn reads(self, found: Self) -> bool {
        let is_arrow = |format| matches!(format, Self::Arrow | Self::Arrows);
        self == found || is_arrow(self) && is_arrow(found)
    }
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

fn of_content(first: &[u8]) -> Format {
    if first.starts_with(npy::MAGIC) {
        Format::Npy
    } else if first.starts_with(arrow::MAGIC) {
        Format::Arrow
    } else if arrow::is_stream(first) {
        Format::Arrows
    } else if first.starts_with(PARQUET) {
        Format::Parquet
    } else {
        Format::Raw
    }
}

/// The error that the content of `path` is not in the expected format.
fn unlike(path: &Path, first: &[u8], expected: Format, is_forced: bool) -> Failure {
    if expected == Format::Arrow && first.starts_with(FEATHER_1) {
        let message = "is a Feather file of version 1, expected version 2, which is an Arrow file: save it again";
        return Failure::file(path, message);
    }
    let found = match &first[..first.len().min(npy::MAGIC.len())] {
        [] => "is empty".to_owned(),
        found => format!("begins with \"{}\"", found.escape_ascii()),
    };
    let expected = match expected {
        Format::Npy => format!("\"{}\" of an .npy file", npy::MAGIC.escape_ascii()),
        Format::Parquet => format!("\"{}\" of a Parquet file", PARQUET.escape_ascii()),
        _ => format!("\"{}\" of an Arrow file, or an Arrow stream", arrow::MAGIC.escape_ascii()),
    };
    let hint = if is_forced { "" } else { ": if it is raw, rename it" };
    Failure::file(path, format!("{found}, expected {expected}{hint}"))
}

/// The error for the extension of an unsupported format, if `path` has one.
fn foreign(path: &Path, content: Content, hint: &str) -> Option<Failure> {
    let extension = extension(path)?;
    let (_, name) = FOREIGN.iter().find(|(extensions, _)| extensions.contains(&&*extension))?;
    let expected = match content {
        // Lines of equal length can be raw values.
        Content::Values if *name == TEXT => return None,
        Content::Values => "expected .npy, .arrow, .arrows, or another extension for raw values",
        Content::Keys { .. } | Content::Offsets => {
            "expected .npy, .arrow, .arrows, .parquet, or a type such as .u32 for raw numbers"
        }
    };
    Some(Failure::file(path, format!(".{extension} is for {name}, {expected}: rename it, or {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Content = Content::Keys { is_typed: false, axis: Axis::Only };
    const EXTENSIONS: [(&str, Option<Format>); 12] = [
        ("x", None),
        ("x.u32", None),
        (".npy", None),
        ("x.npy", Some(Format::Npy)),
        ("x.NPY", Some(Format::Npy)),
        ("x.arrow", Some(Format::Arrow)),
        ("x.Feather", Some(Format::Arrow)),
        ("x.ipc", Some(Format::Arrow)),
        ("x.arrows", Some(Format::Arrows)),
        ("x.parquet", Some(Format::Parquet)),
        ("x.PQ", Some(Format::Parquet)),
        ("-", None),
    ];
    const FORCED: [Option<Format>; 6] =
        [None, Some(Format::Raw), Some(Format::Npy), Some(Format::Arrow), Some(Format::Arrows), Some(Format::Parquet)];

    /// Contents and their formats.
    fn contents() -> [(Vec<u8>, Format); 9] {
        let column = arrow::Column::new("keys", crate::spec::KeyType::U32).unwrap();
        let mut stream = Vec::new();
        arrow::Writer::begin(&mut stream, Format::Arrows, &column).unwrap();
        // Keys that begin like a message, but not like its metadata.
        let mut keys = stream.clone();
        keys[12..].fill(0xff);
        [
            (b"\x93NUMPY\x01\0".to_vec(), Format::Npy),
            (b"ARROW1\0\0".to_vec(), Format::Arrow),
            (stream[..stream.len().min(PREFIX)].to_vec(), Format::Arrows),
            (keys, Format::Raw),
            (b"PAR1\x15\x04".to_vec(), Format::Parquet),
            (b"\x93NUMPX".to_vec(), Format::Raw),
            (b"ARROW".to_vec(), Format::Raw),
            (vec![0xff; 8], Format::Raw),
            (Vec::new(), Format::Raw),
        ]
    }

    fn is_arrow(format: Format) -> bool {
        matches!(format, Format::Arrow | Format::Arrows)
    }

    #[test]
    fn every_content_extension_and_flag() {
        for (bytes, content) in contents() {
            for (name, extension) in EXTENSIONS {
                for forced in FORCED {
                    let found = detect(Path::new(name), &bytes, forced, KEYS);
                    let what = format!("{content:?} in {name} as {forced:?}: {found:?}");
                    match (forced, extension) {
                        (Some(Format::Raw), _) => assert_eq!(found.unwrap(), Format::Raw, "{what}"),
                        (Some(expected), _) | (None, Some(expected))
                            if content != expected && !(is_arrow(content) && is_arrow(expected)) =>
                        {
                            let failure = found.unwrap_err();
                            let message = failure.message().unwrap();
                            let found = if bytes.is_empty() { "is empty, expected " } else { "begins with \"" };
                            assert!(message.contains(found), "{what}");
                            assert_eq!(message.contains("if it is raw"), forced.is_none(), "{what}");
                        }
                        _ => assert_eq!(found.unwrap(), content, "{what}"),
                    }
                }
            }
        }
    }

    #[test]
    fn outputs_have_the_format_of_the_flag_or_the_extension() {
        for (name, extension) in EXTENSIONS {
            for forced in FORCED {
                let expected = forced.or(extension).unwrap_or(Format::Raw);
                assert_eq!(of_output(Path::new(name), forced).unwrap(), expected, "{name} {forced:?}");
            }
        }
    }

    #[test]
    fn foreign_extensions_are_refused_unless_a_format_is_given() {
        for extension in FOREIGN.iter().flat_map(|(extensions, _)| *extensions) {
            for name in [format!("x.{extension}"), format!("x.u32.{}", extension.to_uppercase())] {
                let path = Path::new(&name);
                let detect = |first: &[u8], forced, content| detect(path, first, forced, content);
                let raw = Some(Format::Raw);
                let mut found = vec![
                    (detect(b"12345678", None, KEYS), "--type"),
                    (detect(b"12345678", None, Content::Offsets), "save it as .npy"),
                    (of_output(path, None), "--format raw"),
                ];
                // Lines of equal length can be raw values.
                let of_values = [detect(b"12345678", None, Content::Values), of_values(path, None)];
                match *extension {
                    "txt" => assert!(of_values.iter().all(|found| matches!(found, Ok(Format::Raw)))),
                    _ => found.extend(of_values.map(|found| (found, "--format raw"))),
                }
                for (found, hint) in found {
                    let failure = found.unwrap_err();
                    let message = failure.message().unwrap();
                    assert!(message.starts_with(&format!("{name}: .{extension} is for ")), "{message}");
                    assert!(message.contains("expected .npy") && message.ends_with(hint), "{message}");
                }
                assert_eq!(detect(b"12345678", raw, KEYS).unwrap(), Format::Raw);
                assert_eq!(detect(b"12345678", raw, Content::Values).unwrap(), Format::Raw);
                assert_eq!(super::of_values(path, raw).unwrap(), Format::Raw);
                assert_eq!(
                    detect(b"12345678", None, Content::Keys { is_typed: true, axis: Axis::Only }).unwrap(),
                    Format::Raw
                );
                // A header takes precedence over the name.
                assert_eq!(detect(npy::MAGIC, None, KEYS).unwrap(), Format::Npy);
                for forced in FORCED.into_iter().flatten() {
                    assert_eq!(of_output(path, Some(forced)).unwrap(), forced);
                }
            }
        }
    }

    #[test]
    fn feather_files_of_version_1_are_named() {
        for name in ["x.feather", "x.arrow"] {
            let failure = detect(Path::new(name), b"FEA1\0\0\0\0", None, KEYS).unwrap_err();
            assert!(failure.message().unwrap().contains("Feather file of version 1, expected version 2"));
        }
        assert_eq!(detect(Path::new("x"), b"FEA1\0\0\0\0", None, KEYS).unwrap(), Format::Raw);
    }
}
