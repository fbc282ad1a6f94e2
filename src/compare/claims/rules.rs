//! From intervals to verdicts. Every rule is one comparison of an interval with a range.

use super::evidence::more_blocks;
use super::judgement::{Comparison, Ratio, Tolerance, Verdict};
use crate::stats::{MIN_BLOCKS, Place, place};

/// Where a ratio was published and all of our interval lies within this share of 1, there is no such difference.
const NONE: f64 = 0.05;

/// A verdict, the reason in words, and how many blocks would probably decide it.
pub(super) type Ruling = (Verdict, String, Option<usize>);

/// Too few blocks for a verdict, or no pair at all.
pub(super) fn too_few(comparisons: &[Comparison]) -> Option<Ruling> {
    let fewest =
        comparisons.iter().map(|comparison| comparison.ratio.map_or(0, |ratio| ratio.blocks)).min()?;
    if fewest == 0 {
        let reason = "no block has a valid trial of both groups".to_owned();
        return Some((Verdict::NotComparable, reason, None));
    }
    (fewest < MIN_BLOCKS).then(|| {
        let blocks = if fewest == 1 { "1 block" } else { &format!("{fewest} blocks") };
        let reason = format!("{blocks} of the {MIN_BLOCKS} that a verdict needs");
        (Verdict::Inconclusive, reason, Some(MIN_BLOCKS))
    })
}

/// A client that is the narrow place and does the same on both sides hides what the server could do.
pub(super) fn client_bound(comparisons: &[Comparison]) -> Option<Ruling> {
    let bound = comparisons.iter().find(|comparison| comparison.client_bound)?;
    let reason = format!(
        "loadlab itself was the narrow place for {} or {} and did the same work for both: the ratio is the client's and says nothing \
         about the server",
        bound.of, bound.to
    );
    Some((Verdict::Inconclusive, reason, None))
}

/// `of` is `published` times `to`.
pub(super) fn ratio(found: &Ratio, published: f64, tolerance: &Tolerance, family: usize) -> Ruling {
    let Some(interval) = found.together else { return without_interval() };
    let (to_published, to_one) = (place(interval, tolerance.range), place(interval, (1.0, 1.0)));
    let claimed = if published > 1.0 { Place::Above } else { Place::Below };
    let opposite = if published > 1.0 { Place::Below } else { Place::Above };
    let none = place(interval, margin_range(NONE)) == Place::Inside;
    if to_published == Place::Inside {
        return (Verdict::Reproduced, "the interval lies within the tolerance".to_owned(), None);
    }
    if to_one == claimed {
        let reason = match to_published {
            Place::Across => "the same side of 1; the interval is too wide to say whether the size agrees",
            Place::Below if published > 1.0 => "the same side of 1, but the difference is smaller",
            Place::Above if published < 1.0 => "the same side of 1, but the difference is smaller",
            _ => "the same side of 1, but the difference is larger",
        };
        let size = (tolerance.range.1 / published).ln();
        let more = (to_published == Place::Across).then(|| more_blocks(found, size, true, family)).flatten();
        return (Verdict::SameDirection, reason.to_owned(), more);
    }
    // A tolerance that reaches over 1 allows a little of the other side.
    if to_published != Place::Across && (to_one == opposite || none) {
        let reason = if none {
            "no difference worth the name, where one was published"
        } else {
            "the other side of 1"
        };
        return (Verdict::Contradicted, reason.to_owned(), None);
    }
    let more = more_blocks(found, published.ln(), false, family);
    let mut reason = "the interval is too wide to tell the direction".to_owned();
    if to_published != Place::Across {
        // Worth knowing, though it is not enough for a verdict: it may still be the published direction.
        reason += "; the published size is not in it";
    }
    (Verdict::Inconclusive, reason, more)
}

/// `of` and `to` differ by less than `margin`.
pub(super) fn no_difference(found: &Ratio, margin: f64, family: usize) -> Ruling {
    let Some(interval) = found.together else { return without_interval() };
    let percent = margin * 100.0;
    match place(interval, margin_range(margin)) {
        Place::Inside => (Verdict::Reproduced, format!("the interval lies within {percent:.1} % of 1"), None),
        Place::Below | Place::Above => {
            (Verdict::Contradicted, format!("the difference is larger than {percent:.1} %"), None)
        }
        Place::Across => {
            let shown = if place(interval, (1.0, 1.0)) == Place::Across {
                "no difference is shown, but"
            } else {
                "there is a difference;"
            };
            let reason = format!("{shown} whether it is less than {percent:.1} % is open");
            (Verdict::Inconclusive, reason, more_blocks(found, margin.ln_1p(), true, family))
        }
    }
}

/// Each group is above the next. The last comparison is that of the first group with the last.
pub(super) fn order(comparisons: &[Comparison], family: usize) -> Ruling {
    let places: Option<Vec<(Place, &Ratio)>> = comparisons
        .iter()
        .map(|comparison| {
            let ratio = comparison.ratio.as_ref()?;
            Some((place(ratio.together?, (1.0, 1.0)), ratio))
        })
        .collect();
    let Some(places) = places else { return without_interval() };
    let steps = if places.len() > 1 { &places[..places.len() - 1] } else { &places[..] };
    let shown = steps.iter().filter(|(place, _)| *place == Place::Above).count();
    if let Some(wrong) = places.iter().position(|(place, _)| *place == Place::Below) {
        let Comparison { of, to, .. } = &comparisons[wrong];
        return (Verdict::Contradicted, format!("{of} is below {to}"), None);
    }
    if shown == steps.len() {
        return (Verdict::Reproduced, "every group is above the next".to_owned(), None);
    }
    let open = steps.iter().filter(|(place, _)| *place != Place::Above);
    let more = open
        .map(|(_, ratio)| more_blocks(ratio, ratio.ratio.ln(), false, family))
        .collect::<Option<Vec<_>>>();
    let more = more.and_then(|more| more.into_iter().max());
    let counted = format!("{shown} of {} steps are shown", steps.len());
    let in_order = steps.iter().all(|(_, ratio)| ratio.ratio > 1.0);
    let ends = places.last().is_some_and(|(place, _)| *place == Place::Above);
    if in_order && ends {
        return (Verdict::SameDirection, format!("the first is above the last, and {counted}"), more);
    }
    (Verdict::Inconclusive, counted, more)
}

fn margin_range(margin: f64) -> (f64, f64) {
    (1.0 / (1.0 + margin), 1.0 + margin)
}

fn without_interval() -> Ruling {
    (Verdict::Inconclusive, "there is no interval".to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(low: f64, high: f64) -> Ratio {
        let bounds = Some((low, high));
        let ratio = (low * high).sqrt();
        Ratio { ratio, interval: bounds, together: bounds, blocks: 8, scatter: Some(0.05), detectable: None }
    }

    fn ruled(low: f64, high: f64, published: f64) -> Verdict {
        let range = (published / 1.1, published * 1.1);
        ratio(&found(low, high), published, &Tolerance { share: 0.1, range, from: String::new() }, 1).0
    }

    #[test]
    fn ratios_by_where_their_interval_lies() {
        for (low, high, published, expected) in [
            (1.95, 2.10, 2.0, Verdict::Reproduced),
            (1.50, 1.60, 2.0, Verdict::SameDirection),
            (1.50, 2.10, 2.0, Verdict::SameDirection),
            (5.00, 6.00, 2.0, Verdict::SameDirection),
            (0.80, 0.90, 2.0, Verdict::Contradicted),
            (0.98, 1.02, 2.0, Verdict::Contradicted),
            (0.90, 1.90, 2.0, Verdict::Inconclusive),
            (0.63, 0.70, 0.68, Verdict::Reproduced),
            (0.60, 0.90, 0.68, Verdict::SameDirection),
            (1.10, 1.20, 0.68, Verdict::Contradicted),
            (0.90, 1.20, 0.68, Verdict::Inconclusive),
            // A small effect: the tolerance reaches over 1.
            (0.98, 1.03, 1.07, Verdict::Reproduced),
            (0.90, 0.98, 1.07, Verdict::Inconclusive),
            (0.80, 0.95, 1.07, Verdict::Contradicted),
        ] {
            assert_eq!(ruled(low, high, published), expected, "{low} to {high}, published {published}");
        }
    }

    #[test]
    fn a_published_size_that_is_shown_to_be_wrong_is_named_without_a_verdict() {
        let tolerance = Tolerance { share: 0.1, range: (1.8, 2.2), from: String::new() };
        let reason = |low, high| ratio(&found(low, high), 2.0, &tolerance, 1).1;
        assert!(reason(0.86, 1.5).ends_with("the published size is not in it"));
        assert!(reason(0.86, 1.9).ends_with("too wide to tell the direction"));
    }

    #[test]
    fn no_difference_is_an_interval_within_the_margin() {
        let ruled = |low, high| no_difference(&found(low, high), 0.05, 1).0;
        assert_eq!(ruled(0.96, 1.04), Verdict::Reproduced);
        assert_eq!(ruled(1.01, 1.04), Verdict::Reproduced);
        assert_eq!(ruled(0.94, 1.04), Verdict::Inconclusive);
        assert_eq!(ruled(1.02, 1.09), Verdict::Inconclusive);
        assert_eq!(ruled(1.06, 1.09), Verdict::Contradicted);
        assert_eq!(ruled(0.80, 0.94), Verdict::Contradicted);
    }

    fn compared(low: f64, high: f64) -> Comparison {
        Comparison {
            of: "a".to_owned(),
            to: "b".to_owned(),
            shared: String::new(),
            medians: (None, None),
            ratio: Some(found(low, high)),
            pairs: 8,
            pairs_missing: 0,
            alike: true,
            client_bound: false,
        }
    }

    #[test]
    fn an_order_is_as_good_as_its_weakest_step() {
        let ruled = |steps: &[(f64, f64)]| {
            order(&steps.iter().map(|(low, high)| compared(*low, *high)).collect::<Vec<_>>(), 3).0
        };
        assert_eq!(ruled(&[(1.1, 1.2), (1.3, 1.5), (1.5, 1.7)]), Verdict::Reproduced);
        assert_eq!(ruled(&[(0.99, 1.2), (1.3, 1.5), (1.5, 1.7)]), Verdict::SameDirection);
        assert_eq!(ruled(&[(0.9, 1.05), (1.3, 1.5), (1.5, 1.7)]), Verdict::Inconclusive);
        assert_eq!(ruled(&[(0.8, 0.9), (1.3, 1.5), (1.2, 1.3)]), Verdict::Contradicted);
        assert_eq!(ruled(&[(1.1, 1.2)]), Verdict::Reproduced);
    }

    #[test]
    fn five_blocks_are_too_few_whatever_they_show() {
        let mut few = compared(1.95, 2.05);
        few.ratio = few.ratio.map(|ratio| Ratio { blocks: 5, ..ratio });
        assert_eq!(too_few(&[compared(1.9, 2.1), few]).unwrap().0, Verdict::Inconclusive);
        assert_eq!(too_few(&[compared(1.9, 2.1)]), None);
        let none = Comparison { ratio: None, ..compared(1.0, 1.0) };
        assert_eq!(too_few(&[none]).unwrap().0, Verdict::NotComparable);
    }
}
