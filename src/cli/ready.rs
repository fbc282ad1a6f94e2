//! Everything that must be there before the first trial: room on the disk, and a server for every treatment that this
//! machine can run.

use super::failure::Failure;
use super::plan::{self, LeftOut, Totals};
use super::say;
use super::servers::Servers;
use super::space::room;
use crate::plan::Plan;
use crate::spec::Spec;

/// Every environment of the plan gets its server, template and image before the first trial. Says which treatments
/// this machine cannot run although everything else can go on.
pub(super) async fn prepare_all(spec: &Spec, plan: &Plan, servers: &mut Servers) -> Result<Totals, Failure> {
    let totals = plan::totals(spec, plan, Some(servers)).await?;
    room(servers.cache(), totals.disk)?;
    for line in find_servers(spec, plan, servers).await?.lines() {
        say(&format!("note: {line}"));
    }
    Ok(totals)
}

/// A server for every environment of the plan. Returns the treatments that this machine cannot run.
pub(super) async fn find_servers(
    spec: &Spec,
    plan: &Plan,
    servers: &mut Servers,
) -> Result<LeftOut, Failure> {
    let mut left_out = LeftOut::default();
    // Above this, treatments of one experiment do not bring further environments but by chance;
    // those are prepared when they come.
    for index in 0..plan.treatments().min(4_096) {
        let bound = spec.bind(&plan.treatment(index))?;
        if let Err(why) = servers.ready_for(&bound).await? {
            left_out.add(spec.design.label(&plan.treatment(index)), why);
        }
    }
    Ok(left_out)
}
