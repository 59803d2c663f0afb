/** @file Values derived from a task of the API. Pure. */
import { autoText, ceiling, isAutoRate, perSecond, rate, span } from './format.js';

/** Settled items: succeeded, skipped or failed. */
export const settled = (counts) => counts.succeeded + counts.skipped + counts.failed;

/** Items that are not settled yet. */
export const left = (counts) => counts.pending + counts.parked + counts.in_flight;

/** Failed items that a redrive recovered. */
export const recovered = (task) => task.redriven?.recovered ?? 0;

/** Returns true if redrives recovered all failed items. Inexact sums may count an item twice and prove nothing. */
export const isRecovered = (task) => recovered(task) > 0 && task.redriven.still_failed === 0 && task.redriven.exact;

/** Returns true if a task has ended. */
export const hasEnded = (task) => task.status === 'finished' || task.status === 'cancelled';

/** Title of a task: its name, or its ID if it has none. */
export const title = (task) => task.name ?? task.id;

/** Actions offered for a task by its status. The node decides; this only hides pointless ones. */
export function offers(task) {
  const { status } = task;
  const runs = ['queued', 'awaiting_business', 'running', 'recovering'].includes(status);
  return {
    start: status === 'created' || status === 'stopped',
    stop: runs,
    force: status === 'stopping',
    recover: status === 'recovering',
    cancel: !hasEnded(task),
    finish: !hasEnded(task) && settled(task.counts) > 0,
    move: status === 'running',
    edit: !hasEnded(task),
    seal: task.intake === 'open',
    remove: hasEnded(task),
  };
}

/** Remaining seconds as the node estimates them; null if it can't. */
export const secondsLeft = (task) => (task.status === 'running' ? task.eta_seconds ?? null : null);

/** Returns true if the remaining time is only a lower bound: retries of parked items follow no rate. */
export const isLeast = (task) => task.counts.parked > 0;

/** Remaining time for display: `21m`, or `21m+` if it is a lower bound. */
export function timeLeft(task) {
  const seconds = secondsLeft(task);
  return span(seconds) + (seconds != null && isLeast(task) ? '+' : '');
}

/** Target rate of a task in items per second; null if it is unlimited, or found by the autopilot. */
export const target = (task) => perSecond(task.rate);

/** Returns true if the autopilot finds the rate. */
export const isAuto = (task) => isAutoRate(task.rate);

/** Target rate for a column, without its unit: `500`, `∞` or `auto`. */
export function wantedRate(task) {
  if (isAuto(task)) return autoText(task.rate);
  return task.rate === 'unlimited' ? '∞' : rate(target(task));
}

/** Rate that a task never exceeds, in items per second: its target, or the ceiling of the autopilot; null if there is none. */
export const mostRate = (task) => target(task) ?? perSecond(ceiling(task.rate));

/** Returns true if an open task has sent all its items and waits for more, which is no fault. */
export const waitsForItems = (task) => task.status === 'running' && task.live?.stall === 'items' && !task.handler_down;

/** Returns true if a task is slower than its target. */
export function isSlow(task, actual) {
  const wanted = target(task);
  return task.status === 'running' && !waitsForItems(task) && wanted != null && actual != null && actual < wanted * 0.97;
}
