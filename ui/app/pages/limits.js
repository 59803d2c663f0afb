/** @file Limits shared by tasks and businesses across all nodes, and their users. */
import { html } from '../../vendor/preact-htm.js';
import { newLimit, removeLimit, setLimit } from '../lib/actions_more.js';
import { part } from '../lib/api.js';
import { amount, count, near, rate } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Empty, Pairs, Section, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { TaskStatus } from '../parts/status.js';
import { Pager, Table } from '../parts/table.js';

/** All limits. */
export function Limits() {
  const read = useResource('/v1/limits?limit=200', { every: 5000 });
  const columns = [
    { head: t('Limit'), class: 'fill main-cell', cell: (one) => html`<a data-row class="strong" href=${`/limits/${one.name}`}>${one.name}</a>` },
    { head: t('Rate'), class: 'num', cell: (one) => one.rate ?? '–' },
    { head: t('Concurrency'), class: 'num', cell: (one) => count(one.concurrency) },
    { head: t('Updated'), class: 'num', cell: (one) => html`<${Ago} at=${one.updated_at} />` },
  ];
  return html`<${Page} title=${t('Limits')} acts=${html`<${ActButton} isMain=${true} action=${{ ...newLimit(), after: read.reload }}>${t('New limit')}<//>`}><${Whole} of=${read}>${(page) => (page.items.length
    ? html`<${Table} columns=${columns} rows=${page.items} id=${(one) => one.name} label=${t('Limits')} /><${Pager} next=${page.next_cursor} />`
    : html`<${Empty} say=${t('No limits yet. A limit is shared by all tasks that name it, across all nodes.')} commands=${['windrow limit create smtp --rate 300/s', 'windrow task create hello --total 1000 --limit smtp --start']} />`)}<//><//>`;
}

function Parts({ limit }) {
  const columns = [
    { head: t('Node'), class: 'fill main-cell', cell: (one) => html`<a class="link" href=${`/nodes/${one.node}`}>${one.node}</a>` },
    { head: t('Rate'), class: 'num', cell: (one) => (one.rate == null ? '–' : `${rate(one.rate)}/s`) },
    { head: t('Concurrency'), class: 'num', cell: (one) => count(one.concurrency) },
    { head: t('Runs'), class: 'num', cell: (one) => count(one.runs) },
  ];
  return limit.parts.length ? html`<${Table} columns=${columns} rows=${limit.parts} id=${(one) => one.node} label=${t('Shares')} />` : html`<p class="soft">${t('No running task uses it.')}</p>`;
}

const isSome = (text) => Number(text) > 0;

/** Use of each total, and of each allowance in its period; 80 % of one warns. */
function Uses({ limit }) {
  return limit.uses.map((one) => html`<p class="row" key=${one.limit}><span class=${one.nearly_used ? 'warn' : ''}>${t('{used} of {limit}', { used: amount(one.spent), limit: one.limit })}
    ${isSome(one.unsure) && ` ${t('+ {n} unsure', { n: amount(one.unsure) })}`}${isSome(one.held) && ` ${t('+ {n} held by nodes', { n: amount(one.held) })}`}
    ${one.next && ` ${t('(next period: {at})', { at: near(one.next) })}`}</span></p>`);
}

/** Page of a limit. */
export function Limit({ limit: name }) {
  const read = useResource(`/v1/limits/${part(name)}`, { every: 2000 });
  const acts = read.data && html`<${ActButton} action=${{ ...setLimit(read.data), after: read.reload }}>${t('Change')}<//><${ActButton} class="is-danger" action=${removeLimit(read.data)} />`;
  return html`<${Page} title=${name} up=${[['/limits', t('Limits')]]} acts=${acts}><${Whole} of=${read}>${(limit) => html`
    <${Pairs} of=${[[t('Rate'), limit.rate], [t('Concurrency'), limit.concurrency], [t('Limits in units'), limit.metering?.limits?.join(', ')], [t('Businesses'), limit.businesses.map((one) => html`<a class="link" key=${one} href=${`/businesses/${one}`}>${one}</a> `)]]} />
    ${limit.uses.length > 0 && html`<${Section} title=${t('Used')}><${Uses} limit=${limit} /><//>`}
    <${Section} title=${t('Shares by node')}><${Parts} limit=${limit} /><//>
    <${Section} title=${t('Tasks that use it')} aside=${count(limit.tasks_total)}>${limit.tasks.map((one) => html`<p class="row" key=${one.id}><a class="link" href=${`/tasks/${one.id}`}>${one.id}</a> ${one.business} <${TaskStatus} task=${one} /></p>`)}<//>`}<//><//>`;
}
