//! Everything that must be there before the first trial: room on the disk, and a server for every treatment that this
//! machine can run.

use super::failure::Failure;
use super::plan::{self, LeftOut, Totals};
use super::say;
use super::servers::Servers;
use super::space::room;
use crate::model::BoundTrial;
use crate::plan::Plan;
use crate::run::LoadSteps;
use crate::spec::Spec;

/// Treatments whose servers are made ready before the first trial.
pub(super) const LOOKED_AT: u64 = 4_096;

/// What is known when everything is there.
pub(super) struct Ready {
    /// What the trials will take.
    pub(super) totals: Totals,
    /// The first treatment that this machine can run.
    pub(super) first: Option<u64>,
    /// The load steps of all treatments that it can run.
    pub(super) loads: LoadSteps,
}

/// Every environment of the plan gets its server, template and image before the first trial. Says which treatments
/// this machine cannot run although everything else can go on.
pub(super) async fn prepare_all(spec: &Spec, plan: &Plan, servers: &mut Servers) -> Result<Ready, Failure> {
    let totals = plan::totals(spec, plan, Some(servers)).await?;
    room(servers.cache(), totals.disk)?;
    let (mut first, mut loads) = (None, LoadSteps::default());
    let left_out = find_servers(spec, plan, servers, |index, bound| {
        first.get_or_insert(index);
        loads.add(index, bound);
    });
    for line in left_out.await?.lines() {
        say(&format!("note: {line}"));
    }
    Ok(Ready { totals, first, loads })
}

/// A server for every environment of the plan; `each` is told of every treatment that has one. Returns those that this
/// machine cannot run.
pub(super) async fn find_servers(
    spec: &Spec,
    plan: &Plan,
    servers: &mut Servers,
    mut each: impl FnMut(u64, &BoundTrial),
) -> Result<LeftOut, Failure> {
    let mut left_out = LeftOut::default();
    // Above this, treatments of one experiment do not bring further environments but by chance;
    // those are prepared when they come.
    for index in 0..plan.treatments().min(LOOKED_AT) {
        let bound = spec.bind(&plan.treatment(index))?;
        if let Err(why) = servers.ready_for(&bound).await? {
            left_out.add(spec.design.label(&plan.treatment(index)), why);
            continue;
        }
        each(index, &bound);
    }
    Ok(left_out)
}
