//! Random numbers by position: the i-th draw of a row of a column, computed without its predecessors.
//!
//! A column has a 64-bit key, `xxh3_64(column name, seed)`. A row's state is `mix64(key + row * GOLDEN)`, and
//! draw `i` (from 1) of the row is `mix64(state + i * GOLDEN)`: each row is a splitmix64 sequence (Steele, Lea and
//! Flood, "Fast splittable pseudorandom number generators", 2014; `mix64` is their finaliser with Stafford's
//! variant 13 constants) that starts at a mixed place. Integers only, so it is the same on every platform.

use xxhash_rust::xxh3::xxh3_64_with_seed;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// 2 to the power of -53: the distance of two neighbouring results of [`Draws::unit`].
const UNIT_STEP: f64 = 1.0 / 9_007_199_254_740_992.0;

#[inline]
pub(super) fn mix64(state: u64) -> u64 {
    let first = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    second ^ (second >> 31)
}

/// The random numbers of one column, or of a part of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of a column.
    pub(super) fn of_column(seed: u64, name: &str) -> Self {
        Self { key: xxh3_64_with_seed(name.as_bytes(), seed) }
    }

    /// The stream of a named part, such as a key of an object.
    pub(super) fn named(self, name: &str) -> Self {
        Self::of_column(self.key, name)
    }

    /// The stream of a numbered part, such as an element of an array.
    pub(super) fn numbered(self, number: u64) -> Self {
        Self { key: mix64(self.key ^ mix64(number.wrapping_add(GOLDEN))) }
    }

    /// The key itself, for a permutation.
    pub(super) fn key(self) -> u64 {
        self.key
    }

    /// The draws of a row.
    #[inline]
    pub(super) fn at(self, row: u64) -> Draws {
        Draws { state: mix64(self.key.wrapping_add(row.wrapping_mul(GOLDEN))) }
    }
}

/// The draws of one row, in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    state: u64,
}

impl Draws {
    /// 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix64(self.state)
    }

    /// 128 random bits.
    pub(super) fn wide_bits(&mut self) -> u128 {
        let high = u128::from(self.bits());
        (high << 64) | u128::from(self.bits())
    }

    /// A number of `0..span`; `span` is at least 1.
    ///
    /// Up to 64 bits by multiplication (bias below `span / 2^64`), above by masking and rejection.
    pub(super) fn below(&mut self, span: u128) -> u128 {
        if span <= 1 << 64 {
            return (u128::from(self.bits()) * span) >> 64;
        }
        let mask = u128::MAX >> (span - 1).leading_zeros();
        loop {
            let candidate = self.wide_bits() & mask;
            if candidate < span {
                return candidate;
            }
        }
    }

    /// A number of `0..=last`.
    pub(super) fn up_to(&mut self, last: u32) -> u32 {
        u32::try_from(self.below(u128::from(last) + 1)).unwrap_or(last)
    }

    /// A float of `[0, 1)`, a multiple of 2^-53.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in a float")]
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * UNIT_STEP
    }

    /// A float of `(0, 1]`, for logarithms.
    pub(super) fn positive_unit(&mut self) -> f64 {
        self.unit() + UNIT_STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_seed_name_and_row_only() {
        let stream = Stream::of_column(7, "id");
        assert_eq!(stream.at(3).bits(), Stream::of_column(7, "id").at(3).bits());
        let others = [Stream::of_column(8, "id").at(3), Stream::of_column(7, "ie").at(3), stream.at(4)];
        for mut other in others {
            assert_ne!(other.bits(), stream.at(3).bits());
        }
    }

    #[test]
    fn below_stays_inside_and_reaches_both_ends() {
        let mut draws = Stream::of_column(1, "x").at(0);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[usize::try_from(draws.below(7)).expect("below 7")] += 1;
        }
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        let span = (1_u128 << 100) + 3;
        assert!((0..100).all(|_| draws.below(span) < span));
        assert_eq!(draws.below(1), 0);
    }

    #[test]
    fn unit_has_mean_one_half() {
        let mut draws = Stream::of_column(1, "x").at(0);
        let sum: f64 = (0..100_000).map(|_| draws.unit()).sum();
        assert!((sum / 100_000.0 - 0.5).abs() < 0.005);
        assert!((0..1000).all(|_| draws.positive_unit() > 0.0));
    }
}
