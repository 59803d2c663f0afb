/** @file Newest and active tasks from the stream: one list for all pages, with recent rates. */
import { signal } from '../../vendor/preact-htm.js';
import { listen } from './live.js';

const HISTORY_MAX = 60;
/** Minimum interval between two points of a history. */
const HISTORY_EVERY_MS = 900;

/**
 * Tasks by id; null until the stream has sent them.
 * @type {import('@preact/signals').Signal<Map<string, any> | null>}
 */
export const tasks = signal(null);

/** Incremented when a task appears, ends or changes its status. */
export const changes = signal(0);

/** @type {Map<string, {at: number, rates: number[]}>} */
const histories = new Map();

/** Attempts per second as measured by the node; null if the task doesn't run or the rate isn't known. */
export function rateOf(task) {
  return task.status === 'running' || task.status === 'stopping' ? task.actual_rate ?? null : null;
}

/** Rates of the last minute, for a sparkline. */
export const historyOf = (id) => histories.get(id)?.rates ?? [];

/** Appends a task's rate to its history. */
function remember(task) {
  const at = Date.now();
  const known = histories.get(task.id) ?? { at: 0, rates: [] };
  if (task.actual_rate == null || at - known.at < HISTORY_EVERY_MS) return;
  histories.set(task.id, { at, rates: [...known.rates, task.actual_rate].slice(-HISTORY_MAX) });
}

function begin(list) {
  tasks.value = new Map(list.map((task) => [task.id, task]));
  for (const id of histories.keys()) if (!tasks.value.has(id)) histories.delete(id);
  list.filter((task) => task.live).forEach(remember);
  changes.value += 1;
}

function measure(list) {
  const next = new Map(tasks.value);
  for (const numbers of list) {
    const old = next.get(numbers.id);
    if (!old) continue;
    const { window, concurrency, high_water, latency_p95_seconds, stall, autopilot, ...rest } = numbers;
    const live = { ...old.live, window, concurrency, high_water, latency_p95_seconds, stall, autopilot };
    const task = { ...old, ...rest, live };
    next.set(numbers.id, task);
    remember(task);
  }
  tasks.value = next;
}

function hear(kind, data) {
  if (kind === 'snapshot') begin(data.tasks);
  if (!tasks.value) return;
  if (kind === 'stats') measure(data.tasks);
  if (kind === 'status') {
    const next = new Map(tasks.value);
    const { next_at: at, ...rest } = data;
    const old = next.get(data.id);
    if (old) next.set(data.id, { ...old, status_text_message: null, ...rest, next: old.next && at ? { ...old.next, at } : null });
    tasks.value = next;
    changes.value += 1;
  }
}

let hearers = 0;
let end = () => {};

/** Keeps the list fresh until the returned function is called. */
export function keepTasks() {
  hearers += 1;
  if (hearers === 1) end = listen('tasks', hear);
  return () => {
    hearers -= 1;
    if (!hearers) end();
  };
}
