//! Providers of a run: one per distinct environment, chosen and prepared before the first trial; and treatments
//! that are left out because this machine lacks what they need.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::environment::choose::{Choice, Chosen, On, choose, one_line};
use crate::environment::ledger::Ledger;
use crate::environment::needs::{Machine, wrong_server};
use crate::environment::{EnvironmentError, Provider};
use crate::model::{Backend, BoundTrial, EnvironmentSpec, Needs, PinnedServer, Step, StepKind};
use crate::store::EnvironmentChoice;

/// The providers of a run by what their environment asks for, settings aside.
pub(super) struct Servers {
    choice: Choice,
    settled: HashMap<String, On>,
    ledger: Arc<Ledger>,
    /// `Err`: why there is none.
    providers: HashMap<String, Result<Arc<dyn Provider>, String>>,
    /// Looked at when a need asks about the machine; without and with its servers.
    machine: Option<Machine>,
    machine_and_local: Option<Machine>,
    /// What was taken for which environment, and why; for the record.
    pub(super) chosen: Vec<EnvironmentChoice>,
    /// What each environment got; for `loadlab.lock`.
    pub(super) pinned: Vec<PinnedServer>,
    /// What an earlier run got, which is preferred where there is a choice.
    pub(super) earlier: Vec<PinnedServer>,
}

/// The provider of a treatment's server, or why the treatment is not run here.
pub(super) type Server = Result<Arc<dyn Provider>, String>;

impl Servers {
    /// `settled`: environments whose backend is no longer open, since an earlier start of the run took it.
    pub(super) fn new(choice: Choice, settled: HashMap<String, On>, ledger: Arc<Ledger>) -> Self {
        Self {
            choice,
            settled,
            ledger,
            providers: HashMap::new(),
            machine: None,
            machine_and_local: None,
            chosen: Vec::new(),
            pinned: Vec::new(),
            earlier: Vec::new(),
        }
    }

    /// Cache folder.
    pub(super) fn cache(&self) -> &Path {
        &self.choice.cache
    }

    /// The provider for a treatment; chosen and prepared at the first call for its environment.
    ///
    /// # Errors
    /// When nothing on this machine can run it, unless the experiment's needs say that this may be so.
    pub(super) async fn of(&mut self, bound: &BoundTrial) -> Result<Server, EnvironmentError> {
        self.find(bound, true).await
    }

    /// The same before the first trial: the programs that its steps need are looked for as well.
    ///
    /// # Errors
    /// As [`Servers::of`], and when a program is missing.
    pub(super) async fn ready_for(&mut self, bound: &BoundTrial) -> Result<Server, EnvironmentError> {
        let server = self.of(bound).await?;
        let programs = |step: &Step| matches!(step.kind, StepKind::Dump(_) | StepKind::Restore(_));
        if let (Ok(provider), true) = (&server, bound.steps.iter().any(programs)) {
            provider.find_programs().await?;
        }
        Ok(server)
    }

    /// Why a treatment would not run here, without preparing anything.
    ///
    /// # Errors
    /// As [`Servers::of`].
    pub(super) async fn preview(&mut self, bound: &BoundTrial) -> Result<Option<String>, EnvironmentError> {
        if bound.needs == Needs::default() {
            return Ok(None);
        }
        Ok(self.find(bound, false).await?.err())
    }

    /// Why a treatment is not run here, by what can be told before any server is looked for.
    ///
    /// # Errors
    /// When the machine cannot be looked at.
    pub(super) async fn lacks(&mut self, needs: &Needs) -> Result<Option<String>, EnvironmentError> {
        if *needs == Needs::default() {
            return Ok(None);
        }
        let with_servers = !needs.tools.is_empty() || !needs.block_sizes.is_empty();
        let machine = if with_servers { &mut self.machine_and_local } else { &mut self.machine };
        let machine = match machine {
            Some(machine) => machine,
            none => none.insert(Machine::look(&self.choice.cache, with_servers).await?),
        };
        let mut lacks = machine.lacks(needs);
        let asked = backend(self.choice.on);
        if let Some((wanted, asked)) = needs.backend.zip(asked).filter(|(wanted, asked)| wanted != asked) {
            lacks.push(format!("it needs backend {}, and the run is on {}", wanted.word(), asked.word()));
        }
        Ok((!lacks.is_empty()).then(|| format!("not run here: {}", lacks.join("; "))))
    }

    async fn find(&mut self, bound: &BoundTrial, prepare: bool) -> Result<Server, EnvironmentError> {
        let needs = &bound.needs;
        if let Some(why) = self.lacks(needs).await? {
            return Ok(Err(why));
        }
        if let Some(version) = needs.version.as_ref().filter(|_| !needs.allow(bound.environment.versions)) {
            let (name, versions) = (&bound.environment.name, bound.environment.versions);
            return Ok(Err(format!(
                "not run here: it needs PostgreSQL {}, and environment {name} is of {versions}",
                version.text
            )));
        }
        let provider = match self.provider(&bound.environment, needs, prepare).await? {
            Ok(provider) => provider,
            Err(why) => return Ok(Err(why)),
        };
        let wrong = wrong_server(needs, provider.backend(), provider.major());
        Ok(wrong.map_or(Ok(provider), |why| Err(format!("not run here: {why}"))))
    }

    async fn provider(
        &mut self,
        spec: &EnvironmentSpec,
        needs: &Needs,
        prepare: bool,
    ) -> Result<Server, EnvironmentError> {
        let on = self.on(&spec.name, needs.backend);
        // Settings go to each launch; everything else decides which template or image is needed.
        let key =
            format!("{on} {:?}", EnvironmentSpec { settings: indexmap::IndexMap::new(), ..spec.clone() });
        match self.providers.get(&key) {
            // Whether its absence is forgiven is for each treatment to say.
            Some(Err(_)) if !needs.names_a_server() => {}
            Some(known) => return Ok(known.clone()),
            None => {}
        }
        let server = match self.choose(spec, on, prepare).await {
            Err(error @ EnvironmentError::Unavailable { .. }) if needs.names_a_server() => {
                Err(format!("not run here: {}", reason(&error)))
            }
            other => Ok(other?),
        };
        self.providers.insert(key, server.clone());
        Ok(server)
    }

    async fn choose(
        &mut self,
        spec: &EnvironmentSpec,
        on: On,
        prepare: bool,
    ) -> Result<Arc<dyn Provider>, EnvironmentError> {
        let offline = self.choice.offline || !prepare;
        let choice = Choice { on, offline, ..self.choice.clone() };
        let chosen = self.choose_like_earlier(spec, choice).await?;
        let provider: Arc<dyn Provider> = Arc::from(chosen.provider);
        if prepare {
            provider.prepare().await?;
            let pin =
                PinnedServer { environment: spec.name.clone(), asks: spec.asks(), is: provider.pin().await? };
            if !self.pinned.contains(&pin) {
                self.pinned.push(pin);
            }
        }
        let choice = EnvironmentChoice {
            environment: spec.name.clone(),
            backend: provider.backend(),
            why: chosen.why,
        };
        if !self.chosen.contains(&choice) {
            self.chosen.push(choice);
        }
        Ok(provider)
    }

    /// As an earlier run had it, if that is known and still here; else whatever fits.
    async fn choose_like_earlier(
        &self,
        spec: &EnvironmentSpec,
        choice: Choice,
    ) -> Result<Chosen, EnvironmentError> {
        let asks = spec.asks();
        let same = |pin: &&PinnedServer| pin.environment == spec.name && pin.asks == asks;
        let fits = |pin: &&PinnedServer| match backend(choice.on) {
            Some(backend) => pin.is.backend == backend,
            // A server that already runs is never touched without being asked for.
            None => pin.is.backend != Backend::External,
        };
        let Some(pin) = self.earlier.iter().filter(same).find(fits) else {
            return choose(spec, &choice, &self.ledger).await;
        };
        let on = match pin.is.backend {
            Backend::Container => On::Container,
            Backend::Local => On::Local,
            Backend::External => On::External,
        };
        let like = Choice { on, earlier: Some(pin.is.clone()), ..choice.clone() };
        match choose(spec, &like, &self.ledger).await {
            Err(EnvironmentError::Unavailable { .. } | EnvironmentError::ContainerEngine { .. })
                if choice.on != on =>
            {
                choose(spec, &choice, &self.ledger).await
            }
            chosen => chosen,
        }
    }

    /// Where an environment's servers run: as the command line says, else where the treatment needs them, else where
    /// an earlier start of the run had them.
    fn on(&self, environment: &str, needed: Option<Backend>) -> On {
        match (self.choice.on, needed) {
            (On::Auto, Some(Backend::Local)) => On::Local,
            (On::Auto, Some(Backend::Container)) => On::Container,
            // A server that already runs is never touched without being asked for.
            (on, _) => self.settled.get(environment).copied().unwrap_or(on),
        }
    }
}

/// Why there is no server, without the folders that were looked into: the reason goes into results.
fn reason(error: &EnvironmentError) -> String {
    let line = one_line(error);
    let parts = line.split("; ").filter(|part| !part.starts_with("found ") && !part.starts_with("refused "));
    parts.collect::<Vec<_>>().join("; ")
}

fn backend(on: On) -> Option<Backend> {
    match on {
        On::Auto => None,
        On::Container => Some(Backend::Container),
        On::Local => Some(Backend::Local),
        On::External => Some(Backend::External),
    }
}
