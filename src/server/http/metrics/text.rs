//! Prometheus's text format: families with HELP and TYPE, samples below them.

use std::fmt::Write as _;

use windrow_core::stats::histogram::Histogram;

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations by size.
    Histogram,
}

/// Which bounds of a histogram are shown: powers of two of nanoseconds, the last one included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// A page under construction.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
}

/// Where the samples of one family go.
pub(super) struct Family<'a> {
    page: &'a mut Page,
    name: &'static str,
}

impl Page {
    /// Begins a family; its samples follow at once.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // A String takes whatever is written.
        write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n").ok();
        Family { page: self, name }
    }

    /// A family of one sample without labels.
    pub(super) fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    /// Adds a histogram: its buckets, its sum and its count.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], of: &Histogram, span: Span) {
        for octave in span.first..=span.last {
            let bound = ((1u64 << octave) as f64 / 1e9).to_string();
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.line("_bucket", &labels, of.below(octave) as f64);
        }
        self.line(
            "_bucket",
            &[labels, &[("le", "+Inf")]].concat(),
            of.count() as f64,
        );
        self.line("_sum", labels, of.sum_seconds());
        self.line("_count", labels, of.count() as f64);
    }

    fn line(&mut self, end: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        writeln!(self.page.text, "{}{end}{labels} {value}", self.name).ok();
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
