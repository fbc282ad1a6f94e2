//! `loadlab schema`: the JSON Schema of a file kind.

use clap::Args;

use super::failure::Exit;
use super::print;
use crate::spec::{environment_schema, experiment_schema};

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// `experiment` or `environment`
    #[arg(default_value = "experiment", value_parser = ["experiment", "environment"])]
    kind: String,
}

pub(super) fn schema(arguments: &SchemaArguments) -> Exit {
    let schema = if arguments.kind == "environment" { environment_schema() } else { experiment_schema() };
    print(&format!("{schema:#}\n"));
    Exit::Done
}
