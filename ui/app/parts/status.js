/** @file States as icon, text and colour. */
import { html } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';
import { statusText } from '../lib/say.js';
import { isRecovered, waitsForItems } from '../lib/task.js';
import { Icon } from './icon.js';

const TASK = {
  created: ['circle', 'soft', 'created'],
  queued: ['clock', 'warn', 'queued'],
  awaiting_business: ['clock', 'warn', 'awaiting business'],
  running: ['play', 'run', 'running'],
  recovering: ['again', 'warn', 'recovering'],
  stopping: ['pause', 'warn', 'stopping'],
  stopped: ['stop', 'soft', 'stopped'],
  finalizing: ['dots', 'run', 'finalizing'],
  finished: ['check', 'ok', 'finished'],
  cancelled: ['cross', 'soft', 'cancelled'],
};

const RESULT = {
  with_failures: ['warn', 'warn', 'finished with failures'],
  early: ['check', 'soft', 'finished early'],
  recovered: ['check', 'ok', 'finished, failures recovered'],
};

const NODE = {
  serving: ['check', 'ok', 'serving'],
  draining: ['pause', 'warn', 'draining'],
  drained: ['stop', 'soft', 'drained'],
  silent: ['warn', 'bad', 'silent'],
  fenced: ['cross', 'bad', 'fenced'],
};

const ITEM = {
  pending: ['circle', 'soft', 'pending'],
  in_window: ['half', 'run', 'in window'],
  in_flight: ['half', 'run', 'in flight'],
  parked: ['clock', 'warn', 'parked'],
  excluded: ['cross', 'soft', 'excluded'],
  succeeded: ['check', 'ok', 'succeeded'],
  skipped: ['check', 'soft', 'skipped'],
  failed: ['cross', 'bad', 'failed'],
  retry: ['again', 'warn', 'retryable'],
  broken: ['cross', 'bad', 'contract violation'],
  not_called: ['circle', 'soft', 'not called'],
};

const FIRE = {
  made: ['check', 'ok', 'task created'],
  pending: ['clock', 'run', 'creating task'],
  queued: ['clock', 'warn', 'waiting for the previous task'],
  skipped: ['cross', 'soft', 'skipped'],
  missed: ['warn', 'bad', 'missed'],
  failed: ['cross', 'bad', 'failed'],
};

/** Text with its icon. */
export function Mark({ icon, tone, text, title }) {
  return html`<span class="status" title=${title}><${Icon} name=${icon} class=${tone} /><span>${text}</span></span>`;
}

function shown(table, word) {
  const [icon, tone, text] = table[word] ?? ['circle', 'soft', word];
  return { icon, tone, text: t(text) };
}

/** Status of a task, including a handler that is down. */
export function TaskStatus({ task }) {
  if (waitsForItems(task)) return html`<${Mark} icon="clock" tone="soft" text=${t('waiting for items')} title=${statusText(task)} />`;
  const isDown = task.handler_down && task.status === 'running';
  if (isDown) return html`<${Mark} icon="warn" tone="bad" text=${t('running, handler down')} title=${statusText(task)} />`;
  const result = task.result === 'with_failures' && isRecovered(task) ? 'recovered' : task.result;
  const look = task.status === 'finished' && RESULT[result] ? shown(RESULT, result) : shown(TASK, task.status);
  return html`<${Mark} ...${look} title=${statusText(task)} />`;
}

/** Icon, tone and text of a task's status. */
export const taskLook = (word) => shown(TASK, word);

/** State of a node. */
export const NodeStatus = ({ state }) => html`<${Mark} ...${shown(NODE, state)} />`;

/** State of an item. */
export const ItemStatus = ({ state }) => html`<${Mark} ...${shown(ITEM, state)} />`;

/** Icon, tone and text of a fire's outcome. */
export const fireLook = (word) => shown(FIRE, word);

/** Outcome of a fire. */
export const FireStatus = ({ fire }) => html`<${Mark} ...${fireLook(fire.outcome)} title=${fire.text} />`;

const TERMS = ['succeeded', 'skipped', 'failed', 'in_flight', 'parked'];

/** Progress bar of a task: every count but the excluded items, to scale. */
export function Progress({ task, isBig = false }) {
  const { counts, progress } = task;
  const width = (term) => `${progress?.of ? (counts[term] / progress.of) * 100 : 0}%`;
  return html`<div class=${isBig ? 'bar is-big' : 'bar'} role="progressbar" aria-valuemin="0" aria-valuemax="100"
    aria-valuenow=${progress?.percent ?? 0} aria-label=${t('{id}: settled items', { id: task.id })}>
    ${TERMS.map((term) => html`<i key=${term} class=${`of-${term}`} style=${{ width: width(term) }}></i>`)}
  </div>`;
}
