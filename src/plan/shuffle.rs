//! The seeded order inside a block.
//!
//! Order is part of an experiment's record, so the generator is written out here and pinned by a test: no
//! update of a crate can change it.
//!
//! The generator is counter-based `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014, with Stafford's variant 13 of the mixer): output `i` of the stream of a key is
//! `mix(key + (i + 1) * GOLDEN)`, and the key of a block is `mix(mix(seed) + (block + 1) * GOLDEN)`.

/// The odd number nearest to 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Tells the streams of control trials from those of orders: the bytes of `controls`.
const CONTROL: u64 = u64::from_be_bytes(*b"controls");

/// A stream of pseudo-random numbers; a pure function of seed and block.
struct Stream {
    state: u64,
}

impl Stream {
    fn new(seed: u64, block: u32) -> Self {
        let step = GOLDEN.wrapping_mul(u64::from(block) + 1);
        Self { state: mix(mix(seed).wrapping_add(step)) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Evenly distributed below `bound`, which is not 0 (Lemire, "Fast random integer generation in an
    /// interval", 2019: multiply, and reject the few numbers that would make some results likelier).
    fn below(&mut self, bound: u64) -> u64 {
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            let [high, low] = halves(product);
            if low >= rejected {
                return high;
            }
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of 128 bits are 64 bits each")]
fn halves(product: u128) -> [u64; 2] {
    [(product >> 64) as u64, product as u64]
}

/// The numbers `0..count` in the order of a block (Fisher and Yates, from the end).
pub(super) fn permutation(count: u32, seed: u64, block: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut stream = Stream::new(seed, block);
    for last in (1..order.len()).rev() {
        let chosen = stream.below(last as u64 + 1);
        order.swap(last, usize::try_from(chosen).expect("it is at most an index"));
    }
    order
}

/// Place of a block's control trial among its `count` other trials: 0 is before the first, `count` after the last. A stream
/// of its own gives it, so that the order of the others is the same with and without it.
pub(super) fn control_place(count: usize, seed: u64, block: u32) -> usize {
    let place = Stream::new(seed ^ CONTROL, block).below(count as u64 + 1);
    usize::try_from(place).expect("it is at most the count")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixer_is_splitmix64() {
        // First outputs for seed 1234567 of Vigna's reference implementation splitmix64.c.
        let mut stream = Stream { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| stream.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_place_is_equally_likely() {
        // 6000 blocks of 3: each of the 6 orders is expected 1000 times, standard deviation 29.
        let mut counts = std::collections::BTreeMap::new();
        for block in 0..6000 {
            *counts.entry(permutation(3, 42, block)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (870..1130).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_control_trial_stands_anywhere_in_its_block() {
        // 4000 blocks of 3 and a control: each of 4 places is expected 1000 times, standard deviation 27.
        let mut counts = [0; 4];
        (0..4000).for_each(|block| counts[control_place(3, 42, block)] += 1);
        assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
    }

    #[test]
    fn small_blocks_work() {
        assert_eq!(permutation(0, 1, 0), Vec::<u32>::new());
        assert_eq!(permutation(1, 1, 0), [0]);
    }
}
