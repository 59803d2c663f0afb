/** @file One item in a drawer: data, state, failed attempts and log lines. */
import { html, useEffect, useRef } from '../../../vendor/preact-htm.js';
import { redrive, replay } from '../../lib/actions.js';
import { part } from '../../lib/api.js';
import { count, span, stamp } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { judgement } from '../../lib/judgement.js';
import { useResource } from '../../lib/resource.js';
import { go } from '../../lib/router.js';
import { ActButton } from '../../parts/ask.js';
import { Ago, Copy, Json, Pairs, Section, Whole } from '../../parts/basic.js';
import { ItemStatus } from '../../parts/status.js';
import { Table } from '../../parts/table.js';

function Timeline({ item }) {
  if (!item.timeline.length) return html`<p class="soft">${t('No failed attempts.')}</p>`;
  const columns = [
    { head: t('Attempt'), cell: (one) => one.attempt },
    { head: t('Time'), cell: (one) => html`<span class="nowrap">${stamp(one.at_ms)}</span>` },
    { head: t('Duration'), class: 'num', cell: (one) => span(one.duration_ms / 1000) },
    { head: t('Code'), cell: (one) => html`<code>${one.code}</code>` },
    { head: t('Run'), class: 'num', cell: (one) => one.run },
  ];
  return html`<${Table} columns=${columns} rows=${item.timeline} id=${(one) => String(one.attempt)} label=${t('Failed attempts')} />`;
}

function Lines({ task, index }) {
  const read = useResource(`/v1/tasks/${part(task.id)}/logs?index=${index}&limit=20`);
  const lines = read.data?.items ?? [];
  if (!lines.length) return null;
  return html`<${Section} title=${t('Data log')}>${lines.map((line) => html`<p key=${line.number}><span class="soft">${stamp(line.at)}</span> <span class=${`level-${line.level}`}>${line.message}</span></p>`)}<//>`;
}

function Details({ task, item }) {
  const { failure } = item;
  return html`
    <${Pairs} of=${[
      [t('State'), html`<${ItemStatus} state=${item.state} />`],
      [t('Item key'), html`<code>${item.key}</code> <${Copy} text=${item.key} />`],
      [t('Trace ID'), html`<code>${item.trace_id}</code> <${Copy} text=${item.trace_id} />`],
      [t('Attempts'), count(item.attempts)],
      failure && [t('Code'), html`<code>${failure.code}</code>`],
      failure && [t('Message'), failure.message],
      item.state === 'failed' && [t('Evidence'), judgement(failure)],
      failure?.origin_task && [t('Origin'), html`<a class="link" href=${`/tasks/${failure.origin_task}/items/${failure.origin_index}`}>${failure.origin_task} #${failure.origin_index}</a>`],
      item.due_at && [t('Next attempt'), html`<${Ago} at=${item.due_at} />`],
    ]} />
    <${Section} title=${t('Request')} aside=${t('data of the item, sent with each attempt')}>${item.data != null ? html`<${Json} value=${item.data} label=${t('Request')} />` : html`<p class="soft">${item.data_missing ?? t('No data, only an index.')}</p>`}<//>
    ${(item.output ?? failure?.output) != null && html`<${Section} title=${t('Response')} aside=${t('of the last attempt')}><${Json} value=${item.output ?? failure.output} label=${t('Response')} /><//>`}
    <${Section} title=${t('Failed attempts')}><${Timeline} item=${item} /><//>
    <${Lines} task=${task} index=${item.index} />`;
}

/** Drawer of an item. */
export function Item({ task, index, back }) {
  const place = useRef(null);
  const read = useResource(`/v1/tasks/${part(task.id)}/items/${part(index)}`, { every: 2000 });
  useEffect(() => place.current?.showModal(), []);
  const close = () => go(back);
  const turn = (by) => go(`/tasks/${task.id}/items/${Math.max(0, Math.min(task.total - 1, Number(index) + by))}${location.search}`, { replace: true });
  return html`<dialog class="is-drawer" ref=${place} onClose=${close} aria-label=${t('Item {index}', { index })}><div class="inside">
    <header class="row"><h2 class="grow">${t('Item {index}', { index: count(Number(index)) })} <span class="soft">${task.id}</span> <${Copy} text=${String(index)} /></h2>
      <button type="button" class="button is-small" aria-label=${t('Previous item')} onClick=${() => turn(-1)}>‹</button>
      <button type="button" class="button is-small" aria-label=${t('Next item')} onClick=${() => turn(1)}>›</button>
      ${read.data?.state === 'failed' && html`<${ActButton} class="is-small" action=${redrive(task, { indexes: String(index) }, 1)}>${t('Redrive')}<//>`}
      ${read.data?.state === 'succeeded' && html`<${ActButton} class="is-small" action=${replay(task, Number(index))}>${t('Send again')}<//>`}
      <button type="button" class="button is-small" autofocus onClick=${() => place.current.close()}>${t('Close')}</button></header>
    <${Whole} of=${read}>${(item) => html`<${Details} task=${task} item=${item} />`}<//>
  </div></dialog>`;
}
