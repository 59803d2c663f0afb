/** @file Overview: key figures, throughput, causes that need a person, running tasks and nodes. */
import { html, useEffect, useMemo, useState } from '../../vendor/preact-htm.js';
import { get, part, path } from '../lib/api.js';
import { start, startAll } from '../lib/actions.js';
import { causes } from '../lib/attention.js';
import { now } from '../lib/clock.js';
import { count, percent, percentOf, rate, stamp } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { listen, paused } from '../lib/live.js';
import { useResource } from '../lib/resource.js';
import { reasonText, statusText } from '../lib/say.js';
import { inSeconds, withGaps } from '../lib/series.js';
import { hasEnded, isSlow, left, settled, target, timeLeft, title, wantedRate } from '../lib/task.js';
import { historyOf, keepTasks, rateOf, tasks } from '../lib/tasks.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Empty, Loading, Section } from '../parts/basic.js';
import { Icon } from '../parts/icon.js';
import { Plot, Spark } from '../parts/plot.js';
import { Page } from '../parts/shell.js';
import { NodeStatus, Progress, TaskStatus } from '../parts/status.js';
import { Table, useCalm } from '../parts/table.js';

const MINUTES = 15;
const STEP = 5;
/** Minimum span of the plot for a node that just started. Seconds. */
const LEAST_S = 180;

/** Subscribes to the cluster: tasks by status, and nodes. */
function useCluster() {
  const [cluster, setCluster] = useState(null);
  useEffect(() => listen('cluster', (_, data) => setCluster(data)), []);
  return cluster;
}

/** Maximum number of causes listed; the rest is behind a link. */
const CAUSES_MAX = 5;
/** Maximum number of members named in a row. */
const NAMED_MAX = 3;

/** Title and explanation of a group of causes, for its first member. */
const SAID = {
  cluster: (_, [one]) => [t('Cluster'), one.text],
  outage: ({ about }, [{ handler_down: down }]) => [t('{name}: handler down', { name: about }), down.example ?? down.code ?? down.class],
  stopped: ({ about, reason }, [one]) => [t('{name}: {reason}', { name: about, reason: reasonText(reason) }), statusText(one)],
  schedule: (_, [one]) => [t('Schedule failing'), one.trouble],
  queued: (_, [one]) => [t('No free capacity'), statusText(one)],
  awaited: ({ about }) => [t('{name}: not ready', { name: about }), t('the business has not reported that it is ready')],
  withheld: ({ about }, [one]) => [t('{name}: not published', { name: about }), t('{n:failed item|failed items}', { n: count(one.counts.failed) })],
  canary: (_, [one]) => [t('Canary done'), t('{done} settled, {failed} failed; review the results', { done: count(settled(one.counts)), failed: count(one.counts.failed) })],
};

function Help({ of: { kind, about, members } }) {
  if (kind === 'canary' || kind === 'stopped') return html`<${ActButton} action=${members.length > 1 ? startAll(members) : start(members[0])} class="is-small">${members.length > 1 ? t('Resume {n}', { n: members.length }) : null}<//>`;
  const to = { cluster: ['/nodes', 'Nodes'], schedule: [`/schedules/${members[0].id}`, 'Open'], withheld: [`/datasets/${part(about)}`, 'Open'] }[kind] ?? [`/tasks/${members[0].id}#why`, 'Explain'];
  return html`<a class="button is-small" href=${to[0]}>${t(to[1])}</a>`;
}

function Cause({ of }) {
  const { kind, members } = of;
  const [title, text] = SAID[kind](of, members);
  const base = kind === 'schedule' ? '/schedules' : '/tasks';
  const named = kind === 'cluster' ? [] : members.slice(0, NAMED_MAX);
  const more = members.length - Math.max(1, named.length);
  return html`<li><${Icon} name=${kind === 'canary' ? 'pause' : 'warn'} class=${kind === 'canary' ? 'run' : 'bad'} /><strong>${title}</strong>
    <span class="grow said" title=${text}>${text}</span>
    <span class="who">${named.map((one) => html`<a class="link cut" key=${one.id} href=${`${base}/${one.id}`} title=${one.name}>${one.id} ${one.name ?? one.business}</a>`)}
      ${more > 0 && html`<span class="soft nowrap">${t('and {n} more', { n: count(more) })}</span>`}</span>
    ${members[0].since && html`<span class="soft num"><${Ago} at=${members[0].since} /></span>`}<${Help} of=${of} /></li>`;
}

/** Causes that need a person, grouped and most urgent first. */
function Attention({ of }) {
  if (!of.length) return html`<p class="all-well"><${Icon} name="check" class="ok" /> ${t('All clear')}</p>`;
  const rest = of.length - CAUSES_MAX;
  return html`<${Section} title=${t('Needs attention')}><ul class="needs">${of.slice(0, CAUSES_MAX).map((one) => html`<${Cause} key=${one.key} of=${one} />`)}
    ${rest > 0 && html`<li><a class="link" href="/tasks?status=running,stopped,queued,awaiting_business">${t('and {n} more', { n: count(rest) })}</a></li>`}</ul><//>`;
}

function Figure({ name, value, href, note, title }) {
  return html`<a href=${href} title=${title}><span class="name">${name}</span><span class="value">${value}</span>${note && html`<span class="note">${note}</span>`}</a>`;
}

function Figures({ cluster, list, today }) {
  const of = (status) => cluster?.tasks[status] ?? 0;
  const number = (value) => (value >= (cluster?.counted_up_to ?? Infinity) ? `≥ ${count(value)}` : count(value));
  const actual = list.reduce((sum, task) => sum + (rateOf(task) ?? 0), 0);
  const items = today?.items[0]?.items;
  const ended = today?.items[0]?.tasks;
  // Nodes count days in UTC: this is when today began by the displayed clock.
  const begun = t('since {time}', { time: stamp(now.value - (now.value % 86_400_000)) });
  return html`<div class="figures">
    <${Figure} name=${t('Running')} value=${number(of('running') + of('stopping') + of('finalizing'))} href="/tasks?status=running,stopping,finalizing" />
    <${Figure} name=${t('Waiting')} value=${number(of('queued') + of('awaiting_business'))} href="/tasks?status=queued,awaiting_business" />
    <${Figure} name=${t('Recovering')} value=${number(of('recovering'))} href="/tasks?status=recovering" />
    <${Figure} name=${t('Stopped')} value=${number(of('stopped'))} href="/tasks?status=stopped" />
    <${Figure} name=${t('Items per second')} value=${rate(actual)} href="/tasks?status=running" />
    <${Figure} name=${t('Settled today')} value=${items ? count(items.succeeded + items.skipped + items.failed) : '–'} href="/statistics" title=${begun} note=${ended && t('{n:task|tasks} finished', { n: count(ended.finished) })} />
    <${Figure} name=${t('Failed today')} value=${items ? count(items.failed) : '–'} href="/statistics" title=${begun} note=${items && percent(items.failed, items.succeeded + items.skipped + items.failed)} />
  </div>`;
}

/** Throughput of all tasks on all nodes in the last minutes. */
function useThroughput() {
  const [series, setSeries] = useState(null);
  useEffect(() => {
    let isOver = false;
    const read = async () => {
      if (document.hidden || paused.value) return;
      const from = new Date(Date.now() - MINUTES * 60_000).toISOString();
      const found = await get(path('/v1/cluster/stats', { from, step: `${STEP}s` })).catch(() => null);
      if (!isOver && found) setSeries(found.series);
    };
    read();
    const timer = setInterval(read, STEP * 1000);
    return () => { isOver = true; clearInterval(timer); };
  }, []);
  return series;
}

function Throughput({ list }) {
  const series = useThroughput();
  const reserved = list.filter((task) => task.status === 'running').reduce((sum, task) => sum + (target(task) ?? 0), 0);
  const data = useMemo(() => (series ? withGaps(inSeconds(series), ['rate', 'errors'], 3 * STEP) : [[], [], []]), [series]);
  const each = (value) => (value == null ? '–' : `${rate(value)}/s`);
  const lines = [
    { name: t('settled'), color: 'run', fill: true, write: each },
    { name: t('failed attempts'), color: 'bad', write: each },
  ];
  const range = () => {
    const to = now.peek() / 1000;
    return [Math.max(to - MINUTES * 60, Math.min(data[0][0] ?? 0, to - LEAST_S)), to];
  };
  return html`<${Section} title=${t('Throughput')} aside=${t('items per second, last {n} minutes', { n: MINUTES })}>
    <${Plot} label=${t('Throughput')} lines=${lines} data=${data} span=${range} write=${rate} least=${Math.max(1, reserved)} /><//>`;
}

function taskColumns() {
  return [
    { head: t('Task'), class: 'main-cell fill', cell: (task) => html`<span class="row"><a data-row href=${`/tasks/${task.id}`} class="cut"><span class="soft">${task.id}</span> ${task.name ?? task.business}</a></span>` },
    { head: t('Progress'), class: 'progress-cell', cell: (task) => html`<span class="row"><${Progress} task=${task} /><span class="num w4">${percentOf(task.progress?.percent)}</span></span>` },
    { head: t('Rate'), class: 'num', cell: (task) => html`<span class=${isSlow(task, rateOf(task)) ? 'warn' : ''}>${rate(rateOf(task))}</span><span class="soft"> / ${wantedRate(task)}</span>` },
    { head: t('Trend'), class: 'hide-s hide-m', cell: (task) => html`<${Spark} values=${historyOf(task.id)} most=${target(task)} label=${t('recent rate')} />` },
    { head: t('Time left'), class: 'num w5', cell: (task) => timeLeft(task) },
  ];
}

function Running({ list }) {
  const running = list.filter((task) => task.status === 'running' || task.status === 'stopping').sort((a, b) => left(b.counts) - left(a.counts));
  const calm = useCalm(running, (task) => task.id);
  return html`<${Section} title=${t('Running')} end=${html`<a class="link" href="/tasks?status=running">${t('all')}</a>`}>
    ${running.length
      ? html`<div ...${calm.over}><${Table} columns=${taskColumns()} rows=${calm.rows.slice(0, 12)} id=${(task) => task.id} label=${t('Running tasks')} /></div>`
      : html`<${Empty} say=${t('No running tasks.')} commands=${['windrow task create hello --total 1000 --rate 50/s --start']}><p><a href="/tasks/new">${t('New task')}</a></p><//>`}<//>`;
}

function Nodes({ nodes }) {
  const columns = [
    { head: t('Node'), class: 'main-cell fill', cell: (node) => html`<a class="cut" href=${`/nodes/${encodeURIComponent(node.id)}`}>${node.id}</a>` },
    { head: t('State'), cell: (node) => html`<${NodeStatus} state=${node.state} />` },
    { head: t('Reserved'), class: 'num', cell: (node) => html`${node.reserved_rate ?? '–'} <span class="soft">/ ${node.capacity_rate === 'unlimited' ? '∞' : node.capacity_rate}</span>` },
    { head: t('Runs'), class: 'num', cell: (node) => count(node.runs) },
  ];
  return html`<${Section} title=${t('Nodes')}><${Table} columns=${columns} rows=${nodes} id=${(node) => node.id} label=${t('Nodes')} /><//>`;
}

function Recent({ list }) {
  // The stream is fresher but lacks redrives.
  const read = useResource('/v1/tasks?status=finished&limit=50', { every: 10_000 });
  const redriven = new Map(read.data?.items.map((task) => [task.id, task.redriven]));
  const ended = list.filter(hasEnded).map((task) => ({ redriven: redriven.get(task.id), ...task })).sort((a, b) => (a.finished_at < b.finished_at ? 1 : -1)).slice(0, 8);
  if (!ended.length) return null;
  const columns = [
    { head: t('Task'), class: 'main-cell fill', cell: (task) => html`<a class="cut" href=${`/tasks/${task.id}`}><span class="soft">${task.id}</span> ${title(task) === task.id ? task.business : task.name}</a>` },
    { head: t('Status'), cell: (task) => html`<${TaskStatus} task=${task} />` },
    { head: t('Ended'), class: 'num', cell: (task) => html`<${Ago} at=${task.finished_at} />` },
  ];
  return html`<${Section} title=${t('Recently ended')}><${Table} columns=${columns} rows=${ended} id=${(task) => task.id} label=${t('Recently ended')} /><//>`;
}

/** Overview page. */
export function Overview() {
  useEffect(keepTasks, []);
  const cluster = useCluster();
  const today = useResource(`/v1/statistics?by=day&since=${new Date().toISOString().slice(0, 10)}T00:00:00Z`, { every: 10_000 });
  const stopped = useResource('/v1/tasks?status=stopped,queued,awaiting_business&limit=50', { every: 10_000 });
  const health = useResource('/v1/cluster', { every: 10_000 });
  const schedules = useResource('/v1/schedules?limit=200', { every: 30_000 });
  if (!tasks.value) return html`<${Page} title=${t('Overview')}><${Loading} /><//>`;
  const list = [...tasks.value.values()];
  const known = new Map([...(stopped.data?.items ?? []).map((task) => [task.id, task]), ...tasks.value]);
  const reasons = (health.data?.reasons ?? []).filter((one) => one.reason !== 'none_takes_tasks' || list.length);
  return html`<${Page} title=${t('Overview')} acts=${html`<a class="button is-main" href="/tasks/new" data-key="c"><${Icon} name="plus" />${t('New task')}</a>`}>
    <${Figures} cluster=${cluster} list=${list} today=${today.data} />
    <${Throughput} list=${list} />
    <${Attention} of=${causes({ tasks: [...known.values()], schedules: schedules.data?.items ?? [], reasons }, now.value)} />
    <div class="columns is-wide">
      <div><${Running} list=${list} /></div>
      <div><${Nodes} nodes=${cluster?.nodes ?? []} /><${Recent} list=${list} /></div>
    </div><//>`;
}
