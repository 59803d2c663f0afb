//! Facts about a call beside its result: limits of the service, the use of the call.

use super::handler::Reply;
use windrow_core::execution::Usage;
use windrow_core::meter::class::End;
use windrow_core::meter::unit::Unit;
use windrow_core::pilot::headers::Limits;

/// Reply together with what the service says about its limits, and about the use of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Result of the call.
    pub reply: Reply,
    /// Limits; without windows if it describes none.
    pub limits: Limits,
    /// Use of the call by meter, in the order of the task's meters; empty if it isn't counted.
    pub used: Usage,
    /// End of the call, if the result alone doesn't say it: people may give a status another meaning.
    pub end: Option<End>,
    /// Unit and usual place from which its use is read from this call on; named once a run.
    pub place: Option<(Unit, String)>,
}

impl Reply {
    /// Adds limits that the service described; without a window the reply stays as it is, and allocates nothing.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Reply {
        if limits.windows.is_empty() {
            return self;
        }
        self.with(|told| told.limits = limits)
    }

    /// Adds the use of the call; without a meter the reply stays as it is.
    #[must_use]
    pub fn with_use(self, used: Usage) -> Reply {
        if used.is_empty() {
            return self;
        }
        self.with(|told| told.used = used)
    }

    /// Sets the end of a call whose result says another one.
    #[must_use]
    pub fn with_end(self, end: End) -> Reply {
        self.with(|told| told.end = Some(end))
    }

    /// Adds the usual place that was found, if this call found it.
    #[must_use]
    pub fn with_place(self, place: Option<(Unit, String)>) -> Reply {
        match place {
            Some(place) => self.with(|told| told.place = Some(place)),
            None => self,
        }
    }

    fn with(self, add: impl FnOnce(&mut Told)) -> Reply {
        let mut told = match self {
            Reply::Told(told) => told,
            reply => Box::new(Told {
                reply,
                limits: Limits::default(),
                used: Usage::new(),
                end: None,
                place: None,
            }),
        };
        add(&mut told);
        Reply::Told(told)
    }

    /// Replaces the result of the call and keeps what was told with it.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Reply) -> Reply) -> Reply {
        match self {
            Reply::Told(told) => Reply::Told(Box::new(Told {
                reply: change(told.reply).plain(),
                ..*told
            })),
            reply => change(reply),
        }
    }

    /// Returns the result of the call without what was told with it.
    #[must_use]
    pub fn plain(self) -> Reply {
        match self {
            Reply::Told(told) => told.reply.plain(),
            reply => reply,
        }
    }
}
