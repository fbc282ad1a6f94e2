//! What counts as the published number: as far as the source itself can be trusted, and no further.

use super::judgement::Tolerance;
use crate::model::{Claim, RawValues};
use crate::stats::{mean, t_quantile};

/// No source is taken to be more exact than this: the difference that counts as none where a claim does not say otherwise. Ratios of
/// times move by a few percent with things that nobody writes down, such as where files and memory come to lie (T. Mytkowicz and
/// others, "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009).
const FLOOR: f64 = 0.05;
/// The same for a source with one value a side: how much its runs scatter is not known at all, so it gets twice as much.
const FLOOR_OF_ONE: f64 = 0.10;
/// Printed numbers are looked at for so many digits after the point.
const DIGITS: i32 = 6;

/// The tolerance of a ratio claim; `None` without a published number.
pub(super) fn tolerance(claim: &Claim) -> Option<Tolerance> {
    let published = claim.published.filter(|ratio| ratio.is_finite() && *ratio > 0.0)?;
    let raw = claim.raw.as_ref().filter(|raw| !raw.of.is_empty() && !raw.to.is_empty());
    let (log, from) = raw.map_or_else(|| of_number(published), of_raw);
    let share = log.exp_m1();
    Some(Tolerance { share, range: (published * (-log).exp(), published * log.exp()), from })
}

/// Log of the tolerance of a ratio without the values behind it.
fn of_number(published: f64) -> (f64, String) {
    // Two digits are meant even where the second is a zero: 3.0 is read as 3.
    let second = 10_f64.powf(published.log10().floor() - 1.0) / 2.0;
    let rounding = half_step(&[published], None).min(second) / published;
    let percent = FLOOR_OF_ONE * 100.0;
    (
        FLOOR_OF_ONE.ln_1p() + rounding,
        format!("the source gives no values: {percent:.0} % and the rounding of {published}"),
    )
}

/// Log of the tolerance, from the spread of the printed values and their rounding.
fn of_raw(raw: &RawValues) -> (f64, String) {
    let rounding = half_step(&raw.of, raw.rounding) / mean(&raw.of).unwrap_or(f64::INFINITY)
        + half_step(&raw.to, raw.rounding) / mean(&raw.to).unwrap_or(f64::INFINITY);
    let counts = format!("{} and {} values", raw.of.len(), raw.to.len());
    match spread(raw) {
        Some(spread) if spread + rounding > FLOOR.ln_1p() => {
            (spread + rounding, format!("the spread and rounding of the source's {counts}"))
        }
        Some(_) => (
            FLOOR.ln_1p(),
            format!(
                "{:.0} %, because the source's {counts} agree more closely than runs on two machines can",
                FLOOR * 100.0
            ),
        ),
        None => (
            FLOOR_OF_ONE.ln_1p() + rounding,
            format!(
                "the source gives one value a side, so its spread is not known: {:.0} % and rounding",
                FLOOR_OF_ONE * 100.0
            ),
        ),
    }
}

/// Half of the 95 % interval of the source's own log ratio, its values taken to scatter by the same share on both sides: Student's
/// two-sample interval with the pooled relative deviation. `None` when no side has two values.
#[expect(clippy::cast_precision_loss, reason = "a source prints a handful of values")]
fn spread(raw: &RawValues) -> Option<f64> {
    let degrees = (raw.of.len() - 1) + (raw.to.len() - 1);
    let squares = |values: &[f64]| {
        let centre = mean(values)?;
        Some(values.iter().map(|value| (value / centre - 1.0).powi(2)).sum::<f64>())
    };
    let pooled = (squares(&raw.of)? + squares(&raw.to)?) / degrees as f64;
    let error = (pooled * (1.0 / raw.of.len() as f64 + 1.0 / raw.to.len() as f64)).sqrt();
    (degrees > 0).then(|| t_quantile(0.975, degrees) * error)
}

/// Half of the step between printable values: as the claim says, or the last digit that any of them has.
fn half_step(values: &[f64], rounding: Option<f64>) -> f64 {
    let whole = |digits: i32| {
        let scale = 10_f64.powi(digits);
        values.iter().all(|value| (value * scale - (value * scale).round()).abs() < 1e-6 * scale.max(1.0))
    };
    let step = rounding.unwrap_or_else(|| {
        let digits = (0..DIGITS).find(|digits| whole(*digits)).unwrap_or(DIGITS);
        10_f64.powi(-digits)
    });
    step / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RawUnit;

    fn raw(of: &[f64], to: &[f64]) -> RawValues {
        RawValues { unit: RawUnit::Seconds, of: of.to_vec(), to: to.to_vec(), rounding: None }
    }

    /// By hand: relative deviations 0.0101 and 0.0053 a side, pooled 0.0071 (two degrees), error 0.0071, times 4.303.
    #[test]
    fn two_values_a_side_give_their_own_spread() {
        let found = spread(&raw(&[29.0, 29.0 * 1.02], &[14.0, 14.0 * 1.01])).unwrap();
        assert!((found - 4.303 * 0.0079).abs() < 0.001, "{found}");
        assert_eq!(spread(&raw(&[35.0], &[30.0])), None);
    }

    #[test]
    fn values_that_agree_closely_have_the_floor() {
        let (log, from) = of_raw(&raw(&[7.41, 7.41], &[14.32, 14.32]));
        assert!((log.exp_m1() - FLOOR).abs() < 1e-9);
        assert!(from.starts_with("5 %"), "{from}");
    }

    #[test]
    fn minutes_are_rounded_and_one_value_is_not_trusted() {
        let (log, from) = of_raw(&raw(&[30.0], &[35.0]));
        assert!(log > FLOOR_OF_ONE.ln_1p() + 0.03 && log < 0.14, "{log}");
        assert!(from.contains("one value a side"), "{from}");
    }

    #[test]
    fn the_step_of_printed_values_is_read_from_them_or_said() {
        assert!((half_step(&[7.03, 6.9], None) - 0.005).abs() < 1e-12);
        assert!((half_step(&[35.0], None) - 0.5).abs() < 1e-12);
        assert!((half_step(&[35.0], Some(5.0)) - 2.5).abs() < 1e-12);
    }
}
