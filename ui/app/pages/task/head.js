/** @file Header of a task: its state in a sentence, the action, counts and knobs. */
import { html, useEffect, useRef } from '../../../vendor/preact-htm.js';
import * as actions from '../../lib/actions.js';
import { now } from '../../lib/clock.js';
import { count, percentOf, rate } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { statusText } from '../../lib/say.js';
import { sentence, tone } from '../../lib/sentence.js';
import { isStaff } from '../../lib/session.js';
import { hasEnded, isRecovered, offers } from '../../lib/task.js';
import { ActButton } from '../../parts/ask.js';
import { Ago, Stamp } from '../../parts/basic.js';
import { Icon } from '../../parts/icon.js';
import { Menu } from '../../parts/menu.js';
import { Progress, taskLook } from '../../parts/status.js';
import { announce } from '../../parts/toast.js';
import { Costs } from './costs.js';
import { Knobs } from './knobs.js';

function More({ task }) {
  const can = offers(task);
  const nodes = useResource(can.move && isStaff() ? '/v1/nodes' : null);
  const others = (nodes.data?.items ?? []).filter((node) => node.state === 'serving' && !task.live?.nodes.includes(node.id)).map((node) => node.id);
  return html`<${Menu}>
    ${can.force && html`<${ActButton} action=${actions.stopNow(task)} />`}
    ${can.seal && html`<${ActButton} action=${actions.seal(task)} />`}
    ${can.move && others.length > 0 && html`<${ActButton} action=${actions.move(task, others)} />`}
    ${task.last_error && can.stop && html`<${ActButton} action=${actions.fail(task, task.last_error.code)}>${t('Fail items with {code}', { code: task.last_error.code })}<//>`}
    <${ActButton} action=${actions.clone(task)} />
    ${can.finish && html`<${ActButton} action=${actions.finish(task)} />`}
    <a class="button" href=${`/v1/tasks/${task.id}/report?format=markdown`} target="_blank" rel="noopener">${t('Report')}</a>
    ${can.cancel && html`<${ActButton} action=${actions.cancel(task)} class="is-danger" />`}
    ${can.remove && html`<${ActButton} action=${actions.remove(task)} class="is-danger" />`}
  <//>`;
}

/** Action that the state calls for, and a menu of the others. */
function Acts({ task }) {
  const can = offers(task);
  const isOpen = task.result === 'with_failures' && !isRecovered(task);
  return html`
    ${isOpen && html`<a class="button is-main" href=${`/tasks/${task.id}/failures`}>${t('Failures')}</a>`}
    ${can.recover && html`<${ActButton} action=${actions.recover(task)} />`}
    ${can.start && html`<${ActButton} hotkey="s" action=${actions.start(task)} isMain=${true} />`}
    ${can.stop && html`<${ActButton} hotkey="s" action=${actions.stop(task)}><${Icon} name="stop" />${t('Stop')}<//>`}
    <${More} task=${task} />`;
}

const TERMS = [
  ['succeeded', 'succeeded'],
  ['skipped', 'skipped'],
  ['failed', 'failed'],
  ['in_flight', 'in flight'],
  ['parked', 'parked'],
  ['pending', 'pending'],
  ['excluded', 'excluded'],
];

function Sum({ task }) {
  return html`<ul class="sum">${TERMS.filter(([term]) => term !== 'excluded' || task.counts.excluded).map(([term, text]) => html`
    <li key=${term}><i class=${`key of-${term}`}></i><span class="soft">${t(text)}</span> <b>${count(task.counts[term])}</b></li>`)}</ul>`;
}

/** State in one sentence, with what happens next by itself. */
function Says({ task }) {
  const { next, handler_down: down } = task;
  const level = tone(task);
  return html`<p class="grow sentence">${level && html`<${Icon} name=${level === 'bad' ? 'warn' : 'clock'} class=${level} /> `}${sentence(task, now.value)}
    ${next && next.action !== 'start' && html` · ${t(next.action)} <${Ago} at=${next.at} />${next.attempt && ` (${next.attempt} / ${next.of})`}`}
    ${down?.next_probe && !statusText(task) && html` · ${t('next probe')} <${Ago} at=${down.next_probe} />`}</p>`;
}

function Where({ task }) {
  const nodes = task.live?.nodes ?? [];
  const running = task.shard_list.filter((shard) => shard.state === 'running').length;
  return html`<p class="soft where">
    ${nodes.length > 0 && html`<span>${t('on')} ${nodes.map((node) => html`<a key=${node} class="link" href=${`/nodes/${encodeURIComponent(node)}`}>${node}</a> `)}</span>`}
    ${task.shard_list.length > 1 && !hasEnded(task) && html`<span>${t('{n} of {all} shards running', { n: running, all: task.shard_list.length })}</span>`}
    ${task.parent && html`<span>${t('redrive of')} <a class="link" href=${`/tasks/${task.parent}`}>${task.parent}</a></span>`}
    ${task.schedule && html`<span>${t('created by')} <a class="link" href=${`/schedules/${task.schedule}`}>${task.schedule}</a></span>`}
    ${task.publish && html`<span>${t('publishes to')} <a class="link" href=${`/datasets/${encodeURIComponent(task.publish.dataset)}`}>${task.publish.dataset}</a> ${task.publish.generation}</span>`}
    ${task.deadline && html`<span>${t('deadline')} <${Stamp} at=${task.deadline} /></span>`}
    ${Object.entries(task.labels).map(([name, value]) => html`<a key=${name} href=${`/tasks?label=${encodeURIComponent(`${name}:${value}`)}`}>${name}:${value}</a>`)}
    ${task.started_at && !hasEnded(task) && html`<span>${t('started')} <${Ago} at=${task.started_at} isSaid=${true} /></span>`}</p>`;
}

/** Announces progress to screen readers from time to time, and status changes at once. */
function useAnnouncements(task) {
  const before = useRef(task.status);
  const whole = Math.floor(task.progress?.percent ?? 0);
  useEffect(() => {
    if (before.current !== task.status) announce(`${task.id}: ${taskLook(task.status).text}`, true);
    else if (task.status === 'running') announce(t('{percent} percent, {rate} per second', { percent: whole, rate: rate(task.actual_rate) }));
    before.current = task.status;
  }, [task.status, whole]);
}

/** Header of the task. */
export function Head({ task }) {
  useAnnouncements(task);
  return html`<section class="head" aria-label=${t('Progress')}>
    <div class="headline fresh"><span class="percent">${percentOf(task.progress?.percent)}</span><${Says} task=${task} /><span class="acts"><${Acts} task=${task} /></span></div>
    <${Progress} task=${task} isBig=${true} />
    <${Sum} task=${task} />
    <${Costs} task=${task} />
    <${Where} task=${task} />
    ${!hasEnded(task) && html`<${Knobs} task=${task} />`}
  </section>`;
}
