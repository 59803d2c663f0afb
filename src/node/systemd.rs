//! Notifications to the service manager, if there is one.

use std::time::Duration;

use sd_notify::NotifyState;

fn tell(state: &[NotifyState<'_>]) {
    // A no-op without a service manager; a failed notification must not end the node.
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "service manager not notified");
    }
}

/// Reports that the node is serving.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the node is reloading its configuration; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "service manager not notified of the reload"),
    }
}

/// Reports that the node will end within this time.
pub fn stopping(within: Duration, status: &str) {
    let micros = u32::try_from(within.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::Status(status),
        NotifyState::ExtendTimeoutUsec(micros),
    ]);
}

/// Reports the node's current activity.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// Reports that the node is alive.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// Returns the interval for reporting that the node is alive, half of the watchdog timeout; `None` without a
/// watchdog.
pub fn pulse() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|patience| patience / 2)
}
