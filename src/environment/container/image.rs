//! Which image an environment means, and whether it is there.

use bollard::models::ImageInspect;

use super::engine::ContainerEngine;
use crate::environment::EnvironmentError;
use crate::model::{EnvironmentSpec, ServerPin, VersionRange};

/// Repository of the images that `environments/images/build.sh` makes.
const OWN_REPOSITORY: &str = "loadlab/postgres";

/// An image that is present, pinned by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// Name under which it was found.
    pub name: String,
    /// `sha256:` and 64 digits: what is started, whatever becomes of the name.
    pub id: String,
    /// Major version the image declares (`PG_MAJOR`), if it does.
    pub major: Option<u32>,
    /// Version the image declares (`PG_VERSION`), if it does.
    pub version: Option<String>,
    /// Digest under which a registry gave it.
    pub repository_digest: Option<String>,
    /// Its entry point.
    pub entrypoint: Vec<String>,
}

impl ResolvedImage {
    /// Short id and name, as stored.
    pub fn identity(&self) -> String {
        format!("{} {}", self.id.get(..19).unwrap_or(&self.id), self.name)
    }

    /// The hexadecimal digits of the id.
    pub(super) fn digest(&self) -> &str {
        self.id.trim_start_matches("sha256:")
    }
}

/// Images to look for, best first: for every allowed major from the highest to the lowest the image that
/// was asked for, then our own of that major when the official one was asked for.
pub fn candidates(image: &str, versions: VersionRange) -> Vec<String> {
    let (repository, tag) = split(image);
    // `postgres:18` with versions 14 to 18 means any of them; `postgres:17.2` or `mine:latest` is pinned.
    let suffix = tag.strip_prefix(&versions.max.to_string()).filter(|rest| !continues_version(rest));
    let official = matches!(repository, "postgres" | "library/postgres" | "docker.io/library/postgres");
    let Some(suffix) = suffix else { return vec![image.to_owned()] };
    let mut names = Vec::new();
    for major in (versions.min..=versions.max).rev() {
        names.push(format!("{repository}:{major}{suffix}"));
        if official && suffix.is_empty() {
            names.push(format!("{OWN_REPOSITORY}:{major}"));
        }
    }
    names
}

fn continues_version(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Repository and tag; a colon before the last slash belongs to a registry's port.
fn split(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    }
}

/// The image of an earlier server, by its id, else by its name, if the environment allows it and it is present.
async fn earlier_image(
    engine: &ContainerEngine,
    spec: &EnvironmentSpec,
    earlier: Option<&ServerPin>,
) -> Result<Option<ResolvedImage>, EnvironmentError> {
    let Some((pin, name)) = earlier.and_then(|pin| Some((pin, pin.image.as_ref()?))) else { return Ok(None) };
    if !candidates(&spec.image, spec.versions).contains(name) {
        return Ok(None);
    }
    for by in pin.image_id.iter().chain([name]) {
        if let Some(found) = engine.image(by).await? {
            return pinned(name, &found, spec.versions).map(Some);
        }
    }
    Ok(None)
}

/// Finds the image of an `earlier` server, else the first candidate that is present, else pulls the best one unless
/// `offline`.
///
/// # Errors
/// [`EnvironmentError::Unavailable`] when there is none, with all that was tried.
pub async fn resolve_like(
    engine: &ContainerEngine,
    spec: &EnvironmentSpec,
    offline: bool,
    earlier: Option<&ServerPin>,
) -> Result<ResolvedImage, EnvironmentError> {
    if let Some(image) = earlier_image(engine, spec, earlier).await? {
        return Ok(image);
    }
    let names = candidates(&spec.image, spec.versions);
    for name in &names {
        if let Some(found) = engine.image(name).await? {
            return pinned(name, &found, spec.versions);
        }
    }
    let best = names.first().unwrap_or(&spec.image);
    let absent = |pull: &str| EnvironmentError::Unavailable {
        reason: format!(
            "no image of environment {:?} is present ({}) and {pull}",
            spec.name,
            names.join(", ")
        ),
        remedy: remedy(best, &names),
    };
    if offline {
        return Err(absent("--offline forbids pulling one"));
    }
    engine.pull(best).await.map_err(|error| absent(&format!("{best} cannot be pulled ({error})")))?;
    match engine.image(best).await? {
        Some(found) => pinned(best, &found, spec.versions),
        None => Err(absent("the engine does not know the one it pulled")),
    }
}

/// [`resolve_like`] without an earlier server.
///
/// # Errors
/// As there.
pub async fn resolve(
    engine: &ContainerEngine,
    spec: &EnvironmentSpec,
    offline: bool,
) -> Result<ResolvedImage, EnvironmentError> {
    resolve_like(engine, spec, offline, None).await
}

fn remedy(best: &str, names: &[String]) -> String {
    let own =
        names.iter().find(|name| matches!(name.as_str(), "loadlab/postgres:15" | "loadlab/postgres:17"));
    match own.and_then(|name| name.rsplit_once(':')) {
        Some((_, major)) => {
            format!(
                "docker pull {best}, or build one without a registry: just image {major}, or use --on local"
            )
        }
        None => format!("docker pull {best}, or use --on local"),
    }
}

fn pinned(
    name: &str,
    image: &ImageInspect,
    versions: VersionRange,
) -> Result<ResolvedImage, EnvironmentError> {
    let config = image.config.clone().unwrap_or_default();
    let environment = config.env.unwrap_or_default();
    let major = environment.iter().find_map(|entry| entry.strip_prefix("PG_MAJOR=")?.parse().ok());
    let unusable = |reason: String| EnvironmentError::Unavailable {
        reason: format!("image {name}: {reason}"),
        remedy: "name another image in the environment".to_owned(),
    };
    if let Some(major) = major.filter(|major| !versions.contains(*major)) {
        return Err(unusable(format!("is PostgreSQL {major}, the environment allows {versions}")));
    }
    let version = environment.iter().find_map(|entry| entry.strip_prefix("PG_VERSION="));
    // `17.2-1.pgdg120+1`: what follows is the package's.
    let version = version.and_then(|version| version.split('-').next()).map(str::to_owned);
    let repository_digest = image.repo_digests.as_ref().and_then(|digests| digests.first().cloned());
    let entrypoint = config.entrypoint.unwrap_or_default();
    if entrypoint.is_empty() {
        return Err(unusable("has no entry point that makes and runs a cluster".to_owned()));
    }
    let id = image.id.clone().ok_or_else(|| unusable("has no id".to_owned()))?;
    Ok(ResolvedImage { name: name.to_owned(), id, major, version, repository_digest, entrypoint })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: VersionRange = VersionRange { min: 16, max: 18 };

    #[test]
    fn a_range_tries_every_major_downwards() {
        assert_eq!(
            candidates("postgres:18", WIDE),
            [
                "postgres:18",
                "loadlab/postgres:18",
                "postgres:17",
                "loadlab/postgres:17",
                "postgres:16",
                "loadlab/postgres:16"
            ]
        );
    }

    #[test]
    fn suffixes_are_kept_and_have_no_image_of_ours() {
        let names = candidates("registry:5000/postgres:18-alpine", WIDE);
        assert_eq!(names[1], "registry:5000/postgres:17-alpine");
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn exact_versions_and_other_names_are_taken_as_they_are() {
        for image in ["postgres:17.2", "postgres:180", "mine", "registry:5000/mine", "mine@sha256:abc"] {
            assert_eq!(candidates(image, WIDE), [image]);
        }
        let pinned = VersionRange { min: 15, max: 15 };
        assert_eq!(candidates("postgres:15", pinned), ["postgres:15", "loadlab/postgres:15"]);
    }

    #[test]
    fn an_image_of_another_major_is_refused() {
        let image = ImageInspect {
            id: Some("sha256:00".to_owned()),
            config: Some(bollard::models::ImageConfig {
                env: Some(vec!["PG_MAJOR=13".to_owned()]),
                entrypoint: Some(vec!["docker-entrypoint.sh".to_owned()]),
                ..Default::default()
            }),
            ..Default::default()
        };
        let error = pinned("postgres:latest", &image, WIDE).expect_err("13 is too old");
        assert!(error.to_string().contains("is PostgreSQL 13, the environment allows 16 to 18"), "{error}");
    }
}
