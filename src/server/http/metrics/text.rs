//! Prometheus's text format: families with HELP and TYPE, followed by their samples.

use std::fmt::Write as _;
use std::time::Duration;

use super::families::{Family, Kind};
use windrow_core::stats::histogram::Histogram;

/// Bucket bounds to show, ascending, in microseconds. Each must be a bound of the histogram itself.
pub(super) type Bounds = [u64];

/// Value of a sample, as a float.
pub(super) trait Number {
    fn number(self) -> f64;
}

impl Number for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Number for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// Metrics page under construction.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Writes a family with one sample and no labels.
    pub(super) fn one(&mut self, family: Family, value: impl Number) {
        self.all(family, [([], value)]);
    }

    /// Writes a family whose samples differ in one label.
    pub(super) fn by<'a, V: Number>(
        &mut self,
        family: Family,
        label: &'static str,
        samples: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        let samples = samples.into_iter();
        self.all(family, samples.map(|(value, number)| ([(label, value)], number)));
    }

    /// Writes a family of samples with their labels.
    pub(super) fn all<'a, const N: usize, V: Number>(
        &mut self,
        family: Family,
        samples: impl IntoIterator<Item = ([(&'static str, &'a str); N], V)>,
    ) {
        self.begin(family);
        for (labels, value) in samples {
            self.sample(family.name, "", &labels, value);
        }
    }

    /// Writes a family of histograms with their labels, with buckets up to these bounds.
    pub(super) fn histograms<'a, const N: usize>(
        &mut self,
        family: Family,
        bounds: &Bounds,
        all: impl IntoIterator<Item = ([(&'static str, &'a str); N], &'a Histogram)>,
    ) {
        self.begin(family);
        for (labels, of) in all {
            let buckets = bounds
                .iter()
                .map(|micros| (*micros as f64 / 1e6, of.below(Duration::from_micros(*micros))));
            self.histogram(family, &labels, buckets, of.count(), of.sum_seconds());
        }
    }

    /// Begins a family; its samples must follow immediately.
    pub(super) fn begin(&mut self, Family { name, kind, help }: Family) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to a String never fails.
        write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n").ok();
    }

    /// Adds a histogram to the current family: cumulative buckets, sum and count.
    pub(super) fn histogram(
        &mut self,
        family: Family,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum_seconds: f64,
    ) {
        for (bound, below) in buckets {
            let bound = bound.to_string();
            self.sample(
                family.name,
                "_bucket",
                &[labels, &[("le", &bound)]].concat(),
                below,
            );
        }
        self.sample(
            family.name,
            "_bucket",
            &[labels, &[("le", "+Inf")]].concat(),
            count,
        );
        self.sample(family.name, "_sum", labels, sum_seconds);
        self.sample(family.name, "_count", labels, count);
    }

    fn sample(&mut self, name: &str, end: &str, labels: &[(&str, &str)], value: impl Number) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        writeln!(self.0, "{name}{end}{labels} {}", value.number()).ok();
    }

    /// Returns the finished page as text.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
