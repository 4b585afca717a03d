//! Sorts a file of u64 keys, least significant byte first, that may be larger than memory.
//!
//! ```sh
//! cargo run --release --example sort_file -- INPUT OUTPUT MEBIBYTES
//! ```

use merge_host::Engine;
use merge_host::external::{self, Options, Source, Summary, Target};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

struct Input {
    file: File,
    keys: u64,
}

impl Source<u64> for Input {
    type Error = io::Error;

    fn len(&self) -> Option<u64> {
        Some(self.keys)
    }

    fn read(&mut self, keys: &mut [u64], _payload: &mut [u8]) -> io::Result<usize> {
        self.file.read_exact(bytemuck::cast_slice_mut(keys))?;
        keys.iter_mut().for_each(|key| *key = u64::from_le(*key));
        Ok(keys.len())
    }
}

struct Output(File);

impl Target<u64> for Output {
    type Error = io::Error;

    fn write(&mut self, keys: &mut [u64], _payload: &mut [u8]) -> io::Result<()> {
        keys.iter_mut().for_each(|key| *key = key.to_le());
        self.0.write_all(bytemuck::cast_slice(keys))
    }
}

/// Sorts the keys of `input` to `output` with `memory` bytes of memory.
pub fn sort_file(input: &Path, output: &Path, memory: u64) -> Result<Summary, Box<dyn Error>> {
    let file = File::open(input)?;
    let keys = file.metadata()?.len() / 8;
    // The runs need the space of the input, which temporary folders in memory do not have.
    let folder = Path::new(".").join(output).parent().map(Path::to_owned).unwrap_or_default();
    let options = Options { folders: vec![folder], ..Options::new(memory) };
    let begin = || Ok(Output(File::create(output)?));
    let (_, summary) = external::sort(&options, Input { file, keys }, begin, &mut &Engine::auto(), &mut ())?;
    Ok(summary)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, memory] = &arguments[..] else { return Err("expected INPUT OUTPUT MEBIBYTES".into()) };
    let summary = sort_file(input.as_ref(), output.as_ref(), memory.parse::<u64>()? << 20)?;
    println!("sorted {} keys by way of {} runs", summary.keys_written, summary.runs);
    Ok(())
}
