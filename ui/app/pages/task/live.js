/** @file Live tab of a task: window, throughput against target, call times, errors and bottlenecks. */
import { html, useEffect, useMemo, useRef, useState } from '../../../vendor/preact-htm.js';
import { get, part } from '../../lib/api.js';
import { count } from '../../lib/format.js';
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
const FOLDED_MS = 2000;
/** Up to this share of a window, or this number of items, it is folded. */
const NEARLY_EMPTY = 0.1;
const FEW = 3;
/** About two pixels per point of a plot. */
const POINTS_MAX = 180;

function useWindow(id, everyMs) {
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
    const timer = everyMs ? setInterval(read, everyMs) : 0;
    return () => { isOver = true; clearInterval(timer); };
  }, [id, everyMs]);
  return state;
}

const sum = (shards, of) => shards.reduce((all, one) => all + of(one), 0);

/** Windows of all shards in one strip. Folded while nearly empty, until somebody opens or closes it. */
function Windows({ task }) {
  const isLive = task.status === 'running' || task.status === 'stopping';
  const [chosen, setChosen] = useState(null);
  const wasFull = useRef(false);
  const isOpen = chosen ?? wasFull.current;
  const found = useWindow(task.id, isLive && (isOpen ? WINDOW_MS : FOLDED_MS));
  const shards = (found?.shards ?? []).filter((one) => one.capacity != null || one.high_water > one.watermark);
  const [used, all] = [sum(shards, (one) => one.high_water - one.watermark), sum(shards, (one) => one.capacity ?? 0)];
  if (used > Math.max(FEW, all * NEARLY_EMPTY)) wasFull.current = true;
  if (!isLive && !shards.length) return null;
  const toggle = (event) => { event.preventDefault(); setChosen(!isOpen); };
  return html`<details class="section" open=${isOpen}><summary onClick=${toggle}><h2>${t('In-flight window')}</h2>
      ${isLive ? found && t('{n:item|items} in it', { n: count(used) }) : t('as last saved')}</summary>
    <div class="strip-room">${isOpen && shards.length > 0 && html`<${Strip} task=${task} shards=${shards} />`}</div></details>`;
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
      <div class=${isLive ? 'plots is-paired' : 'plots'}><${ThroughputPlot} ...${common} />${isLive && html`<${Why} task=${task} />`}<${LatencyPlot} ...${common} /><${ErrorsPlot} ...${common} watched=${watched} /></div>
    <//>`}`;
}
