//! Writing keys: to a temporary file that replaces its target when it is complete, or straight to a device or a pipe.

mod blocks;

pub use blocks::Blocks;

use crate::args::{CommonArgs, OutputArgs};
use crate::error::{Failure, Result, name};
use crate::format::{self, Encoding, arrow};
use crate::input::Input;
use crate::key_type::Element;
use crate::progress;
use crate::report;
use crate::room::Room;
use crate::signals;
use crate::space::free_in;
use rayon::prelude::*;
use rustix::fs::Access;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes that a thread writes at once.
const PIECE: usize = 4 << 20;
/// Bytes that a thread turns round before it writes them: few enough to stay in its cache.
const SWAPPED: usize = 256 << 10;
/// Bytes to write to a stream before they count as progress.
const STREAM_PIECE: usize = 256 << 10;
/// Symbolic links to follow before taking them for a circle, as the system does.
const LINKS: usize = 40;

/// Where output will go. Nothing is changed yet.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    target: Target,
    encoding: Encoding,
    /// How many keys there will be, if it is known.
    count: Option<u64>,
}

#[derive(Debug)]
enum Target {
    /// Not a regular file, or an open one: its bytes are written as they come, after emptying it if `truncate`.
    Through { file: File, truncate: bool },
    /// A regular file, or none yet.
    Replace {
        /// The file, with all links followed.
        file: PathBuf,
        /// The folder it is in.
        folder: PathBuf,
        /// What there is now.
        old: Option<Old>,
    },
}

/// What a new file takes over from the one that it replaces.
#[derive(Clone, Copy, Debug)]
struct Old {
    mode: u32,
    user: u32,
    group: u32,
}

impl From<&Metadata> for Old {
    fn from(metadata: &Metadata) -> Self {
        Self { mode: metadata.mode() & 0o7777, user: metadata.uid(), group: metadata.gid() }
    }
}

impl Output {
    /// Finds out whether `path` can be written to, before any work is done for it. `-` is standard output. Bytes will be
    /// written as they are.
    pub fn prepare(path: &Path) -> Result<Self> {
        let target = Target::find(path)?;
        Ok(Self { path: path.to_owned(), target, encoding: Encoding::RAW, count: None })
    }

    /// As [`prepare`](Self::prepare), for keys of type `K` in the format that is asked for. `inputs` is what they come
    /// from, if a header is to be like theirs.
    pub fn prepare_keys<K: Element>(output: &OutputArgs, common: &CommonArgs, inputs: &[Input]) -> Result<Self> {
        let encoding = Encoding::choose::<K>(output, common, inputs)?;
        Ok(Self { encoding, ..Self::prepare(&output.output)? })
    }

    /// Tells how many keys there will be, which a header may need before the first of them is written.
    pub fn expect(&mut self, count: u64) {
        self.count = Some(count);
    }

    /// An error if `bytes` bytes of keys can certainly not be written.
    pub fn check_space(&self, bytes: u128) -> Result<()> {
        let bytes = bytes + self.encoding.header(0).len() as u128;
        if bytes > i64::MAX as u128 {
            return Err(Failure::file(&self.path, format!("{bytes} bytes are more than a file can hold")));
        }
        progress::expect(Some(bytes as u64));
        if let Target::Replace { folder, .. } = &self.target
            && let Some(free) = free_in(folder)
            && bytes > free
        {
            let folder = name(folder);
            return Err(Failure::file(
                &self.path,
                format!(
                    "No space left on device: {bytes} bytes are needed, {free} are free in folder {folder}: \
                     make room or write elsewhere"
                ),
            ));
        }
        Ok(())
    }

    /// Whether keys may be written as they lie in memory, and in any order: to [`room`](Writer::room) in a regular file.
    pub fn takes_any_order(&self) -> bool {
        matches!(self.target, Target::Replace { .. })
            && self.encoding.swap_size() == 1
            && self.encoding.schema.is_none()
    }

    /// Whether the number of keys has to be [expected](Self::expect) before the first of them is written.
    pub fn needs_count(&self) -> bool {
        matches!(self.target, Target::Through { .. }) && !self.encoding.header(0).is_empty()
    }

    /// Whether what was written can be read back before it replaces what there is: from a file, as keys in a row.
    pub fn can_be_checked(&self) -> bool {
        matches!(self.target, Target::Replace { .. }) && self.encoding.schema.is_none()
    }

    /// The folder that a new file will be written to. None for what is written to directly.
    pub fn folder(&self) -> Option<&Path> {
        match &self.target {
            Target::Through { .. } => None,
            Target::Replace { folder, .. } => Some(folder),
        }
    }

    /// Whether the two are one file, of which the second writing would leave nothing of the first. A terminal or
    /// /dev/null may be written to twice.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Target::Through { file, .. }, Target::Through { file: other, .. }) => {
                let (Ok(here), Ok(there)) = (file.metadata(), other.metadata()) else { return false };
                (here.dev(), here.ino()) == (there.dev(), there.ino()) && !here.file_type().is_char_device()
            }
            (Target::Replace { file, folder, .. }, Target::Replace { file: other, folder: other_folder, .. }) => {
                // Names tell, and not what is there now: two names of one file become two files.
                let place =
                    |file: &Path, folder: &Path| (fs::canonicalize(folder).ok(), file.file_name().map(OsStr::to_owned));
                place(file, folder) == place(other, other_folder)
            }
            _ => false,
        }
    }

    /// Starts to write. Where the number of keys is not known, a header can be written only to a regular file.
    pub fn begin(self) -> Result<Writer> {
        let Self { path, target, encoding, count } = self;
        let header = encoding.header(count.unwrap_or(0));
        let sink = match target {
            Target::Through { .. } if count.is_none() && !header.is_empty() => {
                let what = "the header tells the number of keys, which is not known before they are written";
                return Err(Failure::file(&path, format!("{what}: write to a regular file, or with --format raw")));
            }
            Target::Through { file, truncate } => {
                report::verbose(format_args!("{}: written directly, as it is no regular file", name(&path)));
                if truncate {
                    file.set_len(0).map_err(|error| Failure::io(&path, &error))?;
                }
                Sink::Through(file)
            }
            Target::Replace { file, folder, old } => {
                report::verbose(format_args!("{}: written to a temporary file that then replaces it", name(&path)));
                let temporary = Temporary::create(&folder, old).map_err(|error| {
                    let message = format!("cannot create a temporary file in folder {}", name(&folder));
                    Failure::file(&path, format!("{message}: {}", crate::error::os_message(&error)))
                })?;
                Sink::Temporary { temporary, file, folder, position: 0 }
            }
        };
        let mut writer = Writer { path, sink, arrow: None, encoding, count, written: 0 };
        writer.write_as_is(&header)?;
        if let Some(schema) = &writer.encoding.schema {
            let file = match &writer.sink {
                Sink::Through(file) => file,
                Sink::Temporary { temporary, .. } => temporary.file(),
            };
            let begin = |file| arrow::Writer::begin(file, schema.clone(), writer.encoding.key_type);
            writer.arrow = Some(file.try_clone().and_then(begin).map_err(|error| writer.failure(&error))?);
        }
        Ok(writer)
    }

    /// Starts to write, with all of the output.
    pub fn write(mut self, bytes: &[u8]) -> Result<Writer> {
        self.expect((bytes.len() / self.encoding.key_type.size()) as u64);
        let mut writer = self.begin()?;
        writer.write(bytes)?;
        Ok(writer)
    }
}

impl Target {
    fn find(path: &Path) -> Result<Self> {
        if ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|stdout| path == Path::new(stdout)) {
            if io::stdout().is_terminal() {
                return Err(Failure::file(
                    path,
                    "standard output is a terminal, expected a file or a pipe for binary keys: \
                     name a file, or pipe them to a program such as od",
                ));
            }
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let stdout = stdout.map_err(|e| Failure::io(path, &e))?;
            // Where it is a file, the shell has emptied it, or has not because it is to be appended to.
            return Ok(Self::Through { file: stdout.into(), truncate: false });
        }
        let failure = |error: &io::Error| Failure::io(path, error);
        let (file, old) = follow_links(path).map_err(|e| failure(&e))?;
        let Some(old) = old else {
            let folder = folder_of(&file);
            // "new/" and "new/." cannot become files.
            let folder_name = [&b"/"[..], b"/."].iter().any(|end| path.as_os_str().as_bytes().ends_with(end));
            if folder_name || file.file_name().is_none() {
                return Err(failure(&Errno::NOENT.into()));
            }
            check_folder(path, &folder)?;
            return Ok(Self::Replace { file, folder, old: None });
        };
        if old.is_dir() {
            return Err(Failure::file(path, "is a directory, expected a file to write to"));
        }
        // Writing to a file that may not be written to is an error even where its folder would let us replace it.
        let open = File::options().write(true).open(&file).map_err(|e| failure(&e))?;
        if !old.is_file() || is_open_file(&file) {
            return Ok(Self::Through { file: open, truncate: old.is_file() });
        }
        let folder = folder_of(&file);
        check_folder(path, &folder)?;
        Ok(Self::Replace { file, folder, old: Some((&old).into()) })
    }
}

/// The file that `path` stands for and what is known of it, if it exists. Its folder need not exist.
fn follow_links(path: &Path) -> io::Result<(PathBuf, Option<Metadata>)> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let folder = fs::canonicalize(folder_of(&path))?;
                if is_open_file(&folder.join("0")) {
                    // The links of /proc/*/fd stand for open files, which may have no name that leads to them.
                    let metadata = fs::metadata(&path)?;
                    return Ok((folder.join(path.file_name().unwrap_or_default()), Some(metadata)));
                }
                path = folder.join(fs::read_link(&path)?);
            }
            Ok(metadata) => return Ok((path, Some(metadata))),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((path, None)),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether a path without links in its folder is one of a process's open files.
fn is_open_file(path: &Path) -> bool {
    let folder = path.parent();
    folder.is_some_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd"))
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) => PathBuf::from("."),
        None => PathBuf::from("/"),
    }
}

/// An error about `path` if no file can be created in `folder`.
fn check_folder(path: &Path, folder: &Path) -> Result<()> {
    let result = fs::metadata(folder).and_then(|metadata| {
        if !metadata.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
    });
    result.map_err(|error| {
        let (folder, error) = (name(folder), crate::error::os_message(&error));
        Failure::file(path, format!("cannot write to folder {folder}: {error}"))
    })
}

/// Output on its way.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    sink: Sink,
    /// What writes to the sink, in Arrow's format.
    arrow: Option<arrow::Writer>,
    encoding: Encoding,
    /// The number of keys that the header tells, if there is one.
    count: Option<u64>,
    /// Bytes of keys so far.
    written: u64,
}

#[derive(Debug)]
enum Sink {
    Through(File),
    Temporary { temporary: Temporary, file: PathBuf, folder: PathBuf, position: u64 },
}

impl Writer {
    /// Writes `bytes`, whole keys in the machine's byte order, after those written before, with all threads where that is
    /// possible.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        if let Some(arrow) = &mut self.arrow {
            let result = arrow.write(bytes);
            return result.map_err(|error| self.failure(&error));
        }
        if self.encoding.swap_size() > 1 { self.write_swapped(bytes) } else { self.write_as_is(bytes) }
    }

    fn write_as_is(&mut self, bytes: &[u8]) -> Result<()> {
        let result = match &mut self.sink {
            Sink::Through(file) => bytes.chunks(STREAM_PIECE).try_for_each(|piece| {
                file.write_all(piece)?;
                progress::add(piece.len());
                Ok(())
            }),
            Sink::Temporary { .. } => {
                let room = self.next_room(bytes.len() as u64)?;
                let pieces = bytes.par_chunks(PIECE).enumerate();
                return pieces.try_for_each(|(i, piece)| room.write((i * PIECE) as u64, piece));
            }
        };
        result.map_err(|error| self.failure(&error))
    }

    /// The output as room for `bytes` bytes of keys, which all threads may fill at once. Nothing has been written yet, and the
    /// output [`takes_any_order`](Output::takes_any_order).
    pub fn room(&mut self, bytes: u64) -> Result<Room<'_>> {
        self.written = bytes;
        self.next_room(bytes)
    }

    /// Room for `bytes` bytes after what was written before, in a regular file.
    fn next_room(&mut self, bytes: u64) -> Result<Room<'_>> {
        let Sink::Temporary { temporary, position, .. } = &mut self.sink else {
            return Err(Failure::file(&self.path, "is no regular file, expected one to write to in any order"));
        };
        let begin = *position;
        *position += bytes;
        Room::new(&self.path, temporary.file(), begin, bytes).map_err(|error| Failure::io(&self.path, &error))
    }

    /// Writes numbers turned round. Each thread has a small copy of some of them, and the caller's stay as they are.
    fn write_swapped(&mut self, bytes: &[u8]) -> Result<()> {
        let size = self.encoding.swap_size();
        let swapped = |copy: &mut Vec<u8>, bytes: &[u8]| {
            copy.clear();
            copy.extend_from_slice(bytes);
            format::swap(copy, size);
        };
        let result = match &mut self.sink {
            Sink::Through(file) => {
                let mut copy = Vec::new();
                bytes.chunks(SWAPPED).try_for_each(|piece| {
                    swapped(&mut copy, piece);
                    file.write_all(&copy)
                })
            }
            Sink::Temporary { .. } => {
                let room = self.next_room(bytes.len() as u64)?;
                let pieces = bytes.par_chunks(SWAPPED).enumerate();
                return pieces.try_for_each_init(Vec::new, |copy, (i, piece)| {
                    swapped(copy, piece);
                    room.write((i * SWAPPED) as u64, copy)
                });
            }
        };
        result.map_err(|error| self.failure(&error))
    }

    /// Has the header, or the footer, tell how many keys were written.
    fn complete(&mut self) -> Result<()> {
        if let Some(arrow) = &mut self.arrow {
            let result = arrow.finish();
            return result.map_err(|error| self.failure(&error));
        }
        let count = self.written / self.encoding.key_type.size() as u64;
        let header = self.encoding.header(count);
        if header.is_empty() || self.count == Some(count) {
            return Ok(());
        }
        let result = match &self.sink {
            Sink::Temporary { temporary, .. } => temporary.file().write_all_at(&header, 0),
            Sink::Through(_) => {
                let expected = self.count.unwrap_or(0);
                let message = format!("{count} keys were written, expected the {expected} that the header tells");
                return Err(Failure::file(&self.path, message));
            }
        };
        result.map_err(|error| self.failure(&error))
    }

    /// Calls `check` with the path that the output will have, the file that it is in until it is complete, where the first
    /// key is there, and the bytes of a number that are to be turned round, or 1; after all that was written is on its
    /// medium. It is not called for what is written to directly.
    pub fn check(&self, check: impl FnOnce(&Path, &File, u64, usize) -> Result<()>) -> Result<()> {
        let Sink::Temporary { temporary, .. } = &self.sink else { return Ok(()) };
        self.sync()?;
        // Of no use if it fails: then what is read is what the system remembers.
        let _ = rustix::fs::fadvise(temporary.file(), 0, None, rustix::fs::Advice::DontNeed);
        check(&self.path, temporary.file(), self.encoding.header(0).len() as u64, self.encoding.swap_size())
    }

    /// Waits until what was written is on its medium.
    fn sync(&self) -> Result<()> {
        let result = match &self.sink {
            Sink::Through(file) => sync_through(file),
            Sink::Temporary { temporary, .. } => temporary.file().sync_all(),
        };
        result.map_err(|error| Failure::io(&self.path, &error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match (&self.sink, error.kind()) {
            (Sink::Through(_), ErrorKind::BrokenPipe) => Failure::closed_pipe(),
            _ => Failure::io(&self.path, error),
        }
    }
}

/// Makes outputs permanent, and the targets'. No target is replaced before all outputs are complete, and no signal ends
/// the program when only some of them are.
pub fn finish(writers: impl Into<Vec<Writer>>) -> Result<()> {
    let mut writers = writers.into();
    writers.iter_mut().try_for_each(Writer::complete)?;
    writers.iter().try_for_each(Writer::sync)?;
    let mut result = Ok(());
    let mut folders = Vec::new();
    {
        let mut registered = signals::temporaries();
        for Writer { path, sink, .. } in writers {
            if let Sink::Temporary { mut temporary, file, folder, .. } = sink {
                // After one that failed, the others' files stay as they are.
                let target = result.is_ok().then_some(&*file);
                if let Err(error) = temporary.end(target, &mut registered) {
                    result = Err(Failure::io(&path, &error));
                }
                folders.push((path, folder));
            }
        }
    }
    result?;
    folders.iter().try_for_each(|(path, folder)| sync_folder(folder).map_err(|error| Failure::io(path, &error)))
}

/// Waits until the new names of files in a folder are permanent. A folder that may not be read cannot be synced, and
/// some file systems do not know how.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).map(|folder| folder.sync_all()) {
        Ok(Err(error)) if error.kind() != ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

/// Waits until what was written is on its medium, where there is one.
fn sync_through(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() { file.sync_all() } else { Ok(()) }
}

/// A temporary file, removed when dropped and when a signal ends the program.
#[derive(Debug)]
struct Temporary(Option<NamedTempFile>);

impl Temporary {
    fn create(folder: &Path, old: Option<Old>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".gmerge-").suffix(".tmp");
        // A new file has the mode that any new file has. One that replaces another must at no time be open to more
        // people than that one.
        builder.permissions(Permissions::from_mode(if old.is_some() { 0o600 } else { 0o666 }));
        let temporary = {
            let mut registered = signals::temporaries();
            let temporary = builder.tempfile_in(folder)?;
            registered.push(temporary.path().to_owned());
            Self(Some(temporary))
        };
        if let Some(old) = old {
            let file = temporary.file();
            let mine = Old::from(&file.metadata()?);
            let mut mode = old.mode;
            if (mine.user, mine.group) != (old.user, old.group)
                && std::os::unix::fs::fchown(file, Some(old.user), Some(old.group)).is_err()
            {
                // Only the superuser can give files away. Whoever runs the new file must not become us by that.
                mode &= 0o1777;
            }
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(temporary)
    }

    fn file(&self) -> &File {
        self.0.as_ref().expect("only `end` takes the file").as_file()
    }

    /// Makes this the file at `target` or, without one, removes it. `registered` are the names of all temporary files.
    fn end(&mut self, target: Option<&Path>, registered: &mut Vec<PathBuf>) -> io::Result<()> {
        let Some(temporary) = self.0.take() else { return Ok(()) };
        let name = temporary.path().to_owned();
        let result = match target {
            // The error holds the file, and dropping it removes that.
            Some(target) => temporary.persist(target).map(drop).map_err(|error| error.error),
            None => temporary.close(),
        };
        registered.retain(|other| *other != name);
        result
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Whoever has ended it may hold the lock.
        if self.0.is_some() {
            let _ = self.end(None, &mut signals::temporaries());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Endian, Format};
    use crate::key_type::KeyType;

    fn npy(path: &Path, endian: Endian) -> Output {
        let encoding = Encoding { format: Format::Npy, key_type: KeyType::U16, endian, schema: None };
        Output { encoding, ..Output::prepare(path).unwrap() }
    }

    #[test]
    fn a_header_tells_what_was_written_and_not_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.npy");
        for expected in [None, Some(4), Some(3)] {
            for (endian, bytes) in [(Endian::Little, [1, 0, 2, 0, 3, 1]), (Endian::Big, [0, 1, 0, 2, 1, 3])] {
                let mut output = npy(&path, endian);
                expected.into_iter().for_each(|count| output.expect(count));
                let mut writer = output.begin().unwrap();
                writer.write(bytemuck::cast_slice(&[1u16, 2])).unwrap();
                writer.write(bytemuck::cast_slice(&[0x103u16])).unwrap();
                finish([writer]).unwrap();
                let header = Encoding { format: Format::Npy, key_type: KeyType::U16, endian, schema: None }.header(3);
                assert_eq!(fs::read(&path).unwrap(), [&*header, &bytes].concat());
            }
        }
    }

    #[test]
    fn what_cannot_be_written_twice_needs_the_number_of_keys() {
        let failure = npy(Path::new("/dev/null"), Endian::Little).begin().unwrap_err();
        assert!(failure.message().unwrap().contains("/dev/null: the header tells the number of keys"));
        let mut output = npy(Path::new("/dev/null"), Endian::Little);
        output.expect(3);
        let mut writer = output.begin().unwrap();
        writer.write(&[1, 0, 2, 0]).unwrap();
        let failure = finish([writer]).unwrap_err();
        assert!(failure.message().unwrap().contains("2 keys were written, expected the 3 that the header tells"));
    }
}
