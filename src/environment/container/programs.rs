//! Client programs inside a trial's container, by an exec whose output is attached: its end is known at once.

use std::collections::HashMap;
use std::sync::Arc;

use super::engine::ContainerEngine;
use super::image::ResolvedImage;
use super::reach::Reach;
use super::{labels, request};
use crate::environment::files::random_hex;
use crate::environment::ledger::{Ledger, Thing};
use crate::environment::program::{
    DUMP_PROGRAMS, Pipeline, PipelineEnd, connection_variables, ended, script,
};
use crate::environment::{EnvironmentError, Programs};
use crate::model::ConnectionPath;

/// How long the container that is asked for programs may take.
const LOOKING: std::time::Duration = std::time::Duration::from_secs(30);

/// How programs in the container reach the server beside them.
fn variables(reach: &Reach) -> Vec<(String, String)> {
    let host = if reach.connection == ConnectionPath::Socket { request::SOCKET } else { "127.0.0.1" };
    connection_variables(host, super::folders::PORT, Some(&reach.password))
}

/// An exec that is made and not started yet.
pub(super) async fn prepare<'a>(
    engine: &'a ContainerEngine,
    container: &str,
    reach: &Reach,
    pipeline: Pipeline,
) -> Result<Programs<'a>, EnvironmentError> {
    let command = vec!["sh".to_owned(), "-c".to_owned(), script(&pipeline, "")];
    let variables = variables(reach).iter().map(|(name, value)| format!("{name}={value}")).collect();
    let exec = engine.prepare_exec(container, command, variables).await?;
    Ok(Box::pin(async move {
        let (stdout, stderr) = engine.run_exec(&exec).await?;
        let end: PipelineEnd = ended(&pipeline, &stdout, &stderr, true)?;
        Ok(end)
    }))
}

/// Whether an image has the programs that dumps need.
pub(super) async fn look_for(
    engine: &ContainerEngine,
    image: &ResolvedImage,
    ledger: &Arc<Ledger>,
) -> Result<(), EnvironmentError> {
    let name = format!("loadlab-look-{}", random_hex(4)?);
    let thing = Thing::Container(name.clone());
    ledger.record(&thing)?;
    let wanted: Vec<String> = DUMP_PROGRAMS.iter().map(|program| format!("command -v {program}")).collect();
    let labels: HashMap<String, String> = labels::of_run(ledger);
    let request = request::looking(image.digest(), &name, &wanted.join(" && "), labels);
    let looked = async {
        request::start(request, &name).await?;
        engine.exit_code(&name, LOOKING).await
    };
    let looked = looked.await;
    engine.remove_container(&name).await?;
    ledger.forget(&thing)?;
    if looked? == 0 {
        return Ok(());
    }
    Err(EnvironmentError::Unavailable {
        reason: format!(
            "image {} lacks one of {}, which a dump or restore needs",
            image.name,
            DUMP_PROGRAMS.join(", ")
        ),
        remedy:
            "name an image with PostgreSQL's client programs, such as the official one, or use --on local"
                .to_owned(),
    })
}
