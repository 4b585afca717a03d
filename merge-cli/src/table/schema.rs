//! The schema that all inputs have in common.

use super::Reader;
use crate::say::error::{Failure, Result, name, shortened};
use crate::spec::quoted;
use arrow_schema::{Field, Schema, SchemaRef};
use std::sync::Arc;

/// The schema of all `readers`, at least one, with the metadata of the first. A column may have nulls if a column of
/// one table may.
///
/// # Errors
/// The first difference in the number, the names or the types of the columns.
pub fn common_schema(readers: &[Reader]) -> Result<SchemaRef> {
    let (first, others) = readers.split_first().ok_or_else(|| Failure::new("no input, expected a table"))?;
    let mut fields: Vec<Field> = first.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    for other in others {
        let found = other.schema().fields();
        let differs = |what: String| Err(Failure::file(other.path(), format!("{what} as in {}", name(first.path()))));
        if found.len() != fields.len() {
            return differs(format!("has {} columns, expected {}", found.len(), fields.len()));
        }
        for (i, (field, found)) in fields.iter_mut().zip(found).enumerate() {
            let (expected_name, found_name) = (shortened(field.name()), shortened(found.name()));
            if field.name() != found.name() {
                return differs(format!("has column {found_name:?} at {}, expected {expected_name:?}", i + 1));
            }
            if field.data_type() != found.data_type() {
                let (expected, found) = (field.data_type(), found.data_type());
                return differs(format!("has column {found_name:?} of type {found}, expected {expected}"));
            }
            field.set_nullable(field.is_nullable() || found.is_nullable());
        }
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, first.schema().metadata().clone())))
}

/// The columns of a table as arguments of `--key`, for messages.
pub fn list_of_columns(schema: &Schema) -> String {
    let names = schema.fields().iter().map(|field| quoted(field.name())).collect::<Vec<_>>();
    match &names[..] {
        [] => "of none".to_owned(),
        names => format!("of {}", shortened(&names.join(", "))),
    }
}
