//! The statistics, tried on simulated experiments whose truth is known. They go the way of real runs: a plan gives the order, made-up
//! trials become records, and `summarise` and `judge` say what they say of any run.

use indexmap::IndexMap;
use loadlab::compare::{Facts, Judgement, Ratio, Reading, Verdict, judge, summarise};
use loadlab::model::{
    Blocks, Claim, ClaimSource, Contrast, Design, Factor, Group, Level, Measurement, Metric, Outcome,
    PlannedTrial, Scalar, Spans, Statement, TrialRecord,
};
use loadlab::plan::Plan;
use loadlab::stats::{blocks_needed, standard_deviation};

/// Experiments per question.
const EXPERIMENTS: u32 = 1_000;

/// What shakes the log of a trial's time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    /// Normal, 2 %.
    Normal,
    /// Exponential, 8 %: most trials near the fastest, a long tail of slow ones.
    Skewed,
    /// 2 %, and the machine slows down by 30 % over the run.
    Drifting,
    /// 2 %, and 7 trials in 100 take 1.3 to 3 times as long.
    Outliers,
    /// Each trial keeps 0.8 of the deviation of the one before; 5 % in all.
    Autocorrelated,
    /// All of it at once.
    Everything,
    /// 2 % for the one treatment; the other adds an exponential 5 % of its own.
    SkewedOnOneSide,
}

use Noise::{Autocorrelated, Drifting, Everything, Normal, Outliers, Skewed, SkewedOnOneSide};

/// A generator of random numbers that is the same everywhere (G. L. Steele and others, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap()) + 0.5) / 4_294_967_296.0
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

/// Log of how much longer a trial takes; `last` is the state of the autocorrelated part, `through` runs from 0 to 1 over the run.
fn shake(noise: Noise, random: &mut Random, last: &mut f64, through: f64, treated: bool) -> f64 {
    let slower = |through: f64| (0.3 * through).ln_1p();
    match noise {
        Normal => 0.02 * random.normal(),
        Skewed => 0.08 * random.exponential(),
        Drifting => 0.02 * random.normal() + slower(through),
        Outliers => {
            let wild = if random.uniform() < 0.07 { 0.26 + 0.84 * random.uniform() } else { 0.0 };
            0.02 * random.normal() + wild
        }
        Autocorrelated => {
            *last = 0.8 * *last + 0.6 * random.normal();
            0.05 * *last
        }
        Everything => {
            let slow = shake(Autocorrelated, random, last, through, treated)
                + shake(Skewed, random, last, through, treated);
            slow + shake(Outliers, random, last, through, treated) + slower(through)
        }
        SkewedOnOneSide => 0.02 * random.normal() + if treated { 0.05 * random.exponential() } else { 0.0 },
    }
}

/// Mean of what one treatment has and the other has not.
fn bias(noise: Noise) -> f64 {
    if noise == SkewedOnOneSide { 0.05 } else { 0.0 }
}

/// One factor with `levels` levels in `blocks` blocks.
fn design(levels: usize, blocks: u32, seed: u64) -> Design {
    let level = |number: usize| {
        let name = format!("l{number}");
        Level { value: Some(Scalar::Text(name.clone())), name, values: IndexMap::new() }
    };
    Design {
        factors: vec![Factor { name: "f".to_owned(), levels: (0..levels).map(level).collect() }],
        include: Vec::new(),
        exclude: Vec::new(),
        blocks: Blocks { min: blocks, max: blocks, until: None, budget: None },
        seed,
    }
}

/// Records of a whole run. Level 0 takes one second without noise; the others are `ratio` times as fast.
fn experiment(design: &Design, ratio: f64, noise: Noise, seed: u64) -> Vec<TrialRecord> {
    let plan = Plan::new(design).unwrap();
    let last = u32::try_from(plan.trials() - 1).unwrap();
    let mut random = Random(seed);
    let mut state = random.normal();
    let trials = plan.iter().map(|trial| {
        let through = f64::from(u32::try_from(trial.number).unwrap()) / f64::from(last);
        let treated = trial.treatment.levels[0] > 0;
        let log = shake(noise, &mut random, &mut state, through, treated);
        record(trial, log.exp() / if treated { ratio } else { 1.0 })
    });
    trials.collect()
}

fn record(trial: PlannedTrial, seconds: f64) -> TrialRecord {
    let load = Measurement {
        step: "load".to_owned(),
        kind: "load".to_owned(),
        outcome: Some(Outcome::Ok),
        rows: Some(1_000_000),
        spans: Spans { seconds, ..Spans::default() },
        ..Measurement::default()
    };
    TrialRecord {
        attempt: 0,
        treatment: format!("f=l{}", trial.treatment.levels[0]),
        trial,
        factors: Vec::new(),
        started_at: jiff::Timestamp::UNIX_EPOCH,
        seconds,
        server_start_seconds: None,
        server: None,
        outcome: Outcome::Ok,
        error: None,
        error_sqlstate: None,
        settings: Vec::new(),
        measurements: vec![load],
        samples: Vec::new(),
    }
}

/// A claim about level `of` over level 0.
fn claim(of: usize, statement: impl Fn(Contrast) -> Statement, published: Option<f64>) -> Claim {
    let group = |level| Group { levels: vec![(0, level)] };
    Claim {
        id: format!("level-{of}"),
        source_id: "s".to_owned(),
        source: ClaimSource { title: "Source".to_owned(), author: None, date: None, system: None, url: None },
        quote: None,
        reading: loadlab::model::Reading::AsPublished,
        metric: Some(Metric {
            steps: vec!["load".to_owned()],
            name: "rows_per_second".to_owned(),
            counter: false,
        }),
        statement: statement(Contrast { of: group(of), to: group(0) }),
        published,
        raw: None,
        needs: IndexMap::new(),
        confounds: None,
    }
}

fn says_ratio(published: f64) -> Claim {
    claim(1, Statement::Ratio, Some(published))
}

fn says_nothing_changes() -> Claim {
    claim(1, |contrast| Statement::NoDifference { contrast, margin: 0.05 }, None)
}

/// One simulated experiment with two treatments, judged.
fn judged(claim: &Claim, blocks: u32, ratio: f64, noise: Noise, seed: u64) -> Judgement {
    let design = design(2, blocks, seed);
    let records = experiment(&design, ratio, noise, seed ^ 0x5EED);
    judge(std::slice::from_ref(claim), &records, &design, &Facts::default()).remove(0)
}

/// Share of experiments for which something holds.
fn share(experiments: u32, holds: impl Fn(u64) -> bool) -> f64 {
    let found = (0..experiments).filter(|seed| holds(u64::from(*seed))).count();
    f64::from(u32::try_from(found).unwrap()) / f64::from(experiments)
}

fn interval(judgement: &Judgement) -> (f64, f64) {
    judgement.comparisons[0].ratio.unwrap().interval.unwrap()
}

#[test]
fn equal_treatments_are_told_apart_in_at_most_one_experiment_of_twenty() {
    for noise in [Normal, Skewed, Drifting, Outliers, Autocorrelated, Everything] {
        for blocks in [6, 10] {
            let different = share(EXPERIMENTS, |seed| {
                let design = design(2, blocks, seed);
                let summary = summarise(&experiment(&design, 1.0, noise, seed ^ 0x5EED), &design);
                summary.steps[0].contrasts[0].levels[0].reading != Reading::Unclear
            });
            println!("A/A {noise:?}, {blocks} blocks: {different}");
            assert!(different <= 0.05, "{noise:?}, {blocks} blocks: {different}");
        }
    }
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for noise in [Normal, Skewed, Drifting, Outliers, Autocorrelated, Everything, SkewedOnOneSide] {
        for blocks in [6, 10] {
            let claim = says_ratio(1.5);
            let truth = 1.5 * f64::exp(-bias(noise));
            let covered = share(EXPERIMENTS, |seed| {
                let (low, high) = interval(&judged(&claim, blocks, 1.5, noise, seed + 7_000_000));
                low <= truth && truth <= high
            });
            println!("coverage {noise:?}, {blocks} blocks: {covered}");
            assert!(covered >= 0.93, "{noise:?}, {blocks} blocks: {covered}");
        }
    }
}

#[test]
fn an_effect_is_found_with_as_many_blocks_as_planned() {
    for (noise, effect) in [(Normal, 1.05), (Drifting, 1.05), (Autocorrelated, 1.05), (Skewed, 1.10)] {
        // A long pilot run says how far block ratios scatter.
        let pilot = design(2, 400, 1);
        let records = experiment(&pilot, 1.0, noise, 99);
        let logs: Vec<f64> = (0..400_usize)
            .map(|block| {
                let pair = &records[2 * block..2 * block + 2];
                let of =
                    |level| pair.iter().find(|r| r.trial.treatment.levels[0] == level).unwrap().seconds.ln();
                of(0) - of(1)
            })
            .collect();
        let scatter = standard_deviation(&logs).unwrap();
        let blocks = blocks_needed(f64::ln(effect), scatter, 0.95, 0.8).unwrap();
        let blocks = u32::try_from(blocks).unwrap();
        let claim = says_nothing_changes();
        let found = share(EXPERIMENTS, |seed| {
            interval(&judged(&claim, blocks, effect, noise, seed + 9_000_000)).0 > 1.0
        });
        println!("power {noise:?}, effect {effect}, scatter {scatter:.3}, {blocks} blocks: {found}");
        assert!(found >= 0.8, "{noise:?}: {found} with {blocks} blocks");
    }
}

#[test]
fn drift_does_not_become_an_effect() {
    let claim = says_nothing_changes();
    for blocks in [6, 12] {
        let log = |seed| judged(&claim, blocks, 1.0, Drifting, seed).comparisons[0].ratio.unwrap().ratio.ln();
        let mean = (0..u64::from(EXPERIMENTS)).map(log).sum::<f64>() / f64::from(EXPERIMENTS);
        println!("drift, {blocks} blocks: mean log ratio {mean:.5}");
        assert!(mean.abs() < 0.002, "{blocks} blocks: {mean}");
    }
    // The drift alone, without other noise: what blocks and random order leave of 30 %.
    let within = share(EXPERIMENTS, |seed| {
        let design = design(2, 6, seed);
        let plan = Plan::new(&design).unwrap();
        let records: Vec<TrialRecord> = plan
            .iter()
            .map(|trial| {
                let seconds = 1.0 + 0.3 * f64::from(u32::try_from(trial.number).unwrap()) / 11.0;
                record(trial, seconds)
            })
            .collect();
        let found = judge(std::slice::from_ref(&claim), &records, &design, &Facts::default()).remove(0);
        found.comparisons[0].ratio.unwrap().ratio.ln().abs() < f64::ln(1.02)
    });
    println!("drift alone within 2 %: {within}");
    assert!(within >= 0.95, "{within}");
    // Without blocks, first all of the one and then all of the other, the same drift would be an effect of 13 %.
    let half = |from: u32| (0..6).map(|n| (0.3 * f64::from(from + n) / 11.0).ln_1p()).sum::<f64>() / 6.0;
    assert!((half(6) - half(0)).exp() > 1.10);
}

#[test]
fn ten_comparisons_at_once_are_wrong_as_seldom_as_one() {
    let no_difference = |contrast| Statement::NoDifference { contrast, margin: 0.000_1 };
    let claims: Vec<Claim> = (1..=10).map(|level| claim(level, no_difference, None)).collect();
    let (mut together, mut alone) = (0, 0);
    for seed in 0..300 {
        let design = design(11, 8, seed);
        let records = experiment(&design, 1.0, Everything, seed ^ 0xFA11);
        let judgements = judge(&claims, &records, &design, &Facts::default());
        assert!(judgements.iter().all(|judgement| judgement.family == 10));
        let ratios: Vec<Ratio> =
            judgements.iter().map(|judgement| judgement.comparisons[0].ratio.unwrap()).collect();
        let off = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
        together += u32::from(ratios.iter().any(|ratio| off(ratio.together.unwrap())));
        alone += u32::from(ratios.iter().any(|ratio| off(ratio.interval.unwrap())));
    }
    let (together, alone) = (f64::from(together) / 300.0, f64::from(alone) / 300.0);
    println!("any of ten wrong: {together} together, {alone} alone");
    assert!(together <= 0.05, "{together}");
    assert!(alone > 0.05, "without a family {alone}: the test would pass whatever was done");
}

#[test]
fn verdicts_follow_the_truth() {
    let count = |claim: &Claim, blocks, ratio, verdict| {
        share(250, |seed| {
            judged(claim, blocks, ratio, Autocorrelated, seed + 11_000_000).verdict == Some(verdict)
        })
    };
    // What is true is hardly ever contradicted, what is false is not taken for reproduced.
    assert!(count(&says_ratio(2.0), 8, 2.0, Verdict::Reproduced) > 0.9);
    assert!(count(&says_ratio(2.0), 8, 2.0, Verdict::Contradicted) < 0.001);
    assert!(count(&says_ratio(2.0), 8, 1.4, Verdict::SameDirection) > 0.99);
    assert!(count(&says_ratio(2.0), 8, 0.8, Verdict::Contradicted) > 0.99);
    assert!(count(&says_ratio(2.0), 5, 2.0, Verdict::Inconclusive) > 0.999);
    assert!(count(&says_nothing_changes(), 12, 1.0, Verdict::Contradicted) < 0.001);
    assert!(count(&says_nothing_changes(), 12, 1.0, Verdict::Reproduced) > 0.7);
    // Just at the margin a difference passes for none at most as often as the intervals allow.
    assert!(count(&says_nothing_changes(), 12, 1.05, Verdict::Reproduced) <= 0.05);
}
