//! Spans of a run: their ids, names and attributes.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId as OtelTraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::handler::CallResult;
use windrow_core::ids::{Attempt, ItemIndex, Moment};
use windrow_core::items::trace::{TraceId, Traces};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::RunContext;

/// Facts that all spans of a run have.
pub(super) struct RunFacts {
    context: SpanContext,
    business: String,
    key_head: String,
    attributes: Vec<KeyValue>,
}

impl RunFacts {
    pub(super) fn of(run: &RunContext) -> RunFacts {
        // A redrive's items keep the traces of the first task; its runs are its own.
        let traces = Traces::of(&run.store, run.shard.task).sampled(run.sampling);
        let trace = traces.runs(run.shard.no);
        let mut attributes = vec![
            KeyValue::new("windrow.business", run.business.clone()),
            KeyValue::new("windrow.task", run.shard.task.0),
            KeyValue::new("windrow.shard", i64::from(run.shard.no)),
            KeyValue::new("windrow.run", i64::from(run.run.0)),
            KeyValue::new("windrow.mode", run.mode.as_str()),
        ];
        let name = run.task_name.clone();
        attributes.extend(name.map(|name| KeyValue::new("windrow.task.name", name)));
        RunFacts {
            context: context(trace, trace.span(run.run.0.into())),
            business: run.business.clone(),
            key_head: run.item_key_head(),
            attributes,
        }
    }

    /// Returns the span of the run.
    pub(super) fn run(&self, (from, to): (Moment, Moment), clock: &dyn Clock) -> SpanData {
        SpanData {
            span_context: self.context.clone(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: Cow::Owned(format!("run {}", self.business)),
            start_time: time(clock, from),
            end_time: time(clock, to),
            attributes: self.attributes.clone(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder("windrow").build(),
        }
    }

    /// Returns the span of an item's attempt, linked to that of the run.
    pub(super) fn call(
        &self,
        (trace, index, attempt): (TraceId, ItemIndex, Attempt),
        size: usize,
        (span, clock): ((Moment, Moment), &dyn Clock),
        result: CallResult,
    ) -> SpanData {
        let mut data = self.run(span, clock);
        data.span_context = context(trace, trace.span(u64::from(attempt.get())));
        data.span_kind = SpanKind::Client;
        data.name = Cow::Owned(format!("call {}", self.business));
        data.links
            .links
            .push(Link::new(self.context.clone(), Vec::new(), 0));
        data.attributes.extend([
            KeyValue::new("windrow.item.index", number(index.0)),
            KeyValue::new("windrow.item.key", format!("{}{}", self.key_head, index.0)),
            KeyValue::new("windrow.attempt", i64::from(attempt.get())),
            KeyValue::new("windrow.call.items", number(size as u64)),
        ]);
        match result {
            Ok(outcome) => data.attributes.push(KeyValue::new("windrow.outcome", outcome)),
            Err(error) => {
                if error.is_repeated {
                    // The attempt's id belongs to the call that counts; this one stands below it.
                    data.parent_span_id = data.span_context.span_id();
                    let began = u64::try_from(clock.wall_micros(span.0)).unwrap_or(0);
                    data.span_context = context(trace, trace.span(began));
                }
                data.status = Status::error(error.code.clone());
                data.attributes
                    .push(KeyValue::new("error.type", error.code.into_owned()));
            }
        }
        data
    }
}

fn context(trace: TraceId, span: u64) -> SpanContext {
    let (trace, span) = (OtelTraceId::from(trace.number()), SpanId::from(span));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

/// Returns the number as an attribute, which has 63 bits.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn time(clock: &dyn Clock, moment: Moment) -> SystemTime {
    let micros = u64::try_from(clock.wall_micros(moment)).unwrap_or(0);
    UNIX_EPOCH + Duration::from_micros(micros)
}
