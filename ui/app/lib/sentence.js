/** @file State of a task in one sentence. Pure. */
import { autoText, age, count, near, rate, span } from './format.js';
import { t } from './i18n.js';
import { reasonText, statusText } from './say.js';
import { isAuto, isLeast, recovered, secondsLeft, target, timeLeft, waitsForItems } from './task.js';

const since = (at, nowMs) => Math.max(0, (nowMs - Date.parse(at)) / 1000);
const progress = (task) => t('{done} of {total} items', { done: count(task.progress?.settled), total: count(task.progress?.of) });

/** Present rate beside the wanted one: `19.9 of 20/s`. */
function speed(task) {
  if (isAuto(task)) return `${rate(task.actual_rate)}/s (${autoText(task.rate)})`;
  return t('{now} of {rate}', { now: rate(task.actual_rate), rate: task.rate === 'unlimited' ? t('unlimited') : `${rate(target(task))}/s` });
}

function running(task, nowMs) {
  if (waitsForItems(task)) return t('All added items have been sent. The task waits for more, or to be sealed.');
  const { handler_down: down } = task;
  if (down) return statusText(task) ?? t('The handler has been down for {span}: {why}', { span: span(since(down.since, nowMs)), why: down.example ?? down.code ?? down.class ?? '' });
  const values = { items: progress(task), speed: speed(task), span: timeLeft(task), time: near(nowMs + (secondsLeft(task) ?? 0) * 1000) };
  const usual = secondsLeft(task) == null ? t('{items}, {speed}', values)
    : isLeast(task) ? t('{items}, {speed}; {span} left, done at {time} at the earliest', values) : t('{items}, {speed}; {span} left, done at about {time}', values);
  return statusText(task) ? `${usual}. ${statusText(task)}` : usual;
}

function stopped(task, ago) {
  if (task.stop_reason === 'canary_done') return t('The canary is done. Review its results, then resume the task.');
  const why = statusText(task) ?? t('stopped: {reason}', { reason: reasonText(task.stop_reason) });
  return t('{why} ({age} ago), at {items}', { why, age: ago, items: progress(task) });
}

function finished(task, ago) {
  const took = task.started_at && span((Date.parse(task.finished_at) - Date.parse(task.started_at)) / 1000);
  return [
    progress(task),
    task.counts.failed > 0 && t('{n} failed', { n: count(task.counts.failed) }),
    recovered(task) > 0 && t('{n} recovered by redrives', { n: count(recovered(task)) }),
    took ? t('ended {age} ago after {span}', { age: ago, span: took }) : t('ended {age} ago', { age: ago }),
  ].filter(Boolean).join(t(', '));
}

const SENTENCES = {
  created: (task) => t('Not started: {n:item|items}', { n: count(task.total) }),
  queued: (task, ago) => (task.next?.action === 'start' ? t('Starts at {time}', { time: near(Date.parse(task.next.at)) }) : t('Queued for {age}: {why}', { age: ago, why: statusText(task) ?? t('no node has free capacity') })),
  awaiting_business: (task, ago) => t('{business} has not reported that it is ready, {age} so far', { business: task.business, age: ago }),
  recovering: (task) => statusText(task) ?? t('run failed; retrying'),
  stopping: (task) => t('{n:call|calls} in flight finish first', { n: count(task.counts.in_flight) }),
  finalizing: () => t('All items are settled; hooks and publication follow'),
  stopped,
  finished,
  cancelled: finished,
};

/** Sentence about a task at a time. */
export function sentence(task, nowMs) {
  if (task.stale) return t('Data is stale: the node cannot reach its database.');
  if (task.status === 'running') return running(task, nowMs);
  return SENTENCES[task.status]?.(task, age(since(task.finished_at ?? task.since, nowMs))) ?? task.status;
}

/** Tone of the sentence: `bad` needs a person, `warn` waits, else none. */
export function tone(task) {
  const isCalm = ['operator', 'business', 'canary_done'].includes(task.stop_reason);
  if (task.handler_down || task.stale || (task.status === 'stopped' && !isCalm)) return 'bad';
  if (waitsForItems(task)) return null;
  return (task.status === 'running' && statusText(task)) || ['queued', 'awaiting_business', 'recovering'].includes(task.status) ? 'warn' : null;
}
