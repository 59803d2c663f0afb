/** @file Failed items of a task: groups by code, their items, and redrives. */
import { html, useEffect, useState } from '../../../vendor/preact-htm.js';
import { redrive } from '../../lib/actions.js';
import { part, path } from '../../lib/api.js';
import { count, percent, stamp } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { judgement } from '../../lib/judgement.js';
import { useResource } from '../../lib/resource.js';
import { isRecovered, settled } from '../../lib/task.js';
import { ActButton } from '../../parts/ask.js';
import { Ago, Empty, Problem, Section, Whole } from '../../parts/basic.js';
import { Icon } from '../../parts/icon.js';
import { TaskStatus } from '../../parts/status.js';
import { Table, usePick } from '../../parts/table.js';

const PAGE = 50;

/** Data of an item in one line. */
export function Carried({ value, missing }) {
  if (missing) return html`<span class="soft">${missing}</span>`;
  if (value == null) return html`<span class="soft">–</span>`;
  return html`<code class="cut" title=${JSON.stringify(value)}>${JSON.stringify(value)}</code>`;
}

function itemColumns(task) {
  return [
    { head: t('Item'), class: 'num', cell: (one) => html`<a class="link" data-row href=${`/tasks/${task.id}/items/${one.index}?from=failures`}>#${count(one.index)}</a>` },
    { head: t('Failed'), cell: (one) => html`<time datetime=${one.last_at} class="nowrap">${stamp(one.last_at)}</time>` },
    { head: t('Attempts'), class: 'num', cell: (one) => count(one.attempts) },
    { head: t('Evidence'), cell: (one) => html`<span class="cut" title=${judgement(one)}>${judgement(one)}</span>` },
    { head: t('Message'), class: 'fill main-cell', cell: (one) => html`<span class="cut" title=${one.message}>${one.message}</span>` },
    { head: t('Data'), class: 'main-cell', cell: (one) => html`<${Carried} value=${one.data} missing=${one.data_missing} />` },
  ];
}

/** Items of a group, page by page; the cursors of earlier pages are kept for the way back. */
function Items({ task, code }) {
  const [cursors, setCursors] = useState(['']);
  const read = useResource(path(`/v1/tasks/${part(task.id)}/failures`, { code, data: '*', limit: PAGE, cursor: cursors.at(-1) }), { keep: true });
  if (!read.data) return read.error ? html`<${Problem} error=${read.error} />` : html`<p class="loading">${t('Loading…')}</p>`;
  const { items, next_cursor: next } = read.data;
  return html`<div class="group-items"><${Table} columns=${itemColumns(task)} rows=${items} id=${(one) => String(one.index)} label=${t('Items failed with {code}', { code })} isLoading=${read.isLoading} />
    ${(next || cursors.length > 1) && html`<div class="pager">${t('page {n}', { n: cursors.length })}
      <button type="button" class="button is-small" disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>${t('‹ previous')}</button>
      <button type="button" class="button is-small" disabled=${!next} onClick=${() => setCursors([...cursors, next])}>${t('next ›')}</button></div>`}</div>`;
}

function groupColumns(task, open, toggle, total) {
  return [
    { head: t('Code'), class: 'nowrap', cell: (group) => html`<button type="button" class="tool" data-row aria-expanded=${open === group.code} onClick=${() => toggle(group.code)}>
      <span aria-hidden="true">${open === group.code ? '▾' : '▸'}</span><code>${group.code}</code></button>` },
    { head: t('Items'), class: 'num', cell: (group) => html`<b>${count(group.count)}</b>${group.unconfirmed > 0 && html` <span class="soft nowrap">${t('({n} unconfirmed)', { n: count(group.unconfirmed) })}</span>`}` },
    { head: t('Share'), class: 'num', cell: (group) => percent(group.count, total) },
    { head: t('First'), class: 'num', cell: (group) => html`<${Ago} at=${group.first_at} />` },
    { head: t('Last'), class: 'num', cell: (group) => html`<${Ago} at=${group.last_at} />` },
    { head: t('Example'), class: 'fill main-cell', cell: (group) => html`<span class="row"><a class="link nowrap" href=${`/tasks/${task.id}/items/${group.example_index}?from=failures`}>#${count(group.example_index)}</a>
      <span class="cut" title=${group.example}>${group.example}</span></span>` },
    { head: t('Data'), class: 'main-cell', cell: (group) => html`<${Carried} value=${group.example_data} missing=${group.example_data_missing} />` },
    !isRecovered(task) && { head: t('Redrive'), bare: true, class: 'num', cell: (group) => html`<${ActButton} class="is-small" action=${redrive(task, { codes: [group.code] }, group.count)}>${t('Redrive')}<//>` },
  ].filter(Boolean);
}

function Redrive({ task, groups, unconfirmed, pick }) {
  if (isRecovered(task)) return html`<span class="soft">${t('all recovered by redrives')}</span>`;
  const chosen = groups.filter((group) => pick.has(group.code));
  const number = chosen.reduce((sum, group) => sum + group.count, 0);
  const all = groups.reduce((sum, group) => sum + group.count, 0);
  if (chosen.length) return html`<${ActButton} isMain=${true} action=${redrive(task, { codes: chosen.map((group) => group.code) }, number)}>${t('Redrive {n:selected item|selected items}', { n: count(number) })}<//>`;
  return html`${unconfirmed > 0 && html`<${ActButton} action=${redrive(task, { unconfirmed: true }, unconfirmed)}>${t('Redrive {n:unconfirmed item|unconfirmed items}', { n: count(unconfirmed) })}<//>`}
    <${ActButton} action=${redrive(task, {}, all)}>${t('Redrive all {n:item|items}', { n: count(all) })}<//>`;
}

function Export({ task, what }) {
  return html`<a class="button" download href=${`/v1/tasks/${task.id}/export/${what}?format=csv`}><${Icon} name="down" />CSV</a>`;
}

function Groups({ task, groups, unconfirmed }) {
  const [open, setOpen] = useState(groups.length === 1 ? groups[0].code : null);
  const pick = usePick(groups.map((group) => group.code));
  const toggle = (code) => setOpen(open === code ? null : code);
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  return html`<${Section} title=${t('Failures by code')} aside=${t('{n:item|items}, {share} of settled', { n: count(total), share: percent(total, settled(task.counts)) })}
      end=${html`<${Redrive} task=${task} groups=${groups} unconfirmed=${unconfirmed} pick=${pick} /><${Export} task=${task} what="failures" />`}>
    <${Table} columns=${groupColumns(task, open, toggle, total)} rows=${groups} id=${(group) => group.code} label=${t('Failures by code')} pick=${isRecovered(task) ? undefined : pick}
      under=${(group) => group.code === open && html`<${Items} task=${task} code=${group.code} />`} /><//>
    <${Family} task=${task} />`;
}

/** Redrives of a task. */
function Family({ task }) {
  const read = useResource(`/v1/tasks?parent=${part(task.id)}&limit=50`, { every: 5000 });
  const children = read.data?.items ?? [];
  if (!children.length) return null;
  const columns = [
    { head: t('Task'), class: 'fill main-cell', cell: (one) => html`<a class="link" href=${`/tasks/${one.id}`}>${one.id}</a> ${one.name}` },
    { head: t('Status'), cell: (one) => html`<${TaskStatus} task=${one} />` },
    { head: t('Items'), class: 'num', cell: (one) => count(one.total) },
    { head: t('Succeeded'), class: 'num', cell: (one) => count(one.counts.succeeded + one.counts.skipped) },
    { head: t('Failed'), class: 'num', cell: (one) => count(one.counts.failed) },
    { head: t('Created at'), class: 'num', cell: (one) => html`<${Ago} at=${one.created_at} />` },
  ];
  return html`<${Section} title=${t('Redrives')}><${Table} columns=${columns} rows=${children} id=${(one) => one.id} label=${t('Redrives')} /><//>`;
}

/** Failures tab. */
export function Failures({ task, watched }) {
  const read = useResource(`/v1/tasks/${part(task.id)}/failures/groups?data=*`, { every: 15_000 });
  useEffect(() => {
    if (watched.failed) read.reload();
  }, [watched.failed]);
  return html`<${Whole} of=${read}>${({ items, unconfirmed }) => (items.length
    ? html`<${Groups} task=${task} groups=${items} unconfirmed=${unconfirmed} />`
    : html`<${Empty} say=${t('No failed items.')}><p>${t('Items that fail their last attempt appear here, grouped by code.')}</p><//>`)}<//>`;
}
