/** @file Tasks that need a person's attention. Pure. */

/** Queued for longer than this means that no node has free capacity. Seconds. */
const QUEUED_MAX = 30;
/** Maximum wait for a business to report ready before it needs attention. Seconds. */
const AWAITED_MAX = 120;

/** Reasons of stops that somebody requested. */
const CALM_STOPS = ['operator', 'business'];

function why(task, waited) {
  if (task.status === 'stopped' && task.stop_reason === 'canary_done') return { kind: 'canary', level: 'note' };
  if (task.status === 'stopped' && !CALM_STOPS.includes(task.stop_reason)) return { kind: 'stopped', level: 'bad' };
  if (task.status === 'recovering') return { kind: 'recovering', level: 'warn' };
  if (task.handler_down && task.status === 'running') return { kind: 'handler_down', level: 'bad' };
  if (task.status === 'queued' && waited > QUEUED_MAX && !task.start_at) return { kind: 'queued', level: 'warn' };
  if (task.status === 'awaiting_business' && waited > AWAITED_MAX) return { kind: 'awaited', level: 'warn' };
  if (task.status === 'finished' && task.publish?.withheld) return { kind: 'withheld', level: 'warn' };
  if (task.status === 'finished' && task.result === 'with_failures' && !task.redriven) return { kind: 'failures', level: 'note' };
  // The node clears its status text once calls succeed again; the last error stays.
  if (task.last_error && task.status_text && task.status === 'running') return { kind: 'failing', level: 'warn' };
  return null;
}

const LEVELS = ['bad', 'warn', 'note'];

/**
 * Returns the tasks that need attention, worst first.
 * @param {any[]} tasks
 * @param {number} nowMs
 * @returns {{task: any, kind: string, level: 'bad'|'warn'|'note'}[]}
 */
export function needy(tasks, nowMs) {
  return tasks
    .map((task) => ({ task, ...why(task, (nowMs - Date.parse(task.since)) / 1000) }))
    .filter((one) => one.kind)
    .sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) || (a.task.since < b.task.since ? 1 : -1));
}
