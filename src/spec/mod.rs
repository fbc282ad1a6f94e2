//! The experiment file: parsing, templates, binding, diagnostics.

pub mod check;
pub mod ddl;
