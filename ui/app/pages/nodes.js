/** @file List of nodes with capacity, load and draining. */
import { html } from '../../vendor/preact-htm.js';
import { drain } from '../lib/actions_more.js';
import { count, perSecond, rate, span } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Pairs, Section, Whole } from '../parts/basic.js';
import { Icon } from '../parts/icon.js';
import { Page } from '../parts/shell.js';
import { NodeStatus } from '../parts/status.js';
import { Table } from '../parts/table.js';

/** Reserved rate of a node, with a bar if it has a capacity. */
export function Taken({ node }) {
  const most = perSecond(node.capacity_rate);
  const used = perSecond(node.reserved_rate) ?? 0;
  if (node.reserved_rate == null) return html`<span class="soft">${t('unknown')}</span>`;
  return html`<span class="row">${most ? html`<span class="bar"><i class="of-in_flight" style=${{ width: `${Math.min(100, (used / most) * 100)}%` }}></i></span>` : ''}
    <span class="nowrap">${rate(used)} <span class="soft">/ ${most ? `${rate(most)}/s` : t('unlimited')}</span></span></span>`;
}

function columns() {
  return [
    { head: t('Node'), class: 'fill main-cell', cell: (node) => html`<a class="strong" data-row href=${`/nodes/${encodeURIComponent(node.id)}`}>${node.id}</a> <span class="soft">${node.address}</span>` },
    { head: t('State'), cell: (node) => html`<${NodeStatus} state=${node.state} />${node.live.state === 'unreachable' && html` <span class="bad" title=${node.live.why}>${t('unreachable')}</span>`}` },
    { head: t('Reserved'), class: 'progress-cell', cell: (node) => html`<${Taken} node=${node} />` },
    { head: t('Runs'), class: 'num', cell: (node) => count(node.runs.length) },
    { head: t('Waiting'), class: 'num', cell: (node) => count(node.waiting) },
    { head: t('Uptime'), class: 'num', cell: (node) => span(node.uptime_seconds) },
    { head: t('Version'), cell: (node) => node.version },
    { head: t('Pools'), cell: (node) => node.pools.join(', ') },
    { head: t('Last seen'), class: 'num', cell: (node) => html`<${Ago} at=${node.last_seen} />` },
    { head: t('Drain'), bare: true, class: 'num', cell: (node) => html`<${ActButton} class="is-small" action=${drain(node)} />` },
  ];
}

function Reasons({ cluster }) {
  if (!cluster.reasons.length) return html`<p class="all-well"><${Icon} name="check" class="ok" /> ${t('All nodes are healthy.')}</p>`;
  return html`<ul class="needs">${cluster.reasons.map((one) => html`<li key=${one.text}><${Icon} name="warn" class="bad" /><span class="grow">${one.text}</span></li>`)}</ul>`;
}

function Facts({ cluster }) {
  const { shards } = cluster;
  return html`<${Section} title=${t('Cluster')}><${Pairs} of=${[
    [t('Store'), `${cluster.store} (${cluster.database})`],
    [t('Witness'), cluster.witness],
    [t('Versions'), Object.entries(cluster.versions).map(([version, number]) => `${version} ×${number}`).join(', ')],
    [t('Shards'), t('{owned} owned, {released} waiting, {recovering} recovering, {orphaned} orphaned', shards)],
  ]} /><//>`;
}

/** All nodes. */
export function Nodes() {
  const read = useResource('/v1/cluster', { every: 2000 });
  return html`<${Page} title=${t('Nodes')}><${Whole} of=${read}>${(cluster) => html`
    <${Reasons} cluster=${cluster} />
    <${Table} columns=${columns()} rows=${cluster.nodes} id=${(node) => node.id} label=${t('Nodes')} />
    <${Facts} cluster=${cluster} />`}<//><//>`;
}

