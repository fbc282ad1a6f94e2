//! What a person reads, from fixed records.

use loadlab::compare::{Reading, summarise};
use loadlab::report;

use super::fixture::{Example, formats, unlogged};

fn table(example: &Example, width: u16) -> String {
    report::table(&summarise(&example.records, &example.manifest.design), width)
}

#[test]
fn terminal_with_enough_blocks() {
    insta::assert_snapshot!(table(&unlogged(7), 100));
}

#[test]
fn terminal_with_two_blocks_two_steps_and_nothing_durable() {
    insta::assert_snapshot!(table(&formats(2), 120));
}

#[test]
fn terminal_without_any_record() {
    let example = Example { records: Vec::new(), ..unlogged(1) };
    insta::assert_snapshot!(table(&example, 80));
}

#[test]
fn markdown_of_a_run() {
    let example = unlogged(7);
    let summary = summarise(&example.records, &example.manifest.design);
    insta::assert_snapshot!(report::markdown(&summary, &example.manifest));
}

#[test]
fn a_smoke_run_says_so_first_and_compares_nothing() {
    let mut example = unlogged(7);
    example.manifest.smoke = true;
    let summary = summarise(&example.records, &example.manifest.design).unjudged();
    let heading = report::heading(&example.manifest, &example.records);
    let markdown = report::markdown(&summary, &example.manifest);
    for text in [heading[0].as_str(), markdown.lines().next().unwrap()] {
        assert!(text.contains("SMOKE RUN") && text.contains("proves nothing about speed"), "{text}");
    }
    let shown = report::table(&summary, 100) + &markdown;
    for word in ["times as fast", "faster", "slower", "interval", "verdict"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for width in [80, 100, 120] {
        for line in table(&formats(7), width).lines().chain(table(&unlogged(2), width).lines()) {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
    }
}

#[test]
fn json_holds_the_numbers() {
    let example = formats(6);
    let json = report::json(&summarise(&example.records, &example.manifest.design));
    assert_eq!(json["blocks"], 6);
    assert_eq!(json["steps"][1]["contrasts"][0]["levels"][1]["reading"], "faster");
}

#[test]
fn ratios_are_those_that_were_put_in() {
    let example = formats(7);
    let summary = summarise(&example.records, &example.manifest.design);
    let copy = summary.steps.iter().find(|step| step.step == "copy").unwrap();
    let format = &copy.contrasts[0];
    assert_eq!((format.factor.as_str(), format.reference.as_str()), ("format", "text"));
    for (contrast, expected, reading) in
        [(&format.levels[0], 0.9, Reading::Slower), (&format.levels[1], 1.3, Reading::Faster)]
    {
        let (low, high) = contrast.interval.unwrap();
        assert!(low < expected && expected < high && (high - low) < 0.1, "{contrast:?}");
        assert_eq!((contrast.reading, contrast.blocks, contrast.pairs), (reading, 7, 14));
        assert!(contrast.within.is_none());
    }
    // Seconds are turned round: creating a table takes equally long, so nothing is shown.
    assert!((summary.steps[0].contrasts[0].levels[0].ratio - 1.0).abs() < 1e-12);
}

#[test]
fn an_effect_that_depends_on_another_factor_is_shown_within_it() {
    let example = unlogged(6);
    let summary = summarise(&example.records, &example.manifest.design);
    let insert = summary.steps.iter().find(|step| step.step == "insert").unwrap();
    let storage = &insert.contrasts[0].levels[0];
    let within = storage.within.as_ref().unwrap();
    assert_eq!(within.factor, "batch");
    let ratios: Vec<f64> = within.levels.iter().map(|(_, contrast)| contrast.ratio).collect();
    assert!((ratios[0] - 1.05).abs() < 0.05 && (ratios[1] - 1.6).abs() < 0.08, "{ratios:?}");
    // One trial failed and one is guarded: their pairs are missing, and neither is averaged.
    assert_eq!(storage.pairs_missing, 2);
    let cells = &insert.cells;
    assert_eq!(cells.iter().map(|cell| cell.valid).sum::<usize>(), 22);
    assert_eq!(cells.iter().map(|cell| cell.invalid).sum::<usize>(), 2);
}

#[test]
fn one_block_has_no_interval() {
    let example = formats(1);
    let summary = summarise(&example.records, &example.manifest.design);
    let contrast = &summary.steps[1].contrasts[0].levels[0];
    assert_eq!((contrast.interval, contrast.reading), (None, Reading::Exploratory));
}
