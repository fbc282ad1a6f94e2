//! The top of an experiment file.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::claim::{ClaimFile, SourceFile};
use super::design::DesignFile;
use super::environment::ServerFile;
use super::needs::NeedsFile;
use super::scalar::{OneOrMany, Single};
use super::step::StepFile;
use super::table::TableFile;

/// A loadlab experiment: a question, what is varied, and what one trial does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "loadlab experiment")]
pub struct ExperimentFile {
    /// Name of the experiment: letters, digits, `-` and `_`. Results go to `results/<name>/`.
    #[schemars(required, with = "String")]
    pub experiment: Option<String>,
    /// What is asked, in one sentence.
    #[schemars(required, with = "String")]
    pub question: Option<String>,
    /// What is expected, written down before the run.
    pub expectation: Option<String>,
    /// Published sources that claims refer to.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, SourceFile>")]
    pub sources: IndexMap<String, SourceFile>,
    /// The server: name of a file in `environments/`. A list makes it a factor called `environment`.
    #[schemars(with = "Option<OneOrMany>")]
    pub environment: Option<IgnoredAny>,
    /// What is varied, how often, in which order.
    #[serde(default)]
    pub design: DesignFile,
    /// Named sets of changes to this file, by dotted path: `quick: {design.blocks: 2}`; used with `--profile`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>")]
    pub profiles: IndexMap<String, IndexMap<String, IgnoredAny>>,
    /// What the machine must have. Like `server` it may use factors, and holds for each treatment by itself.
    #[schemars(with = "Option<NeedsFile>")]
    pub needs: Option<IgnoredAny>,
    /// Changes to the environment, for this experiment.
    #[schemars(with = "Option<ServerFile>")]
    pub server: Option<IgnoredAny>,
    /// The tables, by name.
    #[schemars(required, with = "BTreeMap<String, TableFile>")]
    pub tables: Option<IgnoredAny>,
    /// What one trial does, in order; each step is measured.
    #[schemars(required, with = "Vec<StepFile>")]
    pub steps: Option<IgnoredAny>,
    /// Published statements that this experiment re-tests.
    #[serde(default)]
    pub claims: Vec<ClaimFile>,
}

/// The parts of an experiment file that are bound once for every treatment, after rendering.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialFile {
    /// What the machine must have.
    #[serde(default)]
    pub needs: NeedsFile,
    /// Changes to the environment.
    #[serde(default)]
    pub server: ServerFile,
    /// The tables.
    #[serde(default)]
    pub tables: IndexMap<String, TableFile>,
    /// The steps.
    #[serde(default)]
    pub steps: Vec<StepFile>,
}

/// Settings by name, in the order of the file.
pub type Settings = IndexMap<String, Single>;
