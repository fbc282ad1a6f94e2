//! A seeded bijection of `0..size`: a Feistel network with cycle walking.
//!
//! Black and Rogaway, "Ciphers with arbitrary finite domains" (2002): a permutation of the next power of four is
//! applied again until the result falls inside the domain, at most four times on average. Any row can be asked for alone.

use super::random::{Stream, mix64};

const ROUNDS: usize = 4;

/// A permutation of `0..size`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permutation {
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation a stream stands for.
    pub(super) fn new(size: u64, stream: Stream) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        let mut keys = [0; ROUNDS];
        for (round, key) in (0..).zip(&mut keys) {
            *key = stream.numbered(round).key();
        }
        Self { size, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Where `index` goes; an index outside of the domain stays where it is.
    pub(super) fn at(&self, index: u64) -> u64 {
        if index >= self.size {
            return index;
        }
        let mut place = self.network(index);
        while place >= self.size {
            place = self.network(place);
        }
        place
    }

    fn network(&self, index: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (index >> self.half_bits, index & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix64(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_size_is_a_bijection() {
        for size in [1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097] {
            let permutation = Permutation::new(size, Stream::of_column(5, "p"));
            let seen: HashSet<u64> = (0..size).map(|index| permutation.at(index)).collect();
            assert_eq!(seen.len() as u64, size);
            assert!(seen.iter().all(|place| *place < size));
        }
    }

    #[test]
    fn the_largest_domain_works_and_seeds_differ() {
        let one = Permutation::new(u64::MAX, Stream::of_column(1, "p"));
        let two = Permutation::new(u64::MAX, Stream::of_column(2, "p"));
        assert!(one.at(u64::MAX - 1) < u64::MAX);
        assert_ne!(one.at(0), two.at(0));
        assert_eq!(one.at(u64::MAX), u64::MAX);
        assert_eq!(Permutation::new(0, Stream::of_column(1, "p")).at(3), 3);
    }
}
