/** @file The newest tasks and those under way, as the stream tells them: one list for all pages, with how fast each goes. */
import { signal } from '../../vendor/preact-htm.js';
import { listen } from './live.js';
import { settled } from './task.js';

/** Over how long a rate is measured. */
const RATE_OVER_MS = 10_000;
/** A shorter time says little: counts come once a second. */
const RATE_LEAST_MS = 5000;
const HISTORY_MAX = 60;

/**
 * Tasks by id; null until they were heard.
 * @type {import('@preact/signals').Signal<Map<string, any> | null>}
 */
export const tasks = signal(null);

/** Grows with each task that appears, ends or changes its status. */
export const changes = signal(0);

/** @type {Map<string, {at: number, settled: number}[]>} */
const samples = new Map();

/** @type {Map<string, number[]>} */
const histories = new Map();

/** Items per second that a task settled lately; null where that isn't known. */
export function rateOf(task) {
  if (task.status !== 'running' && task.status !== 'stopping') return null;
  const seen = samples.get(task.id) ?? [];
  const [first, last] = [seen[0], seen.at(-1)];
  if (!first || last.at - first.at < RATE_LEAST_MS) return task.actual_rate ?? null;
  return ((last.settled - first.settled) * 1000) / (last.at - first.at);
}

/** The rates of the last minutes, for a line as small as a word. */
export const historyOf = (id) => histories.get(id) ?? [];

function sample(task) {
  const at = Date.now();
  const seen = (samples.get(task.id) ?? []).filter((one) => at - one.at <= RATE_OVER_MS);
  const last = seen.at(-1);
  if (last && at - last.at < 900) return;
  seen.push({ at, settled: settled(task.counts) });
  samples.set(task.id, seen);
  const history = histories.get(task.id) ?? [];
  history.push(last ? ((seen.at(-1).settled - last.settled) * 1000) / (at - last.at) : 0);
  histories.set(task.id, history.slice(-HISTORY_MAX));
}

function begin(list) {
  tasks.value = new Map(list.map((task) => [task.id, task]));
  for (const of of [samples, histories]) for (const id of of.keys()) if (!tasks.value.has(id)) of.delete(id);
  list.filter((task) => task.live).forEach(sample);
  changes.value += 1;
}

function measure(list) {
  const next = new Map(tasks.value);
  for (const numbers of list) {
    const old = next.get(numbers.id);
    if (!old) continue;
    const { window, concurrency, high_water, latency_p95_seconds, stall, ...rest } = numbers;
    const live = { ...old.live, window, concurrency, high_water, latency_p95_seconds, stall };
    const task = { ...old, ...rest, live };
    next.set(numbers.id, task);
    sample(task);
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
    if (old) next.set(data.id, { ...old, ...rest, next: old.next && at ? { ...old.next, at } : null });
    tasks.value = next;
    changes.value += 1;
  }
}

let hearers = 0;
let end = () => {};

/** Keeps the list fresh until the answer is called. */
export function keepTasks() {
  hearers += 1;
  if (hearers === 1) end = listen('tasks', hear);
  return () => {
    hearers -= 1;
    if (!hearers) end();
  };
}
