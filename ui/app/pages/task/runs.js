/** @file Runs of a task: one lane per shard, and a table of runs. */
import { html } from '../../../vendor/preact-htm.js';
import { part, path } from '../../lib/api.js';
import { count, span, stamp } from '../../lib/format.js';
import { now } from '../../lib/clock.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { route } from '../../lib/router.js';
import { sh } from '../../lib/command.js';
import { Empty, Section, Stamp, Whole } from '../../parts/basic.js';
import { Pager, Table } from '../../parts/table.js';

const FILLS = ['run-fill', 'ok-fill', 'park-fill', 'warn-fill', 'edge'];
const LANES_MAX = 16;

const begin = (run) => Date.parse(run.started_at);
const end = (run) => (run.ended_at ? Date.parse(run.ended_at) : now.value);

function Lane({ runs, from, to, nodes }) {
  const scale = (time) => ((time - from) / Math.max(1, to - from)) * 1000;
  return html`<svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=${runs.map((run) => `${run.node} ${stamp(run.started_at)}`).join(', ')}>
    <rect x="0" y="9" width="1000" height="2" fill="var(--none-fill)" />
    ${runs.map((run) => html`<rect key=${run.run} x=${scale(begin(run))} y="3" width=${Math.max(2, scale(end(run)) - scale(begin(run)))} height="14"
      fill=${`var(--${FILLS[nodes.indexOf(run.node) % FILLS.length]})`}><title>${`${run.node} ${stamp(run.started_at)} ${run.end_text ?? run.end_reason ?? ''}`}</title></rect>`)}</svg>`;
}

function Lanes({ task, runs }) {
  const nodes = [...new Set(runs.map((run) => run.node))];
  const [from, to] = [Math.min(...runs.map(begin)), Math.max(...runs.map(end))];
  const shards = [...new Set(runs.map((run) => run.shard))].sort((a, b) => a - b).slice(0, LANES_MAX);
  return html`<div class="times">${shards.map((shard) => html`<div class="lane" key=${shard}><span class="soft">${task.id}.${shard}</span>
      <${Lane} runs=${runs.filter((run) => run.shard === shard)} from=${from} to=${to} nodes=${nodes} /></div>`)}
    <p class="legend"><span>${stamp(from)} – ${stamp(to)}</span>${nodes.map((node, at) => html`<span key=${node}><i class="key" style=${{ background: `var(--${FILLS[at % FILLS.length]})` }}></i>${node ?? t('unknown')}</span>`)}</p></div>`;
}

const ENDS = { released: 'handed over', done: 'done', stopped: 'stopped', recovering: 'failed, recovering', lost: 'node lost' };

function columns(task) {
  return [
    { head: t('Run'), class: 'nowrap', cell: (run) => `${task.id}.${run.shard} ${t('run {n}', { n: run.run })}` },
    { head: t('Node'), cell: (run) => html`<a class="link" href=${`/nodes/${encodeURIComponent(run.node ?? '')}`}>${run.node}</a>` },
    { head: t('Started'), cell: (run) => html`<${Stamp} at=${run.started_at} />` },
    { head: t('Duration'), class: 'num', cell: (run) => span((end(run) - begin(run)) / 1000) },
    { head: t('End'), class: 'fill main-cell', cell: (run) => (run.ended_at ? html`${t(ENDS[run.end_reason] ?? run.end_reason ?? '')} <span class="soft">${run.end_text}</span>` : html`<span class="run">${t('running')}</span>`) },
    { head: t('Watermark'), class: 'num', cell: (run) => count(run.watermark) },
    { head: t('Succeeded'), class: 'num', cell: (run) => count(run.counts.succeeded) },
    { head: t('Failed'), class: 'num', cell: (run) => count(run.counts.failed) },
  ];
}

/** Runs tab. */
export function Runs({ task, watched }) {
  const at = path(`/v1/tasks/${part(task.id)}/runs`, { limit: 100, cursor: route.value.query.get('cursor') });
  const read = useResource(at, { every: watched.moved ? 3000 : 8000, keep: true });
  return html`<${Whole} of=${read}>${({ items, next_cursor: next }) => (items.length
    ? html`<${Section} title=${t('Ownership timeline')}><${Lanes} task=${task} runs=${items} /><//>
      <${Section} title=${t('Runs')} aside=${count(items.length) + (next ? '+' : '')}><${Table} columns=${columns(task)} rows=${items} id=${(run) => `${run.shard} ${run.run}`} label=${t('Runs')} /><${Pager} next=${next} /><//>`
    : html`<${Empty} say=${t('No runs yet.')} commands=${[sh`windrow task start ${task.id}`]} />`)}<//>`;
}
