/** @file One task from the stream, with counters of its changes and failures. */
import { useEffect, useState } from '../../vendor/preact-htm.js';
import { part } from './api.js';
import { listen } from './live.js';
import { useResource } from './resource.js';

/** Numbers that belong to `task.live`. */
const LIVE = ['window', 'concurrency', 'high_water', 'latency_p95_seconds', 'stall', 'autopilot'];

function merged(task, numbers) {
  const live = { ...task.live };
  const rest = {};
  for (const [name, value] of Object.entries(numbers)) (LIVE.includes(name) ? live : rest)[name] = value;
  return { ...task, ...rest, live: task.live ? live : task.live };
}

function apply(state, kind, data) {
  const { task } = state;
  if (kind === 'snapshot') return { ...state, task: data };
  if (!task) return state;
  if (kind === 'stats') return { ...state, task: merged(task, data) };
  if (kind === 'status') return { ...state, task: { ...task, status_text_message: null, ...data }, moved: state.moved + 1 };
  if (kind === 'failure') return { ...state, failed: state.failed + 1 };
  if (kind === 'audit') return { ...state, changed: state.changed + 1 };
  return state;
}

const BEGIN = { task: null, moved: 0, failed: 0, changed: 0 };

/**
 * Watches a task.
 * @param {string} id
 * @returns {{task: any, error: any, moved: number, failed: number, changed: number, reload: () => void}}
 * moved, failed, changed: changes of its status, failures and settings since the page was opened
 */
export function useTask(id) {
  const [state, setState] = useState(BEGIN);
  const read = useResource(`/v1/tasks/${part(id)}`, { every: 10_000 });
  useEffect(() => {
    setState(BEGIN);
    return read.error?.status === 404 ? undefined : listen(`task:${id}`, (kind, data) => setState((old) => apply(old, kind, data)));
  }, [id, read.error?.status === 404]);
  useEffect(() => {
    if (state.moved || state.changed) read.reload();
  }, [state.moved, state.changed]);
  useEffect(() => {
    if (read.data) setState((old) => ({ ...old, task: !old.task || read.data.version >= old.task.version ? { ...read.data } : old.task }));
  }, [read.data]);
  return { ...state, error: read.error, reload: read.reload };
}
