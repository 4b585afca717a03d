//! Writing keys, values or records: to a temporary file that replaces its target when it is complete, or straight to a
//! device or a pipe. Keys are decoded as they are written.

use super::identity::Identity;
use super::in_place::InPlace;
use super::input::Input;
use super::region::{self, Region};
use super::replace::replace_all;
use super::target::{Kind, Target};
use super::temporary::Temporary;
use crate::coding::{Coding, Word};
use crate::format::npy::Purpose;
use crate::format::{Container, arrow};
use crate::os::disk::{free_in, is_in_memory};
use crate::say::error::{Failure, Result, name, os_message};
use crate::say::{progress, report};
use merge_host::parallel;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

/// Bytes that a thread writes at once: few enough to stay in its cache while they are decoded.
const BLOCK: usize = 256 << 10;
/// Bytes that a thread writes at once where keys need no decoding.
const LARGE_BLOCK: usize = 4 << 20;
/// Bytes of memory that must stay free when a file in memory grows.
const SPARE: u64 = 2 << 20;
/// A file in memory may grow by 1 / `GRANTED` of the free memory before the free memory is queried again.
const GRANTED: u128 = 8;

/// The target and the form of output. Nothing has been changed yet.
#[derive(Debug)]
pub struct Output {
    target: Target,
    form: Form,
    /// The number of items, if known.
    count: Option<u64>,
}

/// How items are written.
#[derive(Clone, Debug)]
pub struct Form {
    pub container: Container,
    /// How keys are encoded before they are written.
    pub coding: Coding,
    /// Bytes of an item: a key, a value or a record.
    pub size: usize,
}

impl Form {
    /// Items of `size` bytes, unchanged.
    pub fn raw(size: usize) -> Self {
        Self { container: Container::Raw, coding: Coding::BYTES, size }
    }

    /// The bytes before `count` items.
    fn header(&self, count: u64) -> Vec<u8> {
        self.container.header(count, self.size)
    }
}

impl Output {
    /// An output of items in this form to `target`.
    pub fn new(target: Target, form: Form) -> Self {
        Self { target, form, count: None }
    }

    /// The same output, behind a header that was copied from the input, if there is one. An error if its format has a
    /// header.
    pub fn behind(self, header: Option<Vec<u8>>) -> Result<Self> {
        let Some(header) = header else { return Ok(self) };
        let found = match self.form.container {
            Container::Raw => {
                return Ok(Self { form: Form { container: Container::Copied(header), ..self.form }, ..self });
            }
            Container::Arrow(..) => "arrow",
            Container::Npy(_) | Container::Void | Container::Copied(_) => "npy",
        };
        let message = format!("is in the format {found}, expected a raw file with --skip, whose header is copied");
        Err(Failure::file(self.path(), message))
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Bytes of an item.
    pub fn size(&self) -> usize {
        self.form.size
    }

    /// Sets the number of bytes of an item, if unknown before.
    pub fn set_size(&mut self, size: usize) {
        self.form.size = size;
    }

    /// Sets the number of items, if known. A header may need it before the first item is written.
    pub fn expect(&mut self, count: impl Into<Option<u64>>) {
        self.count = count.into();
    }

    /// An error if `bytes` bytes of items can certainly not be written.
    pub fn check_space(&self, bytes: u128) -> Result<()> {
        let bytes = bytes + self.form.header(0).len() as u128;
        if bytes > i64::MAX as u128 {
            return Err(Failure::file(self.path(), format!("{bytes} bytes are more than a file can hold")));
        }
        progress::expect(Some(bytes as u64));
        self.folder().map_or(Ok(0), |folder| check_free(self.path(), folder, bytes)).map(|_| ())
    }

    /// Whether items may be written in any order: to a region of a regular file.
    pub fn takes_any_order(&self) -> bool {
        self.folder().is_some() && self.form.container.is_contiguous()
    }

    /// An error unless items can be read back before they replace an old file, for `--check`. `flag` names the output.
    pub fn check_can_be_read_back(&self, flag: &str) -> Result<()> {
        if self.takes_any_order() {
            return Ok(());
        }
        let expected = "expected a regular file, raw or .npy";
        Err(Failure::file(self.path(), format!("--check cannot read this {flag} back, {expected}")))
    }

    /// An error if an Arrow column cannot hold items of this size. It holds one number for each key.
    pub fn check_size(&self) -> Result<()> {
        let Container::Arrow(_, column) = &self.form.container else { return Ok(()) };
        let (size, number) = (self.form.size, column.key_type());
        if size == 0 || size == number.size() {
            return Ok(());
        }
        let found = size / number.size();
        Err(Failure::file(
            self.path(),
            format!("Arrow files hold one {number} for each key, found {found}: write .npy"),
        ))
    }

    /// Whether [`expect`](Self::expect) must be called with the number of items before the first item is written.
    pub fn needs_count(&self) -> bool {
        !self.target.can_be_rewritten() && self.form.container.has_count()
    }

    /// An error if [the number of items is needed](Self::needs_count), because with `flag` it is unknown until all
    /// items are written.
    pub fn check_needs_no_count(&self, flag: &str) -> Result<()> {
        if !self.needs_count() {
            return Ok(());
        }
        Err(count_is_open(self.path(), format_args!("{flag} leaves open until they are written")))
    }

    /// The folder of the new file. None if the target is written to directly.
    pub fn folder(&self) -> Option<&Path> {
        self.target.folder()
    }

    /// An error if the output is written directly to the file of `input`.
    pub fn check_is_no_input(&self, input: &Input) -> Result<()> {
        self.target.check_is_no_input(input.path(), input.identity())
    }

    /// Whether the output is the input, which is written over.
    pub fn is_in_place(&self) -> bool {
        matches!(self.target.kind, Kind::InPlace(_))
    }

    /// Whether both outputs are the same file, so that the second would overwrite the first.
    pub fn is_same(&self, other: &Self) -> bool {
        self.target.is_same(&other.target)
    }

    /// Creates a file for `count` items. Several programs write a range of items each. The programs may run on other
    /// machines unless `is_local`.
    pub fn create_shared(self, count: u64, is_local: bool) -> Result<SharedWriter> {
        let Self { target: Target { path, kind }, form, count: _ } = self;
        let Kind::Replace(replacement) = kind else { return Err(not_shared(&path)) };
        let temporary = if is_local { Temporary::create(replacement)? } else { Temporary::create_named(replacement)? };
        let (header, file) = (form.header(count), temporary.file());
        let bytes = header.len() as u64 + count * form.size as u64;
        // Programs on other machines need the length of the file. It may be set early, because such a file is synced
        // before it gets its name.
        let needs_length = !is_local || region::is_in_memory(file);
        let prepared = if needs_length { file.set_len(bytes) } else { Ok(()) };
        let prepared = prepared.and_then(|()| file.write_all_at(&header, 0));
        prepared.map_err(|error| Failure::io(&path, &error))?;
        let file = file.try_clone().map_err(|error| Failure::io(&path, &error))?;
        let header = header.len() as u64;
        Ok(SharedWriter { path, form, header, file, temporary: Some(temporary), is_local })
    }

    /// Opens the file for `count` items that another program has [created](Self::create_shared), at its
    /// [location](SharedWriter::location).
    pub fn open_shared(self, location: &Location, count: u64, is_local: bool) -> Result<SharedWriter> {
        let Self { target: Target { path, kind: _ }, form, count: _ } = self;
        let header = form.header(count).len() as u64;
        let file = location.open(is_local).map_err(|error| {
            let (location, error) = (name(&location.path), os_message(&error));
            Failure::file(&path, format!("cannot open its temporary file {location}: {error}"))
        })?;
        Ok(SharedWriter { path, form, header, file, temporary: None, is_local })
    }

    /// An error unless several programs can write the output.
    pub fn check_can_be_shared(&self) -> Result<()> {
        if self.takes_any_order() { Ok(()) } else { Err(not_shared(self.path())) }
    }

    /// Starts to write. If the number of items is unknown, a header can be written only to a regular file.
    pub fn begin(self) -> Result<Writer> {
        self.check_size()?;
        if self.count.is_none() && self.needs_count() {
            return Err(count_is_open(self.path(), format_args!("is not known before they are written")));
        }
        let Self { target, form, count } = self;
        let header = form.header(count.unwrap_or(0));
        let can_be_rewritten = target.can_be_rewritten();
        let Target { path, kind } = target;
        let sink = match kind {
            Kind::Through { mut file, truncate } => {
                report::verbose(format_args!("{}: written directly, as it is no regular file", name(&path)));
                if truncate {
                    file.set_len(0).map_err(|error| Failure::io(&path, &error))?;
                }
                let begin = if can_be_rewritten { file.stream_position().ok() } else { None };
                Sink::Through { file, begin }
            }
            Kind::Replace(replacement) => {
                report::verbose(format_args!("{}: written to a temporary file that then replaces it", name(&path)));
                Sink::Temporary { temporary: Temporary::create(replacement)?, position: 0 }
            }
            Kind::InPlace(place) => {
                report::verbose(format_args!("{}: written over by a second process", name(&path)));
                Sink::InPlace(place)
            }
        };
        let mut writer = Writer { path, sink, arrow: None, form, count, written: 0, granted: 0 };
        writer.write_items(&header, Coding::BYTES)?;
        if let Container::Arrow(format, column) = &writer.form.container {
            let file = writer.sink.file().try_clone();
            let begin = |file| arrow::Writer::begin(file, *format, column);
            writer.arrow = Some(file.and_then(begin).map_err(|error| writer.failure(&error))?);
        }
        Ok(writer)
    }
}

/// The free bytes in the folder of the output at `path`. An error if fewer than `bytes` are free.
fn check_free(path: &Path, folder: &Path, bytes: u128) -> Result<u128> {
    let free = free_in(folder).unwrap_or(u128::MAX);
    if bytes <= free {
        return Ok(free);
    }
    let folder = name(folder);
    Err(Failure::file(
        path,
        format!(
            "No space left on device: {bytes} bytes are needed, {free} are free in folder {folder}: free some or write \
             elsewhere"
        ),
    ))
}

fn not_shared(path: &Path) -> Failure {
    Failure::file(path, "cannot be written by several programs at once, expected a regular file, raw or .npy")
}

/// The location of a file that one program has created and others open.
#[derive(Clone, Debug)]
pub struct Location {
    /// The path of the file.
    pub path: PathBuf,
    /// The identity of the file. For another program, the same path may name another file.
    pub file: Identity,
}

impl Location {
    /// Opens the file and checks its identity. Device numbers are compared only if `is_local`, because each machine has
    /// its own.
    fn open(&self, is_local: bool) -> io::Result<File> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        let Identity { device, inode } = Identity::of(&file.metadata()?);
        if inode != self.file.inode || is_local && device != self.file.device {
            return Err(io::Error::other("this is another file than the one that was created"));
        }
        Ok(file)
    }
}

/// An output that several programs write at once. The program that has created the file replaces the old file by it.
#[derive(Debug)]
pub struct SharedWriter {
    path: PathBuf,
    form: Form,
    /// Bytes of the header.
    header: u64,
    file: File,
    /// The temporary file, in the program that has created it.
    temporary: Option<Temporary>,
    /// Whether all programs run on this machine.
    is_local: bool,
}

impl SharedWriter {
    /// The location at which other programs open the file, for the program that has created it. None elsewhere.
    pub fn location(&self) -> Result<Option<Location>> {
        let Some(temporary) = &self.temporary else { return Ok(None) };
        let metadata = self.file.metadata().map_err(|error| Failure::io(&self.path, &error))?;
        Ok(Some(Location { path: temporary.path(), file: Identity::of(&metadata) }))
    }

    /// The region of `count` items from index `begin` on. Only this program writes there.
    pub fn region(&self, begin: u64, count: u64) -> Result<KeyRegion<'_>> {
        let size = self.form.size as u64;
        let region = Region::within(&self.path, &self.file, self.header + begin * size, count * size);
        Ok(KeyRegion { region: region.map_err(|error| Failure::io(&self.path, &error))?, coding: self.form.coding })
    }

    /// Waits until all bytes that this program has written are on the medium. On one machine, the creator of the file
    /// does this for all programs.
    pub fn sync(&self) -> Result<()> {
        if self.is_local && self.temporary.is_none() {
            return Ok(());
        }
        self.file.sync_all().map_err(|error| Failure::io(&self.path, &error))
    }

    /// Replaces the old files by the files that this program has created: all or none. Before that, all programs have
    /// written and [synced](Self::sync) their ranges.
    pub fn commit(writers: impl IntoIterator<Item = Self>) -> Result<()> {
        replace_all(writers.into_iter().filter_map(|writer| writer.temporary).collect())
    }
}

/// An output that is being written.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    sink: Sink,
    /// The writer of the Arrow format, which writes to the sink.
    arrow: Option<arrow::Writer<File>>,
    form: Form,
    /// The number of items in the header, if a header with a number has been written.
    count: Option<u64>,
    /// Bytes of items that have been written.
    written: u64,
    /// Bytes that may be written before the free memory is queried again.
    granted: u64,
}

#[derive(Debug)]
enum Sink {
    /// Written to in order. `begin` is the offset of the output if it can be overwritten later.
    Through {
        file: File,
        begin: Option<u64>,
    },
    Temporary {
        temporary: Temporary,
        position: u64,
    },
    /// Written over, all items at once.
    InPlace(InPlace),
}

impl Sink {
    fn file(&self) -> &File {
        match self {
            Self::Through { file, .. } => file,
            Self::Temporary { temporary, .. } => temporary.file(),
            Self::InPlace(place) => &place.file,
        }
    }
}

impl Writer {
    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends encoded keys, or the bytes of values or records. All threads write if the target is a regular file.
    pub fn write<W: Word>(&mut self, items: &[W]) -> Result<()> {
        self.written += size_of_val(items) as u64;
        let coding = self.form.coding;
        if self.arrow.is_some() {
            self.grant(size_of_val(items) as u64)?;
        }
        let Some(arrow) = &mut self.arrow else { return self.write_items(items, coding) };
        let mut copy = Vec::new();
        let mut blocks = items.chunks(LARGE_BLOCK / W::SIZE);
        blocks
            .try_for_each(|block| arrow.write(decoded(coding, block, &mut copy)))
            .map_err(|error| self.failure(&error))
    }

    fn write_items<W: Word>(&mut self, items: &[W], coding: Coding) -> Result<()> {
        let block = if coding.is_identity() { LARGE_BLOCK } else { BLOCK };
        match &mut self.sink {
            Sink::Through { file, .. } => {
                let mut copy = Vec::new();
                let result = items.chunks(BLOCK / W::SIZE).try_for_each(|items| {
                    file.write_all(decoded(coding, items, &mut copy))?;
                    progress::add(size_of_val(items));
                    Ok(())
                });
                result.map_err(|error| self.failure(&error))
            }
            Sink::InPlace(place) => place.write(size_of_val(items) as u64, |begin, block| {
                let (begin, copy) = (begin as usize / W::SIZE, bytemuck::cast_slice_mut::<u8, W>(block));
                copy.copy_from_slice(&items[begin..][..copy.len()]);
                coding.decode(copy);
            }),
            Sink::Temporary { .. } => {
                let region = self.next_region(size_of_val(items) as u64)?;
                let blocks = items.chunks(block / W::SIZE).enumerate();
                parallel::try_for_each(blocks, |(i, items)| {
                    region.write((i * block) as u64, decoded(coding, items, &mut Vec::new()))
                })
            }
        }
    }

    /// The output as a region of `bytes` bytes, which all threads may fill at once. Nothing has been written yet, and
    /// the output [takes any order](Output::takes_any_order).
    pub fn region(&mut self, bytes: u64) -> Result<KeyRegion<'_>> {
        self.written = bytes;
        let coding = self.form.coding;
        Ok(KeyRegion { region: self.next_region(bytes)?, coding })
    }

    /// Withdraws the [region](Self::region) of the output. Nothing has been written to it.
    pub fn withdraw_region(&mut self) -> Result<()> {
        if let Sink::Temporary { temporary, position } = &mut self.sink {
            *position -= self.written;
            temporary.file().set_len(*position).map_err(|error| Failure::io(&self.path, &error))?;
        }
        self.written = 0;
        Ok(())
    }

    /// An error if a file in memory cannot grow by `bytes` bytes. Without this check, the system would kill this
    /// program or another one without a message.
    fn grant(&mut self, bytes: u64) -> Result<()> {
        let Sink::Temporary { temporary, .. } = &self.sink else { return Ok(()) };
        let folder = temporary.folder();
        if bytes > self.granted && is_in_memory(folder) {
            let needed = u128::from(bytes.saturating_add(SPARE));
            let more = (check_free(&self.path, folder, needed)? - needed) / GRANTED;
            self.granted = bytes.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        }
        self.granted = self.granted.saturating_sub(bytes);
        Ok(())
    }

    /// The next region of `bytes` bytes, behind all bytes written before, in a regular file.
    fn next_region(&mut self, bytes: u64) -> Result<Region<'_>> {
        self.grant(bytes)?;
        let Sink::Temporary { temporary, position } = &mut self.sink else {
            return Err(Failure::file(&self.path, "is no regular file, expected one to write to in any order"));
        };
        let begin = *position;
        *position += bytes;
        Region::new(&self.path, temporary.file(), begin, bytes).map_err(|error| Failure::io(&self.path, &error))
    }

    /// Adds bytes of items that have been written to the [stream](Self::stream).
    pub(super) fn count_bytes(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// The file of an output that is written to directly.
    pub(super) fn stream(&mut self) -> Option<&mut File> {
        match &mut self.sink {
            Sink::Through { file, .. } => Some(file),
            Sink::Temporary { .. } | Sink::InPlace(_) => None,
        }
    }

    /// The input that is written over.
    pub(super) fn in_place(&self) -> Option<&InPlace> {
        if let Sink::InPlace(place) = &self.sink { Some(place) } else { None }
    }

    /// An input that reads the output so far back from its medium. The output [can be read
    /// back](Output::check_can_be_read_back). An error if the header does not describe the output.
    pub fn read_back(&self) -> Result<Input> {
        self.write_header()?;
        self.sync()?;
        let file = self.sink.file();
        // If this fails, the bytes are read from the page cache and not from the medium.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
        let file = file.try_clone().map_err(|error| Failure::io(&self.path, &error))?;
        let mut input = Input::of_output(&self.path, file)?;
        match &self.form.container {
            Container::Npy(_) | Container::Void => input.read_npy(Purpose::Values)?,
            Container::Copied(header) => input.skip(header.len() as u64).map(drop)?,
            Container::Raw | Container::Arrow(..) => {}
        }
        input.set_coding(self.form.coding);
        Ok(input)
    }

    /// Writes the number of written items to the header or the footer.
    fn complete(&mut self) -> Result<()> {
        if let Some(arrow) = &mut self.arrow {
            let result = arrow.finish();
            return result.map_err(|error| self.failure(&error));
        }
        self.write_header()
    }

    /// Writes the number of written items to the header, if it has that number.
    fn write_header(&self) -> Result<()> {
        let count = self.written / self.form.size.max(1) as u64;
        if !self.form.container.has_count() || self.count == Some(count) {
            return Ok(());
        }
        let header = self.form.header(count);
        let begin = match self.sink {
            Sink::Temporary { .. } => Some(0),
            Sink::Through { begin, .. } => begin,
            Sink::InPlace(_) => None,
        };
        let result = match begin {
            Some(begin) => self.sink.file().write_all_at(&header, begin),
            None => {
                let expected = self.count.unwrap_or(0);
                let message = format!("{count} keys were written, expected the {expected} that the header tells");
                return Err(Failure::file(&self.path, message));
            }
        };
        result.map_err(|error| self.failure(&error))
    }

    /// Waits until all written bytes are on the medium, if the target has one.
    fn sync(&self) -> Result<()> {
        let file = self.sink.file();
        let has_medium = |file: &File| file.metadata().map(|m| m.is_file() || m.file_type().is_block_device());
        let result = has_medium(file).and_then(|has_medium| if has_medium { file.sync_all() } else { Ok(()) });
        result.map_err(|error| Failure::io(&self.path, &error))
    }

    pub(super) fn failure(&self, error: &io::Error) -> Failure {
        match (&self.sink, error.kind()) {
            (Sink::Through { .. }, ErrorKind::BrokenPipe) => Failure::closed_pipe(),
            _ => Failure::io(&self.path, error),
        }
    }
}

/// The bytes of keys as the file holds them. If keys have to be decoded, `copy` holds the decoded bytes.
fn decoded<'a, W: Word>(coding: Coding, keys: &'a [W], copy: &'a mut Vec<W>) -> &'a [u8] {
    if coding.is_identity() {
        return bytemuck::cast_slice(keys);
    }
    copy.clear();
    copy.extend_from_slice(keys);
    coding.decode(copy);
    bytemuck::cast_slice(copy)
}

/// A region of a file. Many threads write encoded keys to it, in any order.
#[derive(Debug)]
pub struct KeyRegion<'a> {
    region: Region<'a>,
    coding: Coding,
}

impl KeyRegion<'_> {
    /// Writes keys from index `begin` of the region on. No two threads write to the same index.
    pub fn write<W: Word>(&self, begin: u64, keys: &[W]) -> Result<()> {
        let begin = begin * W::SIZE as u64;
        if self.coding.is_identity() {
            return self.region.write(begin, bytemuck::cast_slice(keys));
        }
        let mut copy = Vec::with_capacity(keys.len().min(BLOCK / W::SIZE));
        let mut blocks = keys.chunks(BLOCK / W::SIZE).enumerate();
        blocks.try_for_each(|(i, keys)| {
            self.region.write(begin + (i * BLOCK) as u64, decoded(self.coding, keys, &mut copy))
        })
    }
}

/// The error for a header that needs the number of keys, which is unknown for the reason `why`.
fn count_is_open(path: &Path, why: Arguments<'_>) -> Failure {
    let message =
        format!("the header tells the number of keys, which {why}: write to a regular file, or with --format raw");
    Failure::file(path, message)
}

/// Makes outputs permanent. No target is replaced before all outputs are complete. Either all targets are replaced or
/// none.
pub fn commit(writers: impl IntoIterator<Item = Writer>) -> Result<()> {
    let mut writers: Vec<Writer> = writers.into_iter().collect();
    writers.iter_mut().try_for_each(Writer::complete)?;
    writers.iter().filter(|writer| matches!(writer.sink, Sink::Through { .. })).try_for_each(Writer::sync)?;
    let temporaries = writers.into_iter().filter_map(|writer| match writer.sink {
        Sink::Through { .. } | Sink::InPlace(_) => None,
        Sink::Temporary { temporary, .. } => Some(temporary),
    });
    replace_all(temporaries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::KeyOrder;
    use crate::format::npy::{Number, Rows};
    use crate::spec::{Endian, KeyType};
    use merge_host::SortOrder;

    fn npy(path: &Path, endian: Endian) -> Output {
        let coding = Coding::total(KeyType::U16, endian);
        let rows = Rows::of_numbers(&Number::plain(KeyType::U16).unwrap(), endian);
        Output::new(Target::find(path, false).unwrap(), Form { container: Container::Npy(rows), coding, size: 2 })
    }

    #[test]
    fn a_header_tells_what_was_written_and_not_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.npy");
        for expected in [None, Some(4), Some(3)] {
            for (endian, bytes) in [(Endian::Little, [1, 0, 2, 0, 3, 1]), (Endian::Big, [0, 1, 0, 2, 1, 3])] {
                let mut output = npy(&path, endian);
                let container = output.form.container.clone();
                output.expect(expected);
                let mut writer = output.begin().unwrap();
                writer.write(&[1u16, 2]).unwrap();
                writer.write(&[0x103u16]).unwrap();
                commit([writer]).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [&*container.header(3, 2), &bytes].concat());
            }
        }
    }

    #[test]
    fn a_header_that_does_not_describe_the_items_is_found_when_they_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = npy(&folder.path().join("keys.npy"), Endian::Little);
        output.form.container = Container::Npy(Rows { item: 2, ..Rows::of_bytes(4) });
        let mut writer = output.begin().unwrap();
        writer.write(&[1u16, 2]).unwrap();
        let failure = writer.read_back().unwrap_err();
        assert!(
            failure.message().unwrap().contains("length is 132 bytes, expected 136 by its .npy header"),
            "{failure:?}"
        );
    }

    #[test]
    fn a_region_that_is_withdrawn_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.npy");
        let mut output = npy(&path, Endian::Little);
        output.expect(2);
        let container = output.form.container.clone();
        let mut writer = output.begin().unwrap();
        drop(writer.region(4).unwrap());
        writer.withdraw_region().unwrap();
        writer.write(&[1u16, 2]).unwrap();
        commit([writer]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [&*container.header(2, 2), &[1, 0, 2, 0]].concat());
    }

    #[test]
    fn a_header_that_cannot_be_written_twice_needs_the_number_of_keys() {
        let failure = npy(Path::new("/dev/null"), Endian::Little).begin().unwrap_err();
        assert!(failure.message().unwrap().contains("/dev/null: the header tells the number of keys"));
        let mut output = npy(Path::new("/dev/null"), Endian::Little);
        output.expect(3);
        let mut writer = output.begin().unwrap();
        writer.write(&[1u16, 2]).unwrap();
        let failure = commit([writer]).unwrap_err();
        assert!(failure.message().unwrap().contains("2 keys were written, expected the 3 that the header tells"));
    }

    #[test]
    fn programs_fill_their_ranges_of_one_file() {
        for is_local in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("keys.npy");
            std::fs::write(&path, "old").unwrap();
            let names = || std::fs::read_dir(folder.path()).unwrap().count();
            let output = || npy(&path, Endian::Big);
            let first = output().create_shared(5, is_local).unwrap();
            assert_eq!(names() > 1, !is_local);
            let location = first.location().unwrap().unwrap();
            let second = output().open_shared(&location, 5, is_local).unwrap();
            assert!(second.location().unwrap().is_none());
            // For another program, the path may name another file.
            for file in [Identity { inode: 1, ..location.file }, Identity { device: 0, ..location.file }] {
                let other = Location { file, ..location.clone() };
                assert_eq!(output().open_shared(&other, 5, is_local).is_err(), is_local || file.inode == 1);
            }
            second.region(2, 3).unwrap().write(0, &[3u16, 4, 5]).unwrap();
            first.region(0, 2).unwrap().write(0, &[1u16, 2]).unwrap();
            second.sync().unwrap();
            first.sync().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            drop(second);
            SharedWriter::commit([first]).unwrap();
            let header = output().form.header(5);
            assert_eq!(std::fs::read(&path).unwrap(), [&*header, &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5]].concat());
            // Nothing remains of an abandoned file.
            let given_up = output().create_shared(5, is_local).unwrap();
            let location = given_up.location().unwrap().unwrap();
            drop(given_up);
            assert!(names() == 1 && output().open_shared(&location, 5, is_local).is_err());
        }
        assert!(npy(Path::new("/dev/null"), Endian::Little).create_shared(1, true).is_err());
    }

    #[test]
    fn a_shared_file_has_its_length_from_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        for count in [0, 1, 5] {
            let output = npy(&folder.path().join("keys.npy"), Endian::Big);
            let length = (output.form.header(count).len() + count as usize * size_of::<u16>()) as u64;
            let shared = output.create_shared(count, false).unwrap();
            let files = std::fs::read_dir(folder.path()).unwrap();
            let found: Vec<u64> = files.map(|file| file.unwrap().metadata().unwrap().len()).collect();
            assert_eq!(found, [length]);
            drop(shared);
        }
    }

    #[test]
    fn keys_are_decoded_wherever_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.i32be");
        let order = KeyOrder { direction: SortOrder::Descending, ..KeyOrder::TOTAL };
        let coding = Coding { order, ..Coding::total(KeyType::I32, Endian::Big) };
        let keys: Vec<i32> = (0..300_000).map(|i: i32| i.wrapping_mul(0x1357_9bdf)).collect();
        let mut words: Vec<u32> = keys.iter().map(|key| key.to_be() as u32).collect();
        let expected: Vec<u8> = keys.iter().flat_map(|key| key.to_be_bytes()).collect();
        coding.encode(&mut words);
        let output = || {
            Output::new(Target::find(&path, false).unwrap(), Form { container: Container::Raw, coding, size: 4 })
                .begin()
                .unwrap()
        };
        for in_regions in [false, true] {
            let mut writer = output();
            if in_regions {
                let region = writer.region(expected.len() as u64).unwrap();
                parallel::for_each(words.chunks(100_001).enumerate(), |(i, words)| {
                    region.write(100_001 * i as u64, words).unwrap();
                });
            } else {
                words.chunks(100_001).for_each(|words| writer.write(words).unwrap());
            }
            let back = writer.read_back().unwrap().read_all::<u32>().unwrap();
            assert!(back == words, "{in_regions}");
            commit([writer]).unwrap();
            assert!(std::fs::read(&path).unwrap() == expected, "{in_regions}");
        }
    }
}
