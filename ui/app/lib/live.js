/** @file Event stream: one per page, shared by its parts. */
import { signal } from '../../vendor/preact-htm.js';
import { get } from './api.js';
import { identify } from './session.js';

const KINDS = ['snapshot', 'stats', 'status', 'handler', 'failure', 'log', 'audit', 'node', 'bye'];
const AGAIN_MS = 2000;
const QUIET_MS = 20_000;
const TOPICS_MAX = 32;

/**
 * `idle` without listeners, `live`, `lost` while the node is unreachable, `paused` by a person or while the page is hidden.
 * @type {import('@preact/signals').Signal<{state: 'idle'|'live'|'lost'|'paused'}>}
 */
export const stream = signal({ state: 'idle' });

/** Time of the last event or response from the node. */
export const heardAt = signal(Date.now());

/** True while a person has paused updates. */
export const paused = signal(false);

/** Incremented when everything read before may be stale. */
export const renewed = signal(0);

/** @type {Map<string, Set<(kind: string, data: any) => void>>} */
const listeners = new Map();
let source = null;
let connected = '';
let timer = 0;

function set(state) {
  if (stream.value.state !== state) stream.value = { state };
}

/** Records that the node responded. Without a stream to prove it, that is the end of an outage. */
export function heard() {
  heardAt.value = Date.now();
  if (!source && stream.value.state === 'lost') set('idle');
}

/** Records that the node didn't respond. */
export function missed() {
  if (!paused.value && !document.hidden) set('lost');
}

function deliver(kind, event) {
  heard();
  set('live');
  if (kind === 'bye') return reconnect(AGAIN_MS);
  const { topic, data } = JSON.parse(event.data);
  for (const hear of listeners.get(topic) ?? []) hear(kind, data);
}

function close() {
  source?.close();
  source = null;
  connected = '';
}

function lose() {
  if (source?.readyState !== EventSource.CLOSED) return set('lost');
  close();
  // After a rejection, such as of a deleted task, the listener may be gone by now.
  if (!wanted()) return set('idle');
  set('lost');
  reconnect(AGAIN_MS);
  identify();
}

function wanted() {
  return [...listeners.keys()].sort().slice(0, TOPICS_MAX).join(',');
}

function connect() {
  const topics = wanted();
  const isHeld = paused.value || document.hidden;
  if (topics && topics === connected && !isHeld) return;
  close();
  if (isHeld) return set('paused');
  if (!topics) return set('idle');
  connected = topics;
  source = new EventSource(`/v1/events?topics=${encodeURIComponent(topics)}&hz=${topics.includes('task:') ? 4 : 1}`);
  source.onopen = () => {
    heard();
    set('live');
  };
  source.onerror = lose;
  for (const kind of KINDS) source.addEventListener(kind, (event) => deliver(kind, event));
}

function reconnect(afterMs = 30) {
  clearTimeout(timer);
  if (afterMs === AGAIN_MS) connected = '';
  timer = setTimeout(connect, afterMs);
}

/**
 * Subscribes to a topic (`cluster`, `tasks`, `task:t42`, `node:n1`) until the returned function is called.
 * @param {string} topic
 * @param {(kind: string, data: any) => void} hear
 */
export function listen(topic, hear) {
  const all = listeners.get(topic) ?? new Set();
  all.add(hear);
  listeners.set(topic, all);
  reconnect();
  return () => {
    all.delete(hear);
    if (!all.size) listeners.delete(topic);
    reconnect();
  };
}

/** Pauses updates, or resumes them and reads everything again. */
export function pause(wish = !paused.value) {
  paused.value = wish;
  reconnect();
  if (!wish) renewed.value += 1;
}

async function knock() {
  if (document.hidden || paused.value || Date.now() - heardAt.value < QUIET_MS) return;
  try {
    await get('/healthz', { signal: AbortSignal.timeout(5000) });
    heard();
  } catch {
    missed();
  }
}

document.addEventListener('visibilitychange', () => {
  reconnect();
  if (!document.hidden) renewed.value += 1;
});
setInterval(knock, 5000);
