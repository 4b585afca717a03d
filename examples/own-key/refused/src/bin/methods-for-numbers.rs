//! The methods for the library's own key types, called with another type.

use merge_host::{DeviceArray, Error, SortOrder, Stream};
use own_key_kernels::Person;

fn sort(stream: &Stream, persons: &mut DeviceArray<Person>, workspace: &mut DeviceArray<u8>) -> Result<(), Error> {
    stream.sort(SortOrder::Ascending, persons, workspace)
}

fn main() {
    let _ = sort;
}
