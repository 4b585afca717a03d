//! Tests that need more than one crate of the workspace; they are in `tests/`. Those of the program are in `merge-cli`.
