//! What the service manager is told, where there is one.

use std::time::Duration;

use sd_notify::NotifyState;

fn tell(state: &[NotifyState<'_>]) {
    // Without a service manager this does nothing; one that doesn't listen must not end the node.
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager was not told");
    }
}

/// The node serves.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The node reads its configuration anew; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the service manager was not told of the reload"),
    }
}

/// The node ends within this time.
pub fn stopping(within: Duration, status: &str) {
    let micros = u32::try_from(within.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::Status(status),
        NotifyState::ExtendTimeoutUsec(micros),
    ]);
}

/// What the node is up to.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// The node lives.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often the service manager wants to hear that the node lives: half of its patience. None when it doesn't.
pub fn pulse() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|patience| patience / 2)
}
