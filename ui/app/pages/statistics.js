/** @file Totals by day, business and task. */
import { html } from '../../vendor/preact-htm.js';
import { path } from '../lib/api.js';
import { now } from '../lib/clock.js';
import { count, percent } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route, withQuery } from '../lib/router.js';
import { Empty, Segments, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { Filter, Pager, Table } from '../parts/table.js';

const DAYS = { '7d': 7, '30d': 30, '90d': 90 };
const TERMS = ['succeeded', 'skipped', 'failed'];

/** UTC day of a moment, as the node counts days, whatever clock is displayed. */
const utcDay = (time) => new Date(time).toISOString().slice(0, 10);

const sum = ({ items }) => items.succeeded + items.skipped + items.failed;

/** Bar scaled to the largest row. */
function Share({ row, most }) {
  return html`<span class="bar">${TERMS.map((term) => html`<i key=${term} class=${`of-${term}`} style=${{ width: `${most ? (row.items[term] / most) * 100 : 0}%` }}></i>`)}</span>`;
}

function About({ row, by }) {
  if (by === 'task') return html`<a class="cut" data-row href=${`/tasks/${row.task}`}><span class="soft">${row.task}</span> ${row.name ?? row.business}</a>`;
  if (by === 'business') return html`<a data-row href=${`/businesses/${row.business}`}>${row.business}</a>`;
  return html`<span class="nowrap">${row.day}${row.day === utcDay(now.value) && html` <span class="soft">${t('today')}</span>`}</span>`;
}

function columns(by, most) {
  return [
    { head: { day: t('Day (UTC)'), business: t('Business'), task: t('Task') }[by], class: 'main-cell', cell: (row) => html`<${About} row=${row} by=${by} />` },
    { head: t('Items'), class: 'fill progress-wide', cell: (row) => html`<${Share} row=${row} most=${most} />` },
    { head: t('Settled'), class: 'num', cell: (row) => html`<b>${count(sum(row))}</b>` },
    { head: t('Succeeded'), class: 'num', cell: (row) => count(row.items.succeeded) },
    { head: t('Skipped'), class: 'num hide-t', cell: (row) => count(row.items.skipped) },
    { head: t('Failed'), class: 'num', cell: (row) => html`<span class=${row.items.failed ? 'bad' : 'soft'}>${count(row.items.failed)}</span> <span class="soft">${percent(row.items.failed, sum(row))}</span>` },
    { head: t('Tasks created'), class: 'num', hidden: by === 'task', cell: (row) => count(row.tasks?.created) },
    { head: t('Finished'), class: 'num', hidden: by === 'task', cell: (row) => count(row.tasks?.finished) },
    { head: t('Cancelled'), class: 'num', hidden: by === 'task', cell: (row) => count(row.tasks?.cancelled) },
  ];
}

function Totals({ rows }) {
  const all = { items: Object.fromEntries(TERMS.map((term) => [term, rows.reduce((total, row) => total + row.items[term], 0)])) };
  const figure = (name, value, note) => html`<div><span class="name">${name}</span><span class="value">${value}</span><span class="note">${note}</span></div>`;
  return html`<div class="figures">${figure(t('Settled'), count(sum(all)), t('in the rows shown'))}${figure(t('Succeeded'), count(all.items.succeeded), percent(all.items.succeeded, sum(all)))}
    ${figure(t('Skipped'), count(all.items.skipped), percent(all.items.skipped, sum(all)))}${figure(t('Failed'), count(all.items.failed), percent(all.items.failed, sum(all)))}</div>`;
}

/** Statistics page. */
export function Statistics() {
  const { query } = route.value;
  const by = ['day', 'business', 'task'].includes(query.get('by')) ? query.get('by') : 'day';
  const span = DAYS[query.get('span')] ? query.get('span') : '30d';
  const since = utcDay(now.value - (DAYS[span] - 1) * 86_400_000);
  const at = path('/v1/statistics', { by, since: `${since}T00:00:00Z`, business: query.get('business'), limit: 100, cursor: query.get('cursor') });
  const read = useResource(at, { every: 10_000, keep: true });
  return html`<${Page} title=${t('Statistics')}>
    <div class="filters">
      <${Segments} label=${t('Group by')} items=${[['day', 'by day'], ['business', 'by business'], ['task', 'by task']].map(([word, text]) => ({ href: withQuery({ by: word, cursor: null }), isCurrent: word === by, text: t(text) }))} />
      <${Segments} label=${t('Time')} items=${Object.keys(DAYS).map((word) => ({ href: withQuery({ span: word, cursor: null }), isCurrent: word === span, text: t('{n} days', { n: DAYS[word] }) }))} />
      <span class="end"><${Filter} name="business" label=${t('business')} /></span></div>
    <${Whole} of=${read}>${(page) => (page.items.length
      ? html`<${Totals} rows=${page.items} /><${Table} columns=${columns(by, Math.max(...page.items.map(sum)))} rows=${page.items} id=${(row) => row.day ?? row.task ?? row.business} label=${t('Statistics')} isLoading=${read.isLoading} /><${Pager} next=${page.next_cursor} />`
      : html`<${Empty} say=${t('No activity in this period.')} />`)}<//><//>`;
}
