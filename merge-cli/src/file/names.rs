//! `--files0-from`: names of files, each ended by a zero byte.

use super::Identity;
use crate::os::standard;
use crate::say::error::{Failure, Result};
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The names in the file at `list`, or in standard input for `-`, and the identity of that file. The zero byte after
/// the last name may be missing.
pub fn read(list: &Path) -> Result<(Vec<PathBuf>, Identity)> {
    let mut text = Vec::new();
    let read = standard::open(list).and_then(|mut file| {
        file.read_to_end(&mut text)?;
        Ok(Identity::of(&file.metadata()?))
    });
    let identity = read.map_err(|error| Failure::io(list, &error))?;
    let names = names(&text, list == Path::new("-")).map_err(|message| Failure::file(list, message))?;
    Ok((names, identity))
}

fn names(text: &[u8], is_stdin: bool) -> std::result::Result<Vec<PathBuf>, String> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    if text.is_empty() {
        return Err("has no names, expected those of the inputs, each ended by a zero byte".to_owned());
    }
    let mut offset = 0;
    let names = text.split(|&byte| byte == 0).map(|name| {
        let begin = offset;
        offset += name.len() + 1;
        match name {
            b"" => Err(format!("the name at byte {begin} is empty, expected the name of a file")),
            b"-" if is_stdin => Err(format!("names itself at byte {begin}, expected other files: - is the list")),
            // This is probably a list with one name a line.
            _ if name.contains(&b'\n') && is_of_no_file(name) => Err(format!(
                "the name at byte {begin} has line breaks, and no file has that name: expected a zero byte after each \
                 name, as find -print0 writes it"
            )),
            _ => Ok(PathBuf::from(OsString::from_vec(name.to_vec()))),
        }
    });
    names.collect()
}

fn is_of_no_file(name: &[u8]) -> bool {
    let found = Path::new(OsStr::from_bytes(name)).symlink_metadata();
    found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_zero_bytes() {
        let paths = |names: &[&str]| Ok(names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(b"a\0b c\0", false), paths(&["a", "b c"]));
        assert_eq!(names(b"a\0-", false), paths(&["a", "-"]));
        assert!(names(b"", false).unwrap_err().contains("no names"));
        assert!(names(b"\0", false).unwrap_err().contains("no names"));
        assert!(names(b"ab\0\0c\0", false).unwrap_err().contains("byte 3 is empty"));
        assert!(names(b"ab\0-\0", true).unwrap_err().contains("byte 3"));
        assert!(names(b"ab\0c\nd\n", false).unwrap_err().contains("byte 3 has line breaks"));
    }
}
