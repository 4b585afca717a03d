//! The names of the inputs, and of the files of their values.

use super::refuse;
use crate::args::{ListArgs, ValuesArgs};
use crate::file::{Identity, Targets, names};
use crate::say::error::Result;
use std::path::PathBuf;

/// The names of the files to read.
pub struct Names {
    /// Files of keys or records.
    pub inputs: Vec<PathBuf>,
    /// Files of values.
    pub values: Vec<PathBuf>,
    pub list: List,
}

/// The file of names, if there is one.
pub struct List(Option<(PathBuf, Identity)>);

impl Names {
    /// The names in `inputs`, which the command calls `operand`, or in the file that `--files0-from` names. If
    /// `one_for_all`, one file may hold the values of all inputs.
    pub fn of(
        operand: &'static str,
        inputs: Vec<PathBuf>,
        list: ListArgs,
        values: ValuesArgs,
        one_for_all: bool,
    ) -> Result<Self> {
        let Some(path) = list.files0_from else {
            let (inputs, values) = values.split(inputs, one_for_all)?;
            return Ok(Self { inputs, values, list: List(None) });
        };
        refuse::beside(("--files0-from", true), &[(operand, !inputs.is_empty())], "--files0-from names all inputs")?;
        let (inputs, file) = names::read(&path)?;
        Ok(Self { inputs, values: values.paths().cloned().collect(), list: List(Some((path, file))) })
    }
}

impl List {
    /// An error if an output is written directly to the file of names.
    pub fn check_targets(&self, targets: &Targets) -> Result<()> {
        let Some((path, file)) = &self.0 else { return Ok(()) };
        targets.iter().try_for_each(|target| target.check_is_no_input(path, *file))
    }
}
