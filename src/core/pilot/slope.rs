//! Slope of latency over calls in flight, from pairs of rounds.

/// Least contrast of two rounds that says anything. Unit: octaves.
const CONTRAST: f64 = 0.05;
/// Bounds of one pair's slope, so that one of them never decides.
const BOUNDS: (f64, f64) = (-1.0, 2.5);

/// Mean slope of pairs of rounds, weighted by the square of their contrast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    memory: f64,
    sum: f64,
    weight: f64,
}

impl Slope {
    pub(super) fn new(memory: f64) -> Slope {
        Slope {
            memory,
            sum: 0.0,
            weight: 0.0,
        }
    }

    pub(super) fn add(&mut self, slope: f64, contrast: f64) {
        let weight = contrast * contrast;
        self.sum = self.sum * self.memory + slope * weight;
        self.weight = self.weight * self.memory + weight;
    }

    /// Returns the slope: 0 while nothing is known, else 0 for room, 1 for a queue, 2 for harm.
    pub(super) fn get(&self) -> f64 {
        if self.weight > 0.0 {
            self.sum / self.weight
        } else {
            0.0
        }
    }

    /// Returns the sum of the squares of the contrasts in memory.
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    pub(super) fn clear(&mut self) {
        (self.sum, self.weight) = (0.0, 0.0);
    }
}

/// Returns the slope between two rounds whose latencies differ by `latency` and whose calls in flight by `contrast`
/// octaves; `None` if the contrast is too small.
pub(super) fn between(latency: f64, contrast: f64) -> Option<f64> {
    (contrast.abs() > CONTRAST).then(|| (latency / contrast).clamp(BOUNDS.0, BOUNDS.1))
}
