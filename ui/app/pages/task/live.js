/** @file Live tab of a task: window, throughput against target, call times, errors and bottlenecks. */
import { html, useEffect, useMemo, useState } from '../../../vendor/preact-htm.js';
import { get, part } from '../../lib/api.js';
import { t } from '../../lib/i18n.js';
import { paused } from '../../lib/live.js';
import { useResource } from '../../lib/resource.js';
import { route, withQuery } from '../../lib/router.js';
import { SPANS, thinned, useSeries } from '../../lib/series.js';
import { hasEnded } from '../../lib/task.js';
import { Section, Segments } from '../../parts/basic.js';
import { Strip } from '../../parts/strip.js';
import { Preview } from './preview.js';
import { ErrorsPlot, LatencyPlot, ThroughputPlot } from './plots.js';
import { Why } from './why.js';

const WINDOW_MS = 500;
/** Maximum number of shards drawn. */
const STRIPS_MAX = 6;
/** About two pixels per point of a plot. */
const POINTS_MAX = 180;

function useWindow(id, isLive) {
  const [state, setState] = useState(null);
  useEffect(() => {
    let isOver = false;
    let isBusy = false;
    const read = async () => {
      if (isBusy || document.hidden || paused.value) return;
      isBusy = true;
      const found = await get(`/v1/tasks/${part(id)}/window?cells=4096`).catch(() => null);
      isBusy = false;
      if (!isOver && found) setState(found);
    };
    read();
    const timer = isLive ? setInterval(read, WINDOW_MS) : 0;
    return () => { isOver = true; clearInterval(timer); };
  }, [id, isLive]);
  return state;
}

function Windows({ task }) {
  const isLive = task.status === 'running' || task.status === 'stopping';
  const found = useWindow(task.id, isLive);
  if (!found) return html`<${Section} title=${t('In-flight window')}><div class="strip-room"></div><//>`;
  if (!isLive && found.shards.every((shard) => shard.high_water === shard.watermark)) return null;
  const shards = found.shards.slice(0, STRIPS_MAX);
  return html`<${Section} title=${t('In-flight window')} aside=${isLive ? null : t('as last saved')}
      end=${found.shards.length > STRIPS_MAX && html`<span class="soft">${t('{n} of {all} shards', { n: STRIPS_MAX, all: found.shards.length })}</span>`}>
    ${shards.map((shard) => html`<div key=${shard.shard}>
      ${found.shards.length > 1 && html`<p class="soft">${task.id}.${shard.shard} ${shard.node}</p>`}
      <${Strip} task=${task} shard=${shard} label=${t('Window of {shard}', { shard: `${task.id}.${shard.shard}` })} /></div>`)}<//>`;
}

/** Times of changes to the task. */
function useMarks(task, changed) {
  const read = useResource(`/v1/tasks/${part(task.id)}/revisions?limit=20&v=${changed}`.replace(/&v=\d+/, ''), { every: 10_000 });
  useEffect(() => {
    if (changed) read.reload();
  }, [changed]);
  return (read.data?.items ?? []).filter((one) => one.action !== 'task.create').map((one) => ({ at: Date.parse(one.at) / 1000, text: one.action }));
}

function Spans({ present }) {
  return html`<${Segments} label=${t('Time')} items=${Object.keys(SPANS).map((name) => ({
    href: withQuery({ span: name === '15m' ? null : name }), isCurrent: name === present, text: name,
  }))} />`;
}

/** Right edge of the plots: now, or shortly after the end of an ended task, so that they stay in place. */
function until(task) {
  return hasEnded(task) && task.finished_at ? Date.parse(task.finished_at) / 1000 + 5 : Date.now() / 1000;
}

/** Live tab. */
export function Live({ task, watched }) {
  const wish = route.value.query.get('span');
  const name = SPANS[wish] ? wish : '15m';
  const isLive = !hasEnded(task) && task.status !== 'created';
  const { series: points, latency } = useSeries(task.id, name, isLive);
  const series = useMemo(() => thinned(points, POINTS_MAX), [points]);
  const marks = useMarks(task, watched.changed);
  const [length] = SPANS[name];
  const span = () => {
    const to = until(task);
    const first = series.time[0] ?? to - length;
    return [Math.max(to - length, Math.min(first, to - 60)), to];
  };
  const common = { task, series, span, marks, latency };
  return html`
    ${['created', 'stopped'].includes(task.status) && html`<${Preview} task=${task} />`}
    ${!hasEnded(task) && task.status !== 'created' && html`<${Windows} task=${task} />`}
    ${task.status !== 'created' && html`<${Section} title=${t('Recent activity')} end=${html`<${Spans} present=${name} />`}>
      <div class="plots"><${ThroughputPlot} ...${common} /><${LatencyPlot} ...${common} /><${ErrorsPlot} ...${common} watched=${watched} /></div>
    <//>`}
    ${isLive && html`<${Why} task=${task} />`}`;
}
