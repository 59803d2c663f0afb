//! Connection to an OpenTelemetry collector (OTLP over HTTP). Spans are sent in batches by a thread of their own; a full
//! queue drops them, so that no call ever waits for a collector.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanProcessor};
use tokio::runtime::Handle;

use windrow_config::Config;
use windrow_core::items::trace::Sampling;
use windrow_engine::ports::clock::Clock;
use windrow_host::secret_file::SecretFile;
use windrow_net::{OtlpSender, Outbound, OwnClient, checked_url, is_header, tls};

/// Time for a batch, with its repeats.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time at the end of a node for the spans that are left.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// Rules for the file with headers.
const HEADERS: SecretFile = SecretFile {
    what: "file with headers",
    setting: "telemetry.traces_headers_file",
    form: "has a line that is no header; write one a line: Authorization: Bearer ...",
    refused: 0o006,
};

/// Receiver of the spans of a node.
pub(crate) struct Collector {
    processor: BatchSpanProcessor,
    /// Share of the items whose calls are recorded.
    pub(crate) sampling: Sampling,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Collector {
    /// Creates the connection and the thread that sends.
    ///
    /// # Errors
    /// A sentence for people if the URL, the certificates or the file with headers can't be used.
    pub(crate) fn open(
        url: &str,
        config: &Config,
        node: &str,
        (clock, runtime): (&Arc<dyn Clock>, &Handle),
    ) -> Result<Collector, String> {
        let sender = OtlpSender::new(OwnClient::new(trust(url, config)?), runtime);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_endpoint(url)
            .with_timeout(PATIENCE)
            .with_headers(headers(config.telemetry.traces_headers_file.as_deref())?)
            .build()
            .map_err(|why| format!("telemetry.traces_url can't be used: {why}"))?;
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource(node));
        Ok(Collector {
            processor,
            sampling: Sampling {
                ppm: config.telemetry.traces_sample.ppm,
            },
            clock: clock.clone(),
        })
    }

    /// Takes a finished span; drops it if too many wait.
    pub(crate) fn take(&self, span: SpanData) {
        self.processor.on_end(span);
    }

    /// Sends the spans that are left, within a bound.
    pub(super) async fn end(self: Arc<Self>) {
        let sent =
            tokio::task::spawn_blocking(move || self.processor.shutdown_with_timeout(END_PATIENCE)).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::warn!(%why, "last spans not sent"),
            Err(why) => tracing::error!(%why, "sending of spans panicked"),
        }
    }
}

/// Checks the URL, the certificates if it needs them, and the file with headers.
pub(super) fn look(config: &Config) -> Result<(), String> {
    if let Some(url) = config.telemetry.traces_url.as_deref() {
        let parsed = checked_url(url).map_err(|why| format!("telemetry.traces_url can't be used: {why}"))?;
        // An exporter that is given a URL adds no path to it.
        if parsed.path() == "/" {
            return Err("telemetry.traces_url has no path; collectors take spans at /v1/traces".to_owned());
        }
        trust(url, config)?;
    }
    headers(config.telemetry.traces_headers_file.as_deref()).map(drop)
}

/// Returns the trust for https; reading the system's certificates takes a while.
fn trust(url: &str, config: &Config) -> Result<Option<rustls::ClientConfig>, String> {
    let options = Outbound {
        ca_file: config.http_handler.ca_file.clone(),
        ..Outbound::default()
    };
    let is_https = url.starts_with("https:");
    is_https.then(|| tls::config(&options)).transpose()
}

fn headers(file: Option<&Path>) -> Result<HashMap<String, String>, String> {
    let Some(file) = file else {
        return Ok(HashMap::new());
    };
    let text = HEADERS.read(file).map_err(|why| why.to_string())?;
    let mut headers = HashMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let header = line
            .split_once(':')
            .map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = header.filter(|(name, value)| is_header(name, value)) else {
            return Err(HEADERS.malformed(file).to_string());
        };
        headers.insert(name.to_owned(), value.to_owned());
    }
    Ok(headers)
}

/// Describes the node, as collectors group spans.
fn resource(node: &str) -> Resource {
    Resource::builder()
        .with_service_name("windrow")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", node.to_owned()),
        ])
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_no_collector_has_and_a_line_that_is_no_header_are_refused() {
        let mut config = Config::default();
        let fault = |config: &Config| look(config).err().unwrap_or_default();
        assert_eq!(fault(&config), "");
        for (url, why) in [
            ("http://127.0.0.1:4318", "no path"),
            ("http://127.0.0.1:99999/v1/traces", "port"),
            ("http://ops:pw@127.0.0.1:4318/v1/traces", "user or password"),
        ] {
            config.telemetry.traces_url = Some(url.to_owned());
            assert!(fault(&config).contains(why), "{url}: {}", fault(&config));
        }
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("headers");
        config.telemetry.traces_url = Some("http://127.0.0.1:4318/v1/traces".to_owned());
        config.telemetry.traces_headers_file = Some(file.clone());
        assert!(
            fault(&config).contains("traces_headers_file"),
            "{}",
            fault(&config)
        );
        std::fs::write(&file, "no header").expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).expect("its owner's");
        assert!(fault(&config).contains("is no header"), "{}", fault(&config));
        std::fs::write(&file, "Authorization: Bearer x\n\nX-Team: push\n").expect("written");
        assert_eq!(fault(&config), "");
    }
}
