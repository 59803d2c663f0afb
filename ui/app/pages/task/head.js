/** @file Header of a task: counts, remaining time, problems and actions. */
import { html, useEffect, useRef } from '../../../vendor/preact-htm.js';
import * as actions from '../../lib/actions.js';
import { autoText, count, near, percentOf, rate, span } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { statusText } from '../../lib/say.js';
import { isStaff } from '../../lib/session.js';
import { hasEnded, isAuto, isLeast, isSlow, recovered, offers, secondsLeft, target, timeLeft } from '../../lib/task.js';
import { ActButton } from '../../parts/ask.js';
import { Ago, Since, Stamp } from '../../parts/basic.js';
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

/** Actions on the task. */
export function Acts({ task }) {
  const can = offers(task);
  return html`
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
    <li key=${term}><i class=${`key of-${term}`}></i><span class="soft">${t(text)}</span> <b>${count(task.counts[term])}</b>${term === 'failed' && recovered(task) > 0 && html` <span class="soft">${t('{n} recovered by redrives', { n: count(recovered(task)) })}</span>`}</li>`)}</ul>`;
}

function Ends({ task }) {
  const seconds = secondsLeft(task);
  if (seconds != null) {
    const when = { span: timeLeft(task), time: near(Date.now() + seconds * 1000) };
    return html`<span>${isLeast(task) ? t('{span} left, done at {time} at the earliest', when) : t('{span} left, done at about {time}', when)}</span>`;
  }
  if (hasEnded(task)) return html`<span>${t('ended')} <${Ago} at=${task.finished_at} isSaid=${true} />${task.started_at && task.finished_at && html`, ${t('after {span}', { span: span((Date.parse(task.finished_at) - Date.parse(task.started_at)) / 1000) })}`}</span>`;
  return html`<span>${t('for')} <${Since} at=${task.since} /></span>`;
}

function Speed({ task }) {
  if (task.status !== 'running') return null;
  if (isAuto(task)) return html`<span><b>${rate(task.actual_rate)}/s</b><span class="soft"> (${autoText(task.rate)})</span></span>`;
  const wanted = task.rate === 'unlimited' ? t('unlimited') : `${rate(target(task))}/s`;
  return html`<span><b class=${isSlow(task, task.actual_rate) ? 'warn' : ''}>${rate(task.actual_rate)}</b><span class="soft"> ${t('of')} ${wanted}</span></span>`;
}

/** Problem or wait reason as the node reports it. */
function Note({ task }) {
  const { next, handler_down: down } = task;
  const isBad = down || task.stale || (task.status === 'stopped' && !['operator', 'business', 'canary_done'].includes(task.stop_reason));
  const text = task.stale ? t('Data is stale: the node cannot reach its database.') : statusText(task) ?? (task.stop_reason === 'canary_done' ? t('The canary is done. Review its results, then resume the task.') : task.stop_reason && t('stopped: {reason}', { reason: t(task.stop_reason) }));
  if (!text && !next) return null;
  return html`<p class="callout"><${Icon} name=${isBad ? 'warn' : 'clock'} class=${isBad ? 'bad' : 'warn'} /><span>${text}
    ${next && html` ${t(next.action)} <${Ago} at=${next.at} />${next.attempt && ` (${next.attempt} / ${next.of})`}`}
    ${down?.next_probe && !statusText(task) && html` ${t('next probe')} <${Ago} at=${down.next_probe} />`}</span></p>`;
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
    <span>${task.started_at ? html`${t('started')} <${Ago} at=${task.started_at} isSaid=${true} />` : html`${taskLook(task.status).text} <${Ago} at=${task.since} isSaid=${true} />`}</span></p>`;
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
    <${Where} task=${task} />
    <${Note} task=${task} />
    <div class="row wrap headline fresh"><span class="percent">${percentOf(task.progress?.percent)}</span>
      <span>${t('{done} of {total} items', { done: count(task.progress?.settled), total: count(task.progress?.of) })}</span>
      <${Speed} task=${task} /><span class="end soft"><${Ends} task=${task} /></span></div>
    <${Progress} task=${task} isBig=${true} />
    <${Sum} task=${task} />
    <${Costs} task=${task} />
    ${!hasEnded(task) && html`<${Knobs} task=${task} />`}
  </section>`;
}
