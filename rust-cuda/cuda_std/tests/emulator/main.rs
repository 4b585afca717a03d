//! Tests of the emulator. They are one program, so that what they share is compiled once.

mod common;

mod barriers;
mod blocks;
mod bounds;
mod copies;
mod launches;
mod moves;
mod profile;
mod races;
mod uninitialised;
mod updates;
mod warps;
