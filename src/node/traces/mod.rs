//! Spans of runs and calls for an OpenTelemetry collector. A call's span has the ids that the handler got in
//! `traceparent`, so that the spans of the handler hang below it.

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod handler;
#[cfg(feature = "otlp")]
mod span;

use std::sync::Arc;

use tokio::runtime::Handle;

#[cfg(feature = "otlp")]
use self::{collector::Collector, handler::Recorded};
use windrow_config::Config;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::HandlerFactory;

/// Recording of spans; off without a collector.
#[derive(Clone, Default)]
pub(crate) struct Tracing(#[cfg(feature = "otlp")] Option<Arc<Collector>>);

#[cfg(feature = "otlp")]
impl Tracing {
    /// Checks that the URL, the file with headers and the certificates can be used.
    ///
    /// # Errors
    /// A sentence for people if they can't.
    pub(crate) fn look(config: &Config) -> Result<(), String> {
        collector::look(config)
    }

    /// Connects to the configured collector; sends nothing yet.
    ///
    /// # Errors
    /// A sentence for people if the URL or the file with headers can't be used.
    pub(crate) fn open(
        config: &Config,
        node: &str,
        with: (&Arc<dyn Clock>, &Handle),
    ) -> Result<Tracing, String> {
        let url = config.telemetry.traces_url.as_deref();
        let opened = url.map(|url| Collector::open(url, config, node, with).map(Arc::new));
        Ok(Tracing(opened.transpose()?))
    }

    /// Returns the factory with its runs and calls recorded.
    pub(crate) fn wrap(&self, inner: Arc<dyn HandlerFactory>) -> Arc<dyn HandlerFactory> {
        match self.0.clone() {
            Some(collector) => Arc::new(Recorded { inner, collector }),
            None => inner,
        }
    }

    /// Sends what is recorded, and nothing from then on.
    pub(crate) async fn end(self) {
        if let Some(collector) = self.0 {
            collector.end().await;
        }
    }
}

/// Stand-in of a program without OTLP, whose configuration refuses a collector.
#[cfg(not(feature = "otlp"))]
impl Tracing {
    pub(crate) fn look(_: &Config) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn open(_: &Config, _: &str, _: (&Arc<dyn Clock>, &Handle)) -> Result<Tracing, String> {
        Ok(Tracing())
    }

    pub(crate) fn wrap(&self, inner: Arc<dyn HandlerFactory>) -> Arc<dyn HandlerFactory> {
        inner
    }

    pub(crate) async fn end(self) {}
}
