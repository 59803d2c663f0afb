/** @file What can be said of a task from what the API says of it. Pure. */
import { perSecond, span } from './format.js';

/** Items that are done with, one way or another. */
export const settled = (counts) => counts.succeeded + counts.skipped + counts.failed;

/** Items that are still to be done. */
export const left = (counts) => counts.pending + counts.parked + counts.in_flight;

/** Items that were given up and that a redrive then settled. */
export const recovered = (task) => task.redriven?.recovered ?? 0;

/** Whether redrives settled all that a task gave up, for certain: sums that may count an item twice say nothing. */
export const isRecovered = (task) => recovered(task) > 0 && task.redriven.still_failed === 0 && task.redriven.exact;

/** Whether a task has ended for good. */
export const hasEnded = (task) => task.status === 'finished' || task.status === 'cancelled';

/** What a task is called: its name, or its number where it has none. */
export const title = (task) => task.name ?? task.id;

/** What may be done to a task, by its status. The node decides; this is what is worth offering. */
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

/** Seconds that are left, as the node says; null where that can't be said. */
export const secondsLeft = (task) => (task.status === 'running' ? task.eta_seconds ?? null : null);

/** Whether what is left takes at least so long, and nobody knows how much longer: the retries of parked items follow no rate. */
export const isLeast = (task) => task.counts.parked > 0;

/** The seconds that are left, for people: `21m`, and `21m+` where that is the least. */
export function timeLeft(task) {
  const seconds = secondsLeft(task);
  return span(seconds) + (seconds != null && isLeast(task) ? '+' : '');
}

/** The rate that a task is to have, in items per second; null where nothing limits it. */
export const target = (task) => perSecond(task.rate);

/** Whether an open task has sent every item that it has: nothing is wrong, more may come. */
export const waitsForItems = (task) => task.status === 'running' && task.live?.stall === 'items' && !task.handler_down;

/** Whether a task goes slower than it is to. */
export function isSlow(task, actual) {
  const wanted = target(task);
  return task.status === 'running' && !waitsForItems(task) && wanted != null && actual != null && actual < wanted * 0.97;
}
