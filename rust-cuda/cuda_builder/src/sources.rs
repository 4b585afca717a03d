//! A fingerprint of the sources that PTX was compiled from, to detect changes.

use crate::CudaBuilderError;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// SHA-256 over the paths and the tokens of a set of source files. Comments and white space of Rust code do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceHash(String);

impl SourceHash {
    /// Hashes the named files and, in named folders, all `.rs` and `.toml` files. Folders with a path in `skip` are
    /// left out. Paths are relative to `root` and enter the hash as written.
    ///
    /// # Errors
    /// If a file or folder cannot be read.
    pub fn of(root: &Path, paths: &[&str], skip: &[&str]) -> Result<Self, CudaBuilderError> {
        let mut files = Vec::new();
        for path in paths {
            collect(root, Path::new(path), skip, &mut files)?;
        }
        files.sort();
        let mut hash = Sha256::new();
        for file in &files {
            let full = root.join(file);
            let text =
                std::fs::read_to_string(&full).map_err(CudaBuilderError::io(format!("reading {}", full.display())))?;
            add(&mut hash, 'f', &file.to_string_lossy());
            // Text that is not Rust is hashed as it is. The compiler will report the error.
            match TokenStream::from_str(&text) {
                Ok(tokens) if file.extension().is_some_and(|extension| extension == "rs") => {
                    add_tokens(&mut hash, tokens)
                }
                _ => add(&mut hash, 't', &text),
            }
        }
        Ok(Self(hex(hash)))
    }

    /// The hash of the bytes of one text.
    pub(crate) fn of_text(text: &str) -> Self {
        Self(hex(Sha256::new_with_prefix(text)))
    }

    /// A hash written by `Display`.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for SourceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds a text of one kind. Its length delimits it.
fn add(hash: &mut Sha256, kind: char, text: &str) {
    hash.update([kind as u8]);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// Adds all tokens except documentation, which the parser turns into attributes.
fn add_tokens(hash: &mut Sha256, tokens: TokenStream) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = &tokens[..];
    while let [token, after @ ..] = rest {
        if let Some(after) = after_documentation(rest) {
            rest = after;
            continue;
        }
        rest = after;
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                add(hash, 'd', open);
                add_tokens(hash, group.stream());
                add(hash, 'd', close);
            }
            TokenTree::Ident(ident) => add(hash, 'i', &ident.to_string()),
            TokenTree::Punct(punct) => add(hash, 'p', &punct.as_char().to_string()),
            TokenTree::Literal(literal) => add(hash, 'l', &literal.to_string()),
        }
    }
}

/// The tokens after `#[doc = "…"]` or `#![doc = "…"]`, if `tokens` begins with it.
fn after_documentation(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let is = |token: &TokenTree, character| matches!(token, TokenTree::Punct(punct) if punct.as_char() == character);
    let after = tokens.split_first().filter(|(first, _)| is(first, '#'))?.1;
    let after = after.split_first().filter(|(first, _)| is(first, '!')).map_or(after, |(_, after)| after);
    match after {
        [TokenTree::Group(group), after @ ..] if is_doc(group) => Some(after),
        _ => None,
    }
}

/// Whether `group` is the brackets of `#[doc = "…"]`.
fn is_doc(group: &proc_macro2::Group) -> bool {
    let mut tokens = group.stream().into_iter();
    let is_named = matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc");
    group.delimiter() == Delimiter::Bracket
        && is_named
        && matches!(tokens.next(), Some(TokenTree::Punct(equals)) if equals.as_char() == '=')
}

fn collect(root: &Path, path: &Path, skip: &[&str], files: &mut Vec<PathBuf>) -> Result<(), CudaBuilderError> {
    let full = root.join(path);
    if !full.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let reading = || CudaBuilderError::io(format!("reading {}", full.display()));
    for entry in std::fs::read_dir(&full).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        let child = path.join(entry.file_name());
        if entry.path().is_dir() {
            if !skip.iter().any(|skipped| child == Path::new(skipped)) {
                collect(root, &child, skip, files)?;
            }
        } else if child.extension().is_some_and(|e| e == "rs" || e == "toml") {
            files.push(child);
        }
    }
    Ok(())
}
