//! Commands that a business may include: `stop`, `finish`, `pause_for`, `slow_down`.

use serde::Deserialize;

use super::{Span, bad_reply, parse_object};
use windrow_core::ids::{INDEX_MAX, ItemCount};
use windrow_core::items::verdict::{Failure, HandlerCommand, MESSAGE_BYTES_MAX, cut};

/// Parses the `command` line of a worker.
///
/// # Errors
/// A failure with code [`super::BAD_REPLY`].
pub fn parse_command(bytes: &[u8]) -> Result<HandlerCommand, Failure> {
    let body: CommandBody = parse_object(bytes)?;
    body.check().map_err(|why| bad_reply(why, bytes))
}

/// Returns the command of a reply, if there is one.
pub(super) fn checked(body: Option<CommandBody>, bytes: &[u8]) -> Result<Vec<HandlerCommand>, Failure> {
    let command = body
        .map(CommandBody::check)
        .transpose()
        .map_err(|why| bad_reply(why, bytes))?;
    Ok(command.into_iter().collect())
}

#[derive(Deserialize)]
pub(super) struct CommandBody {
    command: CommandWord,
    reason: Option<String>,
    total: Option<u64>,
    #[serde(rename = "for")]
    lasting: Option<Span>,
    rate: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CommandWord {
    Stop,
    Finish,
    PauseFor,
    SlowDown,
}

impl CommandBody {
    fn check(self) -> Result<HandlerCommand, &'static str> {
        let reason = cut(self.reason.as_deref().unwrap_or_default(), MESSAGE_BYTES_MAX);
        let lasting = self.lasting.map(|span| span.0);
        match self.command {
            CommandWord::Stop => Ok(HandlerCommand::Stop { reason }),
            CommandWord::Finish if self.total.is_some_and(|total| total > INDEX_MAX) => {
                Err("`total` of `finish` is above 9223372036854775807")
            }
            CommandWord::Finish => Ok(HandlerCommand::Finish {
                total: self.total.map(ItemCount),
            }),
            CommandWord::PauseFor => lasting
                .map(HandlerCommand::PauseFor)
                .ok_or("`pause_for` needs `for`, such as \"30s\""),
            CommandWord::SlowDown => {
                let rate = self.rate.as_deref().and_then(|text| text.parse().ok());
                let rate = rate.ok_or("`slow_down` needs a `rate`, such as \"200/s\"")?;
                let lasting = lasting.ok_or("`slow_down` needs `for`, such as \"1m\"")?;
                Ok(HandlerCommand::SlowDown {
                    rate,
                    lasting,
                    reason,
                })
            }
        }
    }
}
