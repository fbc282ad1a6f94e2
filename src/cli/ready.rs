//! Everything that must be there before the first trial: room on the disk, and a server for every treatment.

use super::failure::Failure;
use super::plan::{self, LeftOut, Totals};
use super::say;
use super::servers::Servers;
use crate::environment::doctor::free_space;
use crate::plan::Plan;
use crate::report;
use crate::spec::Spec;

/// Every environment of the plan gets its server, template and image before the first trial. Says which treatments
/// this machine cannot run although everything else can go on.
pub(super) async fn prepare_all(spec: &Spec, plan: &Plan, servers: &mut Servers) -> Result<Totals, Failure> {
    let totals = plan::totals(spec, plan, Some(servers)).await?;
    room(servers.cache(), totals.disk)?;
    let mut left_out = LeftOut::default();
    // Above this, treatments of one experiment do not bring further environments but by chance;
    // those are prepared when they come.
    for index in 0..plan.treatments().min(4_096) {
        let bound = spec.bind(&plan.treatment(index))?;
        if let Err(why) = servers.of(&bound).await? {
            left_out.add(spec.design.label(&plan.treatment(index)), why);
        }
    }
    for line in left_out.lines() {
        say(&format!("note: {line}"));
    }
    Ok(totals)
}

/// Refuses a run that would fill the disk: a full disk ends servers in ways that look like results.
fn room(cache: &std::path::Path, needed: u64) -> Result<(), Failure> {
    match free_space(cache) {
        Some(free) if free < needed => Err(Failure::environment(format!(
            "error: the largest trial needs about {} of disk, {} are free in {}\n  what to do: free some space, name a \
             folder on another disk in LOADLAB_CACHE, or load fewer rows (--set tables.<name>.rows=...)",
            report::bytes(needed),
            report::bytes(free),
            cache.display()
        ))),
        _ => Ok(()),
    }
}
