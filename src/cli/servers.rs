//! Providers of a run: one per distinct environment, chosen and prepared before the first trial.

use std::collections::HashMap;
use std::sync::Arc;

use crate::environment::choose::{Choice, On, choose};
use crate::environment::ledger::Ledger;
use crate::environment::{EnvironmentError, Provider};
use crate::model::{BoundTrial, EnvironmentSpec, StepKind};
use crate::store::EnvironmentChoice;

/// The providers of a run by what their environment asks for, settings aside.
pub(super) struct Servers {
    choice: Choice,
    settled: HashMap<String, On>,
    ledger: Arc<Ledger>,
    providers: HashMap<String, Arc<dyn Provider>>,
    /// What was taken for which environment, and why; for the record.
    pub(super) chosen: Vec<EnvironmentChoice>,
}

impl Servers {
    /// `settled`: environments whose backend is no longer open, since an earlier start of the run took it.
    pub(super) fn new(choice: Choice, settled: HashMap<String, On>, ledger: Arc<Ledger>) -> Self {
        Self { choice, settled, ledger, providers: HashMap::new(), chosen: Vec::new() }
    }

    /// Chooses and prepares the provider of a trial, with the programs that its steps need.
    ///
    /// # Errors
    /// When nothing on this machine can run it, or a program is missing.
    pub(super) async fn ready_for(&mut self, trial: &BoundTrial) -> Result<(), EnvironmentError> {
        let provider = self.of(&trial.environment).await?;
        if trial.steps.iter().any(|step| matches!(step.kind, StepKind::Dump(_) | StepKind::Restore(_))) {
            provider.find_programs().await?;
        }
        Ok(())
    }

    /// The provider of an environment; chosen and prepared at the first call.
    ///
    /// # Errors
    /// When nothing on this machine can run it.
    pub(super) async fn of(&mut self, spec: &EnvironmentSpec) -> Result<Arc<dyn Provider>, EnvironmentError> {
        // Settings go to each launch; everything else decides which template or image is needed.
        let key = format!("{:?}", EnvironmentSpec { settings: indexmap::IndexMap::new(), ..spec.clone() });
        if let Some(provider) = self.providers.get(&key) {
            return Ok(Arc::clone(provider));
        }
        let on = self.settled.get(&spec.name).copied().unwrap_or(self.choice.on);
        let choice = Choice { on, ..self.choice.clone() };
        let chosen = choose(spec, &choice, &self.ledger).await?;
        let provider: Arc<dyn Provider> = Arc::from(chosen.provider);
        provider.prepare().await?;
        let choice = EnvironmentChoice {
            environment: spec.name.clone(),
            backend: provider.backend(),
            why: chosen.why,
        };
        if !self.chosen.contains(&choice) {
            self.chosen.push(choice);
        }
        self.providers.insert(key, Arc::clone(&provider));
        Ok(provider)
    }
}
