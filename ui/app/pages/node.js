/** @file One node: capacity by task, runs, and actor tree. */
import { html, useState } from '../../vendor/preact-htm.js';
import { capacity, drain } from '../lib/actions_more.js';
import { part } from '../lib/api.js';
import { age, count, perSecond, rate, span } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { mostRate } from '../lib/task.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Copy, Pairs, Section, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { NodeStatus } from '../parts/status.js';
import { Table } from '../parts/table.js';

function flat(actor, depth = 0) {
  return [{ ...actor, depth }, ...actor.children.flatMap((child) => flat(child, depth + 1))];
}

const isSick = (actor) => actor.state !== 'ok' || actor.restarts > 0 || actor.mailbox > 100;

function asText(actors) {
  return actors.map((one) => `${'  '.repeat(one.depth)}${one.path.split('/').pop()} ${one.state} up ${span(one.uptime_seconds)} restarts ${one.restarts} mailbox ${one.mailbox} ${one.text}`).join('\n');
}

function actorColumns() {
  return [
    { head: t('Actor'), class: 'fill main-cell', cell: (one) => html`<span class="mono block cut" style=${{ paddingLeft: `${one.depth * 1.25}rem` }} title=${one.path}>${one.path.split('/').pop()} <span class="soft">${one.text}</span></span>` },
    { head: t('State'), cell: (one) => html`<span class=${one.state === 'ok' ? 'ok' : 'warn'}>${one.state}</span>` },
    { head: t('Uptime'), class: 'num', cell: (one) => span(one.uptime_seconds) },
    { head: t('Restarts'), class: 'num', cell: (one) => html`<span class=${one.restarts ? 'warn' : 'soft'}>${count(one.restarts)}</span>` },
    { head: t('Mailbox'), class: 'num', cell: (one) => count(one.mailbox) },
    { head: t('Last message'), class: 'num w5', cell: (one) => age(one.last_handled_seconds) },
  ];
}

function Actors({ name }) {
  const [isSickOnly, setSickOnly] = useState(false);
  const read = useResource(`/v1/nodes/${part(name)}/actors?format=json`, { every: 1000 });
  const all = read.data ? read.data.flatMap((one) => flat(one)) : [];
  const shown = isSickOnly ? all.filter(isSick) : all;
  return html`<${Section} title=${t('Actors')} aside=${count(all.length)} end=${html`
      <label class="check"><input type="checkbox" checked=${isSickOnly} onChange=${(event) => setSickOnly(event.target.checked)} />${t('Unhealthy only')}</label>
      <${Copy} text=${asText(all)}>${t('Copy as text')}<//>`}>
    <${Whole} of=${read}>${() => html`<${Table} columns=${actorColumns()} rows=${shown} id=${(one) => one.path} label=${t('Actors')} isDense=${true} />`}<//><//>`;
}

const FILLS = ['of-in_flight', 'of-succeeded', 'of-parked', 'of-retry', 'of-skipped'];

/** Reserved rate by task, as a stacked bar over the capacity. */
function Shares({ node, tasks }) {
  const most = perSecond(node.capacity_rate) ?? perSecond(node.reserved_rate) ?? 1;
  const parts = tasks.map((task) => {
    const own = task.shard_list.filter((shard) => node.runs.some((run) => run.task === task.id && `${task.id}.${run.shard}` === shard.shard));
    const share = own.reduce((sum, shard) => sum + shard.rate_share, 0);
    return { task, rate: (mostRate(task) ?? perSecond(node.unlimited_reserves) ?? 0) * share };
  });
  return html`<${Section} title=${t('Capacity')} aside=${t('{used} of {all} reserved', { used: node.reserved_rate ?? '–', all: node.capacity_rate })}
      end=${html`<${ActButton} class="is-small" action=${capacity(node)}>${t('Change')}<//>`}>
    <div class="bar is-big">${parts.map((one, at) => html`<i key=${one.task.id} class=${FILLS[at % FILLS.length]} title=${one.task.id} style=${{ width: `${(one.rate / most) * 100}%` }}></i>`)}</div>
    <p class="legend">${parts.map((one, at) => html`<span key=${one.task.id}><i class=${`key ${FILLS[at % FILLS.length]}`}></i><a class="link" href=${`/tasks/${one.task.id}`}>${one.task.id} ${one.task.name}</a> <b>${rate(one.rate)}/s</b></span>`)}</p><//>`;
}

function Details({ node }) {
  const ids = new Set(node.runs.map((run) => run.task));
  const read = useResource(ids.size ? '/v1/tasks?status=running,stopping&limit=200' : null, { every: 3000 });
  const tasks = (read.data?.items ?? []).filter((task) => ids.has(task.id));
  return html`
    <${Pairs} of=${[
      [t('State'), html`<${NodeStatus} state=${node.state} />`],
      node.live.why && [t('Unreachable'), node.live.why],
      [t('Address'), html`${node.address} ${node.address && html`<${Copy} text=${node.address} />`}`],
      [t('Version'), node.version],
      [t('Uptime'), span(node.uptime_seconds)],
      [t('Last seen'), html`<${Ago} at=${node.last_seen} />`],
      [t('Pools'), node.pools.join(', ')],
      [t('Labels'), Object.entries(node.labels).map(([name, value]) => `${name}:${value}`).join(', ') || null],
      [t('Log filter'), node.log_filter],
      [t('Runs'), node.runs.length ? node.runs.map((run) => html`<a class="link" key=${`${run.task}.${run.shard}`} href=${`/tasks/${run.task}`}>${run.task}.${run.shard}</a> `) : t('none')],
    ]} />
    <${Shares} node=${node} tasks=${tasks} />
    ${node.live.state !== 'unreachable' && html`<${Actors} name=${node.id} />`}`;
}

/** Page of a node. */
export function Node({ node: name }) {
  const read = useResource(`/v1/nodes/${part(name)}`, { every: 2000 });
  return html`<${Page} title=${name} up=${[['/nodes', t('Nodes')]]} acts=${read.data && html`<${ActButton} action=${drain(read.data)} />`}>
    <${Whole} of=${read}>${(node) => html`<${Details} node=${node} />`}<//><//>`;
}
