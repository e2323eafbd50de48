//! Random numbers that depend on the seed alone: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
//! Generators, 2014). A crate's generator may change its numbers with its version, and every seed ever noted with it.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds would otherwise begin with neighbouring states.
        let mut random = Self(seed.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a usize fits into 64 bits");
        usize::try_from(self.next() % bound).expect("below a usize")
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True in so many of 100 cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Some of the items, at least `least`, in their order.
    pub fn some<T: Clone>(&mut self, items: &[T], least: usize, percent: usize) -> Vec<T> {
        let mut chosen: Vec<bool> = items.iter().map(|_| self.percent(percent)).collect();
        while chosen.iter().filter(|chosen| **chosen).count() < least.min(items.len()) {
            let index = self.below(items.len());
            chosen[index] = true;
        }
        items.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(item, _)| item.clone()).collect()
    }

    /// Puts the items into another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
