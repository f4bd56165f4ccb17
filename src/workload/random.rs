//! Random numbers from fixed seeds: the same ones in every process and every run.
//!
//! There are two generators. Recorded results depend on the numbers of both, so neither can
//! take the other's place.

/// The step of SplitMix64's counter: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the contents of buffers, samples and
/// suppositions.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the number at `index` of the stream of `seed` without those before it.
    pub fn number_at(seed: u64, index: u64) -> u64 {
        Random(seed.wrapping_add(index.wrapping_mul(STEP))).next_u64()
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number of the uniform distribution over [0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        self.next_u64() as f64 / u64::MAX as f64
    }

    /// Returns a number of about the normal distribution: the sum of twelve uniform ones.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The orders in which candidates are timed, by xorshift64* (Vigna 2016).
///
/// A replayed measurement takes its noise by the number of the sample, so that its results
/// depend on these orders.
pub(crate) struct Order(u64);

impl Order {
    pub fn new(seed: u64, jobs: usize) -> Self {
        Order((seed ^ jobs as u64).wrapping_mul(STEP) | 1)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Shuffles the items as Fisher and Yates do.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = (u128::from(self.next_u64()) * (last as u128 + 1)) >> 64;
            items.swap(last, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.next_u64()), expected);
        assert_eq!([0, 1, 2].map(|index| Random::number_at(1_234_567, index)), expected);
    }
}
