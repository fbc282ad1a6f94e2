//! Which backend runs an environment here, and why.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use super::container::{ContainerEngine, ContainerProvider, ResolvedImage, resolve_like};
use super::external::ExternalProvider;
use super::ledger::Ledger;
use super::local::LocalProvider;
use super::{EnvironmentError, Provider};
use crate::model::{ConnectionPath, DEFAULT_BLOCK_SIZE, EnvironmentSpec, ServerPin, block_size_words};

/// What the user asked for with `--on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum On {
    /// Container, else local, else a fetched local server.
    #[default]
    Auto,
    /// Containers only.
    Container,
    /// Local clusters only.
    Local,
    /// A server that already runs.
    External,
}

impl FromStr for On {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "container" => Ok(Self::Container),
            "local" => Ok(Self::Local),
            "external" => Ok(Self::External),
            other => Err(format!("{other:?} is none of auto, container, local, external")),
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Container => "container",
            Self::Local => "local",
            Self::External => "external",
        })
    }
}

/// What a run may use.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Backend asked for.
    pub on: On,
    /// Nothing may be fetched: no image, no binaries.
    pub offline: bool,
    /// Cache folder.
    pub cache: PathBuf,
    /// What an earlier run had, which is preferred where the environment leaves a choice.
    pub earlier: Option<ServerPin>,
}

/// A provider and why it was taken.
pub struct Chosen {
    /// The provider; not prepared yet.
    pub provider: Box<dyn Provider>,
    /// One sentence: what was taken, and what was refused for which reason. Stored with the run.
    pub why: String,
}

/// Chooses the backend of an environment. What is asked for explicitly is taken or is an error, never
/// replaced by something else.
///
/// # Errors
/// [`EnvironmentError::Unavailable`] with everything that was refused and what to do.
pub async fn choose(
    spec: &EnvironmentSpec,
    choice: &Choice,
    ledger: &Arc<Ledger>,
) -> Result<Chosen, EnvironmentError> {
    match choice.on {
        On::Container => container(spec, choice, ledger, "as asked for").await,
        On::Local => local(spec, choice, ledger, "as asked for").await,
        On::External => external(spec, choice, ledger).await,
        On::Auto => auto(spec, choice, ledger).await,
    }
}

async fn auto(
    spec: &EnvironmentSpec,
    choice: &Choice,
    ledger: &Arc<Ledger>,
) -> Result<Chosen, EnvironmentError> {
    if let Some(size) = unusual_block_size(spec) {
        let since = format!("since no image has blocks of {}", block_size_words(size));
        return local(spec, choice, ledger, &since).await;
    }
    if let Some(builder) = spec.builder {
        let since = format!("since the environment names builder `{}`", builder.word());
        return local(spec, choice, ledger, &since).await;
    }
    if spec.binaries.is_some() {
        // Binaries of one's own are the reason for such an environment; no image holds them.
        return local(spec, choice, ledger, "since the environment names a folder of binaries").await;
    }
    let refused =
        match container(spec, choice, ledger, "since an engine answers and the image is there").await {
            Ok(chosen) => return Ok(chosen),
            Err(error) => error,
        };
    let no_container = one_line(&refused);
    match local(spec, choice, ledger, &format!("since no container could be had ({no_container})")).await {
        Ok(chosen) => Ok(chosen),
        Err(error) => Err(neither(spec, &refused, &error)),
    }
}

async fn container(
    spec: &EnvironmentSpec,
    choice: &Choice,
    ledger: &Arc<Ledger>,
    since: &str,
) -> Result<Chosen, EnvironmentError> {
    if let Some(size) = unusual_block_size(spec) {
        let size = block_size_words(size);
        return Err(EnvironmentError::Unavailable {
            reason: format!(
                "environment {:?} asks for blocks of {size}; servers in images are built with 8kB",
                spec.name
            ),
            remedy: format!("`loadlab env build --block-size {size}` builds a server, `--on local` runs it"),
        });
    }
    if let Some(builder) = spec.builder {
        return Err(EnvironmentError::Unavailable {
            reason: format!(
                "environment {:?} asks for builder `{}`, which is about local servers",
                spec.name,
                builder.word()
            ),
            remedy: "use --on local, or name an image of that builder (`image`) instead of `builder`"
                .to_owned(),
        });
    }
    let engine = ContainerEngine::connect().await?;
    let image = resolve_like(&engine, spec, choice.offline, choice.earlier.as_ref()).await?;
    let why = container_sentence(&image, &engine.facts().version, since);
    let provider = ContainerProvider::new(engine, image, spec, choice.cache.clone(), ledger);
    Ok(Chosen { provider: Box::new(provider), why })
}

fn container_sentence(image: &ResolvedImage, engine: &str, since: &str) -> String {
    format!("container of image {} on engine {engine}, {since}", image.name)
}

async fn local(
    spec: &EnvironmentSpec,
    choice: &Choice,
    ledger: &Arc<Ledger>,
    since: &str,
) -> Result<Chosen, EnvironmentError> {
    let missing = only_in_containers(spec);
    if !missing.is_empty() {
        return Err(EnvironmentError::Unavailable {
            reason: format!(
                "environment {:?} asks for {}, which a local server does not have",
                spec.name,
                missing.join(" and ")
            ),
            remedy: "use --on container, or take it out of the environment".to_owned(),
        });
    }
    let earlier = choice.earlier.as_ref();
    let (provider, source) =
        LocalProvider::find_like(spec, &choice.cache, choice.offline, ledger, earlier).await?;
    Ok(Chosen { provider: Box::new(provider), why: format!("local server, {since}; {source}") })
}

async fn external(
    spec: &EnvironmentSpec,
    choice: &Choice,
    ledger: &Arc<Ledger>,
) -> Result<Chosen, EnvironmentError> {
    let provider = ExternalProvider::new(spec, &choice.cache, ledger).await?;
    let why = format!(
        "server that already runs, given by {}, as asked for; its settings, limits and initdb options are its \
         own, not the environment's",
        spec.url_variable
    );
    Ok(Chosen { provider: Box::new(provider), why })
}

/// A block size that is asked for and is not the one everybody builds.
fn unusual_block_size(spec: &EnvironmentSpec) -> Option<u32> {
    spec.block_size.filter(|size| *size != DEFAULT_BLOCK_SIZE)
}

/// What an environment asks for that would silently not be in force on a local server.
fn only_in_containers(spec: &EnvironmentSpec) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if spec.limits.cpus.is_some() {
        missing.push("a CPU quota (limits.cpus)");
    }
    if spec.limits.memory_bytes.is_some() {
        missing.push("a memory limit (limits.memory)");
    }
    if spec.connection == ConnectionPath::Published {
        missing.push("a published port (connection: published)");
    }
    missing
}

/// The reason without the remedy, on one line.
pub fn one_line(error: &EnvironmentError) -> String {
    let reason = match error {
        EnvironmentError::Unavailable { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    reason.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

fn neither(
    spec: &EnvironmentSpec,
    container: &EnvironmentError,
    local: &EnvironmentError,
) -> EnvironmentError {
    let remedy = |error: &EnvironmentError| match error {
        EnvironmentError::Unavailable { remedy, .. } => Some(remedy.clone()),
        _ => None,
    };
    let remedies: Vec<String> = [container, local].into_iter().filter_map(remedy).collect();
    EnvironmentError::Unavailable {
        reason: format!(
            "nothing here can run environment {:?}\n  container: {}\n  local: {}",
            spec.name,
            one_line(container),
            one_line(local)
        ),
        remedy: if remedies.is_empty() {
            "see `loadlab env doctor`".to_owned()
        } else {
            format!("{}; see `loadlab env doctor`", remedies.join("; or "))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_reads_what_it_writes() {
        for on in [On::Auto, On::Container, On::Local, On::External] {
            assert_eq!(on.to_string().parse(), Ok(on));
        }
        assert!("docker".parse::<On>().expect_err("unknown").contains("auto, container"));
    }

    #[test]
    fn reasons_fit_into_a_sentence() {
        let error = EnvironmentError::Unavailable {
            reason: "no PostgreSQL 18 on this machine\n  found 15".to_owned(),
            remedy: "install it".to_owned(),
        };
        assert_eq!(one_line(&error), "no PostgreSQL 18 on this machine; found 15");
    }
}
