//! `docs/CLAIMS.md`: every published statement of the experiment files, with what kept runs say of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::claims::{lines, name, note, says};
use super::heading::servers;
use super::layout::Section;
use super::machine::machine;
use super::markdown::{draw_table, escape};
use super::numbers::times;
use crate::compare::{ControlSummary, Judgement, NoiseFloor, Verdict};
use crate::model::{ClaimSource, Reading};
use crate::store::StoredRun;

/// The sources that loadlab was made to re-test, in the order of their letters; all others follow by title.
const MAIN: [(&str, &str); 5] = [
    ("jalvingh-2017", "P1"),
    ("schaffer-2010", "P2"),
    ("jdbc-2008", "P3"),
    ("ssd-restore-2018", "P4"),
    ("cybertec-freeze", "P5"),
];

/// What stands above the tables.
const INTRODUCTION: &str = "# Claims

Generated from `experiments/` and the kept runs in `results/` by `just schema`; do not edit.

Each row is a published statement as an experiment file encodes it. Sources with known mistakes are encoded twice, as published and as
corrected. The verdict is that of the newest [kept run](../results/README.md#keeping-a-run) of the experiment; `loadlab claims` with the
folder of that run shows the same. How verdicts come about: [METHODOLOGY.md](METHODOLOGY.md#claims). What each claim needs before it is judged is in
[experiments/README.md](../experiments/README.md). Only ratios travel between machines: values of a machine of their own are shown and
never judged.

Claims are those of the files of today. Where a file has changed since the run, the run is said to be of an older text; a claim whose treatments
that run does not have is *not yet re-tested*.
";

/// An experiment with its claims.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Its name.
    pub experiment: String,
    /// Its claims, in the order of the file.
    pub claims: Vec<TestedClaim>,
    /// The run they are held against.
    pub run: Option<Reference>,
}

/// A claim and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TestedClaim {
    /// Key of its source.
    pub source_id: String,
    /// The claim, judged; without a run only what was published counts.
    pub judgement: Judgement,
    /// How it stands.
    pub standing: Standing,
}

/// Whether a claim was held against a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Against the run of its experiment, or it can never be compared.
    Judged,
    /// There is no kept run.
    NoRun,
    /// The kept run cannot say anything about it, and why.
    NotInRun(String),
}

/// A kept run, as far as a reader of verdicts wants to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    run: String,
    options: Vec<String>,
    trials: String,
    machine: String,
    servers: Vec<String>,
    floor: Vec<String>,
    changed: Vec<String>,
    notes: Option<String>,
}

impl Reference {
    /// What of a run is said. `changed`: parts of the experiment file that are others today; `notes`: what the person who kept the run
    /// wrote about it.
    #[must_use]
    pub fn new(
        run: &StoredRun,
        controls: Option<&ControlSummary>,
        changed: Vec<String>,
        notes: Option<String>,
    ) -> Self {
        let (manifest, records) = (&run.manifest, run.journal.records());
        let blocks: BTreeSet<u32> = records.iter().map(|record| record.trial.block).collect();
        let extra = records.iter().filter(|record| record.trial.control).count();
        let trials = records.len() - extra;
        let extra = if extra == 0 { String::new() } else { format!(" and {extra} controls") };
        let used = &manifest.spec.options;
        let mut options: Vec<String> = used.profile.iter().map(|name| format!("--profile {name}")).collect();
        options.extend(used.set.iter().map(|set| format!("--set {set}")));
        options.extend(used.only.iter().map(|only| format!("--only {only}")));
        let lines = machine(&manifest.host).join("; ");
        Self {
            run: manifest.run.clone(),
            options,
            trials: format!("{trials} trials{extra} in {} blocks", blocks.len()),
            machine: lines.strip_prefix("machine: ").unwrap_or(&lines).to_owned(),
            servers: servers(&records),
            floor: controls.into_iter().flat_map(|controls| &controls.noise_floor).map(floor).collect(),
            changed,
            notes,
        }
    }
}

/// The text of `docs/CLAIMS.md`.
#[must_use]
pub fn claims_document(all: &[Tested]) -> String {
    let sources = sources(all);
    let mut text = INTRODUCTION.to_owned();
    text += "\n## Summary\n\n";
    draw_table(&mut text, &summary(all, &sources));
    text += "\nEach reading counts as a claim.\n";
    runs(&mut text, all);
    for source in &sources {
        about_source(&mut text, all, source);
    }
    text
}

/// A source as a heading names it.
struct Source<'a> {
    id: &'a str,
    title: String,
    about: &'a ClaimSource,
}

fn sources(all: &[Tested]) -> Vec<Source<'_>> {
    let mut found: Vec<Source<'_>> = Vec::new();
    for claim in all.iter().flat_map(|tested| &tested.claims) {
        let about = &claim.judgement.source;
        if !found.iter().any(|source| source.id == claim.source_id) {
            let main = MAIN.iter().find(|(id, _)| *id == claim.source_id);
            let letter = main.map_or_else(String::new, |(_, letter)| format!("{letter}: "));
            let by = [about.author.as_deref(), about.date.as_deref()];
            let by = by.into_iter().flatten().collect::<Vec<_>>().join(", ");
            let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
            found.push(Source { id: &claim.source_id, title: format!("{letter}{}{by}", about.title), about });
        }
    }
    found.sort_by_key(|source| {
        let main = MAIN.iter().position(|(id, _)| *id == source.id);
        (main.unwrap_or(MAIN.len()), source.title.to_lowercase())
    });
    found
}

/// What a claim is counted as.
fn standing(claim: &TestedClaim) -> &'static str {
    match (&claim.standing, claim.judgement.verdict) {
        (Standing::NoRun | Standing::NotInRun(_), _) => "not yet re-tested",
        (Standing::Judged, Some(verdict)) => verdict.words(),
        (Standing::Judged, None) => "shown, not judged",
    }
}

fn summary(all: &[Tested], sources: &[Source<'_>]) -> Section {
    let standings: Vec<&str> = Verdict::ALL
        .map(Verdict::words)
        .into_iter()
        .chain(["shown, not judged", "not yet re-tested"])
        .collect();
    let counts = |wanted: &dyn Fn(&TestedClaim) -> bool| {
        let claims: Vec<_> =
            all.iter().flat_map(|tested| &tested.claims).filter(|claim| wanted(claim)).collect();
        let count = |words: &&str| claims.iter().filter(|claim| standing(claim) == *words).count();
        let counts = standings
            .iter()
            .map(count)
            .map(|count| if count == 0 { String::new() } else { count.to_string() });
        std::iter::once(claims.len().to_string()).chain(counts).collect::<Vec<_>>()
    };
    let row = |title: &str, counts: Vec<String>| [vec![title.to_owned()], counts].concat();
    let mut rows: Vec<_> = sources
        .iter()
        .map(|source| row(&source.title, counts(&|claim| claim.source_id == source.id)))
        .collect();
    rows.push(row("all", counts(&|_| true)));
    let header = ["source", "claims"].into_iter().chain(standings.iter().copied());
    Section {
        title: String::new(),
        header: header.map(str::to_owned).collect(),
        rows,
        words: std::iter::once(true).chain(vec![false; standings.len() + 1]).collect(),
    }
}

/// The runs, their machines, and what they cannot show.
fn runs(text: &mut String, all: &[Tested]) {
    *text += "\n## The runs\n\n";
    for tested in all {
        let (name, Some(run)) = (&tested.experiment, &tested.run) else { continue };
        let options =
            if run.options.is_empty() { String::new() } else { format!(" with `{}`", run.options.join(" ")) };
        let _ = writeln!(
            text,
            "- [{name}](../experiments/{name}.yaml){options}, run [{0}](../results/{name}/{0}): {1}. {2}. {3}.{4}{5}",
            run.run,
            run.trials,
            escape(&run.machine),
            escape(&run.servers.join("; ")),
            itself(&run.floor),
            changed(&run.changed)
        );
        // What its keeper wrote.
        for line in run.notes.iter().flat_map(|notes| notes.trim().lines()) {
            let _ = writeln!(text, "  > {line}");
        }
    }
    if all.iter().any(|tested| tested.run.is_some()) {
        text.push('\n');
    }
    let without = all.iter().filter(|tested| tested.run.is_none()).map(|tested| tested.experiment.as_str());
    let without = without.collect::<Vec<_>>().join(", ");
    if !without.is_empty() {
        let _ = writeln!(text, "Not yet re-tested, because no run of them is kept: {without}.");
    }
}

/// `insert 1.01x (0.98x to 1.03x)`: the control trials of a step over their twins.
fn floor(found: &NoiseFloor) -> String {
    let interval = found
        .interval
        .map_or_else(String::new, |(low, high)| format!(" ({} to {})", times(low), times(high)));
    format!("{} {}{interval}", found.step, times(found.ratio))
}

fn itself(floor: &[String]) -> String {
    if floor.is_empty() {
        return " What the machine makes of nothing was not measured.".to_owned();
    }
    format!(" The same treatment against itself: {}.", floor.join(", "))
}

fn changed(parts: &[String]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    format!(" The run is of an older text of the file; changed since: {}.", parts.join(", "))
}

fn about_source(text: &mut String, all: &[Tested], source: &Source<'_>) {
    let _ = write!(text, "\n## {}\n\n", escape(&source.title));
    let about = [source.about.system.as_deref(), source.about.url.as_deref()];
    let about = about.into_iter().flatten().collect::<Vec<_>>().join("; ");
    if !about.is_empty() {
        let _ = writeln!(text, "{}\n", escape(&about));
    }
    let claims = claims_of(all, source.id);
    let header = [
        "experiment",
        "claim",
        "what is said",
        "reading",
        "published",
        "here",
        "interval",
        "blocks",
        "verdict",
    ];
    draw_table(
        text,
        &Section {
            title: String::new(),
            header: header.map(str::to_owned).to_vec(),
            rows: claims.iter().flat_map(|(experiment, claim)| rows(experiment, claim)).collect(),
            words: vec![true, true, true, true, false, false, false, false, true],
        },
    );
    let details: Vec<String> =
        claims.iter().filter_map(|(experiment, claim)| details(experiment, claim)).collect();
    for (index, said) in details.iter().enumerate() {
        let _ = writeln!(text, "{}- {}", if index == 0 { "\n" } else { "" }, escape(said));
    }
}

/// Claims of a source, each with its experiment.
fn claims_of<'a>(all: &'a [Tested], source: &str) -> Vec<(&'a str, &'a TestedClaim)> {
    let each =
        all.iter().flat_map(|tested| tested.claims.iter().map(|claim| (tested.experiment.as_str(), claim)));
    each.filter(|(_, claim)| claim.source_id == source).collect()
}

fn rows(experiment: &str, claim: &TestedClaim) -> Vec<Vec<String>> {
    let judgement = &claim.judgement;
    let ([here, interval, blocks], rest) = lines(judgement);
    let reading = match judgement.reading {
        Reading::AsPublished => "as published",
        Reading::AsCorrected => "as corrected",
    };
    let quote = judgement.quote.as_deref().unwrap_or_default();
    let quote = quote.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = [experiment, &judgement.claim, &quote, reading].map(str::to_owned);
    let verdict = standing(claim).to_owned();
    let mut rows = vec![[words.to_vec(), vec![says(judgement), here, interval, blocks, verdict]].concat()];
    for (pair, [here, interval, blocks]) in rest {
        let empty = String::new;
        rows.push(vec![empty(), pair, empty(), empty(), empty(), here, interval, blocks, empty()]);
    }
    rows
}

/// What a verdict rests on; `None` where there is no more to say than the row does.
fn details(experiment: &str, claim: &TestedClaim) -> Option<String> {
    match &claim.standing {
        Standing::Judged => Some(format!("{experiment}, {}", note(&claim.judgement))),
        Standing::NotInRun(reason) => {
            let name = name(&claim.judgement);
            Some(format!(
                "{experiment}, {name}: not yet re-tested. The kept run is older than this claim: {reason}."
            ))
        }
        Standing::NoRun => None,
    }
}
