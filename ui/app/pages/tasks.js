/** @file List of tasks with filters and bulk actions. Numbers are live; rows don't move under the pointer. */
import { html, useEffect, useRef } from '../../vendor/preact-htm.js';
import { labelAll, rateAll, start, startAll, stop, stopAll } from '../lib/actions.js';
import { path } from '../lib/api.js';
import { families } from '../lib/families.js';
import { count, percentOf, rate } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route, withQuery } from '../lib/router.js';
import { may, session } from '../lib/session.js';
import { isRecovered, isSlow, recovered, offers, target, timeLeft, wantedRate } from '../lib/task.js';
import { changes, historyOf, keepTasks, rateOf, tasks } from '../lib/tasks.js';
import { ask } from '../parts/ask.js';
import { Ago, Empty, Segments, Whole } from '../parts/basic.js';
import { Icon } from '../parts/icon.js';
import { Spark } from '../parts/plot.js';
import { Page } from '../parts/shell.js';
import { Progress, TaskStatus } from '../parts/status.js';
import { Filter, Fresh, Pager, Table, useCalm, usePick } from '../parts/table.js';

const TABS = [
  ['', 'All'],
  ['running,stopping,finalizing', 'Running'],
  ['queued,awaiting_business', 'Waiting'],
  ['recovering', 'Recovering'],
  ['created', 'Created'],
  ['stopped', 'Stopped'],
  ['finished', 'Finished'],
  ['cancelled', 'Cancelled'],
];

function tally(counts, words) {
  if (!counts) return null;
  const of = (word) => counts.counts[word] ?? 0;
  const sum = words ? words.split(',').reduce((all, word) => all + of(word), 0) : Object.values(counts.counts).reduce((all, one) => all + one, 0);
  return sum >= counts.counted_up_to ? `≥ ${count(counts.counted_up_to)}` : count(sum);
}

function Statuses({ counts }) {
  const present = route.value.query.get('status') ?? '';
  return html`<${Segments} label=${t('Status')} items=${TABS.map(([words, text]) => ({
    href: withQuery({ status: words, cursor: null }),
    isCurrent: words === present,
    text: html`${t(text)} <span class="soft">${tally(counts, words)}</span>`,
  }))} />`;
}

function origin(task) {
  if (task.parent) return t('redrive of {id}', { id: task.parent });
  return task.schedule ? t('of schedule {name}', { name: task.schedule }) : t('unnamed');
}

function Name({ task, isChild }) {
  return html`<span class=${isChild ? 'row is-child' : 'row'}>
    <a data-row href=${`/tasks/${task.id}`} class="cut"><span class="soft">${isChild && '↳ '}${task.id}</span> ${task.name ?? html`<span class="soft">${origin(task)}</span>`}</a>
    ${task.parent && !isChild && html`<a class="soft nowrap" href=${`/tasks/${task.parent}`} title=${t('redrives failed items of {id}', { id: task.parent })}>↳ ${t('redrive of {id}', { id: task.parent })}</a>`}
  </span>`;
}

function Failed({ task }) {
  if (!task.counts.failed) return html`<span class="soft">0</span>`;
  const good = recovered(task);
  return html`<a class=${isRecovered(task) ? 'soft' : 'bad'} href=${`/tasks/${task.id}/failures`} title=${good > 0 ? t('{n} recovered by redrives', { n: count(good) }) : undefined}>${count(task.counts.failed)}</a>`;
}

function columns(rows) {
  const present = new Set(rows.map((task) => task.id));
  return [
    { head: t('Task'), class: 'fill main-cell', cell: (task) => html`<${Name} task=${task} isChild=${present.has(task.parent)} />` },
    { head: t('Business'), class: 'name-cell', cell: (task) => html`<a class="soft" href=${withQuery({ business: task.business, cursor: null })}>${task.business}</a>` },
    { head: t('Status'), cell: (task) => html`<${TaskStatus} task=${task} />` },
    { head: t('Progress'), class: 'progress-cell', cell: (task) => html`<span class="row"><${Progress} task=${task} /><span class="num w4">${percentOf(task.progress?.percent)}</span></span>` },
    { head: t('Items'), class: 'num hide-t', cell: (task) => count(task.total) },
    { head: t('Failed'), class: 'num', cell: (task) => html`<${Failed} task=${task} />` },
    { head: t('Rate'), class: 'num', cell: (task) => html`<${Rate} task=${task} />` },
    { head: t('Trend'), class: 'hide-s hide-m', cell: (task) => task.status === 'running' && html`<${Spark} values=${historyOf(task.id)} most=${target(task)} label=${t('recent rate')} />` },
    { head: t('Time left'), class: 'num w5', cell: (task) => timeLeft(task) },
    { head: t('Since'), class: 'num hide-t', cell: (task) => html`<${Ago} at=${task.since} />` },
  ];
}

function Rate({ task }) {
  const actual = rateOf(task);
  const wanted = wantedRate(task);
  if (task.status !== 'running') return html`<span class="soft">${wanted}</span>`;
  return html`<span class=${isSlow(task, actual) ? 'warn' : ''}>${rate(actual)}</span><span class="soft"> / ${wanted}</span>`;
}

function Bulk({ pick, rows }) {
  const chosen = rows.filter((task) => pick.has(task.id));
  const fit = (word) => chosen.filter((task) => offers(task)[word]);
  const isAllowed = may('operator');
  const button = (text, list, one, all) => html`<button class="button is-small" type="button" disabled=${!list.length || !isAllowed}
    onClick=${() => ask(list.length === 1 && one ? one(list[0]) : all(list, pick.clear))}>${text} ${list.length > 1 && list.length}</button>`;
  return html`<div class="filters"><span>${t('{n} selected', { n: chosen.length })}</span>
    ${button(t('Stop'), fit('stop'), stop, stopAll)} ${button(t('Start'), fit('start'), start, startAll)}
    ${button(t('Rate'), fit('edit'), null, rateAll)} ${button(t('Label'), chosen, null, labelAll)}
    <button class="button is-small is-quiet" type="button" onClick=${pick.clear}>${t('Clear')}</button></div>`;
}

function List({ page, read }) {
  // The stream is fresher but lacks redrives.
  const fresh = page.items.map((task) => ({ ...task, ...tasks.value?.get(task.id) }));
  const calm = useCalm(families(fresh), (task) => task.id);
  const pick = usePick(calm.rows.map((task) => task.id));
  if (!page.items.length) return html`<${Nothing} />`;
  return html`${pick.ids.length > 0 && html`<${Bulk} pick=${pick} rows=${calm.rows} />`}
    <div class="calm" ...${calm.over}><${Fresh} calm=${calm} /><${Table} columns=${columns(calm.rows)} rows=${calm.rows} id=${(task) => task.id} label=${t('Tasks')} pick=${pick} isLoading=${read.isLoading} /></div>
    <${Pager} next=${page.next_cursor} />`;
}

function Nothing() {
  const isFiltered = [...route.value.query.keys()].length > 0;
  if (isFiltered) return html`<${Empty} say=${t('No matching tasks.')}><p><a href="/tasks">${t('Show all tasks')}</a></p><//>`;
  return html`<${Empty} say=${t('No tasks yet. A task is one pass over many items: the rows of a file, or a range of numbers.')}
    commands=${['windrow task create hello --csv users.csv --rate 50/s --canary 10 --start']}><p><a href="/tasks/new">${t('New task')}</a></p><//>`;
}

/** Reloads a list shortly after changes, not at each change. */
function useReread(reload) {
  const timer = useRef(0);
  useEffect(() => {
    clearTimeout(timer.current);
    timer.current = setTimeout(reload, 600);
    return () => clearTimeout(timer.current);
  }, [changes.value]);
}

/** All tasks. */
export function Tasks() {
  const { query } = route.value;
  const isBusiness = session.value.role === 'business';
  useEffect(() => (isBusiness ? undefined : keepTasks()), []);
  const filters = Object.fromEntries(['status', 'business', 'label', 'q', 'parent', 'cursor'].map((name) => [name, query.get(name)]));
  const read = useResource(path('/v1/tasks', { ...filters, limit: 50 }), { every: isBusiness ? 3000 : 15_000, keep: true });
  const counts = useResource(isBusiness ? null : '/v1/tasks/counts', { every: 5000 });
  const businesses = useResource(isBusiness ? null : '/v1/businesses?limit=200');
  useReread(read.reload);
  const names = (businesses.data?.items ?? []).map((one) => [one.name, one.name]);
  return html`<${Page} title=${t('Tasks')} acts=${html`<a class="button is-main" href="/tasks/new" data-key="c"><${Icon} name="plus" />${t('New task')}</a>`}>
    <div class="filters"><${Statuses} counts=${counts.data} />
      <span class="end"><${Filter} name="business" label=${t('any business')} options=${names} />
        <${Filter} name="label" label=${t('label key:value')} width="9rem" />
        <${Filter} name="q" label=${t('name or ID')} width="10rem" /></span></div>
    <${Whole} of=${read}>${(page) => html`<${List} page=${page} read=${read} />`}<//><//>`;
}
