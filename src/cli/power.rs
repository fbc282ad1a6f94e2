//! What a plan's blocks can find: from how far the newest run of the experiment scattered, or from a stated guess.

use std::path::Path;

use crate::compare::{MIN_BLOCKS, Noise, noise};
use crate::spec::Spec;
use crate::store::{newest_run, read_run};

/// Scatter of block ratios that is assumed while no run has shown another: that of loads of some seconds on a machine that does
/// little else. A guess, and called so.
const ASSUMED: f64 = 0.03;
/// The difference that plans are told the blocks for.
const WANTED: f64 = 0.05;

/// Lines that say which differences the planned blocks find.
pub(super) fn lines(spec: &Spec, results: &Path) -> Vec<String> {
    let blocks = usize::try_from(spec.design.blocks.max).unwrap_or(usize::MAX);
    let Some((run, noises)) = earlier(spec, results) else {
        let guess = Noise { step: String::new(), scatter: ASSUMED, between_blocks: 0.0, inside: None };
        let percent = ASSUMED * 100.0;
        return vec![format!(
            "power       if ratios scatter by {percent:.0} % (a guess; a run would show it): {}",
            finds(&guess, blocks)
        )];
    };
    let line = |noise: &Noise| {
        let percent = noise.scatter * 100.0;
        let inside = match noise.inside {
            Some(share) if share > 0.5 => "; longer trials would help as well",
            _ => "",
        };
        format!(
            "power       {}: ratios scatter by {percent:.1} % in run {run}: {}{inside}",
            noise.step,
            finds(noise, blocks)
        )
    };
    noises.iter().map(line).collect()
}

fn earlier(spec: &Spec, results: &Path) -> Option<(String, Vec<Noise>)> {
    let run = read_run(&newest_run(results, Some(&spec.name)).ok()??).ok()?;
    let noises =
        if run.manifest.smoke { Vec::new() } else { noise(&run.journal.records(), &run.manifest.design) };
    (!noises.is_empty()).then_some((run.manifest.run, noises))
}

fn finds(noise: &Noise, blocks: usize) -> String {
    let wanted = noise.blocks_for(WANTED).unwrap_or(MIN_BLOCKS);
    let percent = WANTED * 100.0;
    let needed = format!("a difference of {percent:.0} % needs {wanted} blocks");
    match noise.found_by(blocks) {
        Some(share) => format!("{blocks} blocks find {:.1} % four times in five; {needed}", share * 100.0),
        None => needed,
    }
}
