//! Progress of a run: a line on a terminal, plain lines elsewhere.
//!
//! Drawing costs CPU that belongs to the trial, so nothing is drawn while one is open: there is no ticker, and notes wait until
//! the trial ends. A load by duration is the exception: it may take minutes, and draws one short line a second on a terminal.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::numbers::duration;
use crate::model::Outcome;

/// What is known before the first trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanSize {
    /// Trials of the whole plan.
    pub trials: u64,
    /// Of these, trials an earlier start already finished.
    pub done: u64,
    /// Blocks: how often each treatment is run.
    pub blocks: u32,
    /// The plan's own estimate for all trials, in seconds.
    pub estimated_seconds: Option<f64>,
}

/// A trial that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedTrial<'a> {
    /// Label of the treatment.
    pub treatment: &'a str,
    /// How it ended.
    pub outcome: Outcome,
    /// Its number in words, `load 12,345 rows/s`; empty for none.
    pub headline: &'a str,
    /// How long the whole trial took.
    pub seconds: f64,
}

/// A load by duration that is at work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkingStep<'a> {
    /// Name of the step.
    pub step: &'a str,
    /// Since its clock started.
    pub seconds: f64,
    /// Length of its warm-up.
    pub warm_up: f64,
    /// Warm-up and window.
    pub whole: f64,
    /// Rows committed so far.
    pub rows: u64,
    /// Rows committed in the last second.
    pub rows_per_second: f64,
}

impl WorkingStep<'_> {
    fn words(&self) -> String {
        let phase = match self.seconds {
            early if early < self.warm_up => "warm-up, ",
            late if late >= self.whole => "last commits, ",
            _ => "",
        };
        format!(
            "{}: {phase}{:.0} of {:.0} s, {} rows, {} rows/s",
            self.step,
            self.seconds,
            self.whole,
            super::count(self.rows),
            super::numbers::number(self.rows_per_second)
        )
    }
}

/// Shows how far a run is.
pub struct Progress {
    out: Output,
    estimate: Estimate,
    number: u64,
    open: bool,
    waiting: Vec<String>,
}

enum Output {
    Bar(ProgressBar),
    Lines(Box<dyn Write + Send>),
}

impl Progress {
    /// Draws on standard error: a bar on a terminal, lines when it is none or `CI` is set.
    #[must_use]
    pub fn new(plan: PlanSize) -> Self {
        let no_bar =
            !std::io::stderr().is_terminal() || std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        if no_bar {
            return Self::lines(plan, Box::new(std::io::stderr()));
        }
        let bar = ProgressBar::with_draw_target(Some(plan.trials), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("##-"));
        bar.set_position(plan.done);
        Self::with(plan, Output::Bar(bar))
    }

    /// Writes plain lines to `out`.
    #[must_use]
    pub fn lines(plan: PlanSize, out: Box<dyn Write + Send>) -> Self {
        Self::with(plan, Output::Lines(out))
    }

    fn with(plan: PlanSize, out: Output) -> Self {
        let estimate = Estimate { plan, done: plan.done, seen: HashMap::new() };
        Self { out, estimate, number: 0, open: false, waiting: Vec::new() }
    }

    /// A trial begins; `number` counts from 1. Nothing is drawn after this until the trial ends.
    pub fn trial_started(&mut self, number: u64, treatment: &str) {
        self.number = number;
        if let Output::Bar(bar) = &self.out {
            bar.set_message(format!("{treatment}   {}", self.estimate.words()));
            bar.force_draw();
        }
        self.open = true;
    }

    /// A load by duration is at work. Drawn on a terminal only: lines in a log would be too many.
    pub fn working(&mut self, step: &WorkingStep<'_>) {
        if let Output::Bar(bar) = &self.out {
            bar.set_message(step.words());
            bar.force_draw();
        }
    }

    /// The trial ended.
    pub fn trial_finished(&mut self, trial: &FinishedTrial<'_>) {
        self.open = false;
        self.estimate.add(trial.treatment, trial.seconds);
        let width = self.estimate.plan.trials.to_string().len();
        let outcome = if trial.outcome == Outcome::Ok { "" } else { trial.outcome.name() };
        let headline =
            [outcome, trial.headline].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let line = format!(
            "[{:>width$}/{}] {}: {} ({})",
            self.number,
            self.estimate.plan.trials,
            trial.treatment,
            if headline.is_empty() { "ok".to_owned() } else { headline.join(", ") },
            if trial.seconds < 9.95 {
                super::numbers::seconds(trial.seconds)
            } else {
                duration(trial.seconds)
            }
        );
        match &self.out {
            Output::Bar(bar) => {
                bar.println(line);
                bar.set_position(self.estimate.done);
                bar.set_message(self.estimate.words());
                bar.force_draw();
            }
            Output::Lines(_) => self.line(&format!("{line}, {}", self.estimate.words())),
        }
        for note in std::mem::take(&mut self.waiting) {
            self.line(&note);
        }
    }

    /// Says something; while a trial is open, after it.
    pub fn note(&mut self, text: &str) {
        if self.open {
            self.waiting.push(text.to_owned());
        } else {
            self.line(text);
        }
    }

    /// Removes the bar; waiting notes are written.
    pub fn finish(mut self) {
        for note in std::mem::take(&mut self.waiting) {
            self.line(&note);
        }
        if let Output::Bar(bar) = &self.out {
            bar.finish_and_clear();
        }
    }

    fn line(&mut self, text: &str) {
        match &mut self.out {
            Output::Bar(bar) => bar.println(text),
            // A closed pipe must not end a run that takes hours.
            Output::Lines(out) => drop(writeln!(out, "{text}").and_then(|()| out.flush())),
        }
    }
}

/// Time that is left, from the trials seen.
struct Estimate {
    plan: PlanSize,
    done: u64,
    /// Treatment to number of trials and their seconds.
    seen: HashMap<String, (u64, f64)>,
}

impl Estimate {
    fn add(&mut self, treatment: &str, seconds: f64) {
        self.done = (self.done + 1).min(self.plan.trials);
        let entry = self.seen.entry(treatment.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += seconds;
    }

    /// Every seen treatment's missing trials at its own mean; trials of unseen treatments at the mean of these means, or at the
    /// plan's estimate while nothing is known.
    #[expect(clippy::cast_precision_loss, reason = "numbers of trials stay far below 2^53")]
    fn seconds(&self) -> Option<f64> {
        let left = (self.plan.trials - self.done) as f64;
        if self.seen.is_empty() {
            return self.plan.estimated_seconds.map(|all| all * left / self.plan.trials.max(1) as f64);
        }
        let means = self.seen.values().map(|(count, seconds)| (*count, seconds / *count as f64));
        let overall = means.clone().map(|(_, mean)| mean).sum::<f64>() / self.seen.len() as f64;
        let blocks = u64::from(self.plan.blocks);
        let known = means.map(|(count, mean)| (blocks.saturating_sub(count) as f64, mean));
        let (trials, seconds) = known.fold((0.0, 0.0), |(t, s), (count, mean)| (t + count, s + count * mean));
        // After a resume the trials of the earlier start are not among the seen ones.
        Some(if trials > left { seconds * left / trials } else { seconds + (left - trials) * overall })
    }

    fn words(&self) -> String {
        match self.seconds() {
            Some(_) if self.done == self.plan.trials => "done".to_owned(),
            Some(seconds) => format!("about {} left", duration(seconds)),
            None => "time left not known yet".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn finished(treatment: &str, seconds: f64) -> FinishedTrial<'_> {
        FinishedTrial { treatment, outcome: Outcome::Ok, headline: "load 12,345 rows/s", seconds }
    }

    #[test]
    fn lines_are_written_between_trials_only() {
        let page = Page::default();
        let plan = PlanSize { trials: 4, done: 0, blocks: 2, estimated_seconds: Some(40.0) };
        let mut progress = Progress::lines(plan, Box::new(page.clone()));
        progress.note("4 trials");
        progress.trial_started(1, "a");
        progress.note("waits");
        assert_eq!(page.text(), "4 trials\n");
        progress.trial_finished(&finished("a", 3.0));
        progress.trial_started(2, "b");
        progress.trial_finished(&FinishedTrial {
            outcome: Outcome::TimedOut,
            headline: "",
            ..finished("b", 70.0)
        });
        progress.finish();
        insta::assert_snapshot!(page.text(), @"
        4 trials
        [1/4] a: load 12,345 rows/s (3.00 s), about 9 s left
        waits
        [2/4] b: timed_out (1 min 10 s), about 1 min 13 s left
        ");
    }

    #[test]
    fn a_load_by_duration_says_how_far_it_is() {
        let step = |seconds| WorkingStep {
            step: "insert",
            seconds,
            warm_up: 5.0,
            whole: 35.0,
            rows: 12_345,
            rows_per_second: 2_400.0,
        };
        assert_eq!(step(2.0).words(), "insert: warm-up, 2 of 35 s, 12,345 rows, 2,400 rows/s");
        assert_eq!(step(12.1).words(), "insert: 12 of 35 s, 12,345 rows, 2,400 rows/s");
        assert!(step(35.2).words().contains("last commits"));
    }

    #[test]
    fn time_left_follows_the_treatments_that_are_left() {
        let plan = PlanSize { trials: 6, done: 0, blocks: 2, estimated_seconds: Some(60.0) };
        let mut estimate = Estimate { plan, done: 0, seen: HashMap::new() };
        assert_eq!(estimate.seconds(), Some(60.0));
        estimate.add("slow", 100.0);
        assert_eq!(estimate.seconds(), Some(500.0));
        estimate.add("fast", 1.0);
        // slow once more, fast once more, two of a third treatment at the mean of 50.5.
        assert_eq!(estimate.seconds(), Some(202.0));
        estimate.add("slow", 100.0);
        estimate.add("fast", 1.0);
        estimate.add("third", 7.0);
        assert_eq!(estimate.seconds(), Some(7.0));
    }

    #[test]
    fn a_resumed_run_estimates_only_what_is_left() {
        let plan = PlanSize { trials: 6, done: 5, blocks: 6, estimated_seconds: None };
        let mut estimate = Estimate { plan, done: 5, seen: HashMap::new() };
        assert_eq!(estimate.words(), "time left not known yet");
        estimate.add("only", 5.0);
        assert_eq!(estimate.words(), "done");
    }
}
