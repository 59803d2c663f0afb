/** @file Three plots of a task with a shared pointer. */
import { html, useMemo, useState } from '../../../vendor/preact-htm.js';
import { autoText, count, perSecond, rate, share, span as length } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { withGaps } from '../../lib/series.js';
import { isAuto, target } from '../../lib/task.js';
import { Plot } from '../../parts/plot.js';

const each = (value) => (value == null ? '–' : `${rate(value)}/s`);
const seconds = (value) => (value == null ? '–' : length(value));

function useData(series, names) {
  const step = series.time.length > 1 ? series.time.at(-1) - series.time.at(-2) : 1;
  return useMemo(() => withGaps(series, names, Math.max(4, step * 3)), [series]);
}

function Figure({ title, children, end }) {
  return html`<div><h3 class="row"><span class="grow">${title}</span>${end}</h3>${children}</div>`;
}

/** Limits that the autopilot has found, in a line. */
function Autopilot({ found }) {
  if (!found) return null;
  const { scouting } = found;
  const parts = [
    t('{n} in flight', { n: count(found.in_flight) }),
    found.rate != null && t('up to {rate}/s', { rate: rate(found.rate) }),
    found.refused_above != null && t('refused above {n} in flight', { n: count(found.refused_above) }),
    t('{share} refused', { share: share(found.refused_share) }),
    found.latency_seconds != null && t('calls {now}, {best} at best', { now: length(found.latency_seconds), best: length(found.best_latency_seconds) }),
    scouting && t('one call at a time for {span}, next in {next}', { span: length(scouting.since_seconds), next: length(scouting.next_seconds) }),
  ];
  return html`<p class="legend"><span><b>${t('Autopilot')}</b></span>${parts.filter(Boolean).map((part) => html`<span key=${part}>${part}</span>`)}</p>`;
}

/** Rate found and refused attempts per second, where an autopilot steers the task. */
function useFound(series) {
  const lists = useData(series, ['sent', 'found_rate', 'refused_share']);
  const isSteered = series.refused_share.some((value) => value != null);
  const refused = useMemo(() => lists[1].map((sent, at) => (lists[3][at] == null ? null : sent * lists[3][at])), [lists]);
  if (!isSteered) return { data: [], lines: [] };
  const found = { data: [refused], lines: [{ name: t('refused'), color: 'bad', write: each }] };
  // A task with a set rate has none that was found.
  if (!series.found_rate.some((value) => value != null)) return found;
  return { data: [lists[2], ...found.data], lines: [{ name: t('rate found'), color: 'warn', dashed: true, write: each }, ...found.lines] };
}

/** Attempts sent per second against the target rate, and what the autopilot found. There is no target while nothing runs; the legend then shows the task's rate. */
export function ThroughputPlot({ task, series, span, marks }) {
  const data = useData(series, ['sent', 'target']);
  const found = useFound(series);
  const isUnlimited = target(task) == null;
  const none = isAuto(task) ? autoText(task.rate) : t('unlimited');
  const lines = [
    { name: t('sent'), color: 'run', fill: true, write: each },
    { name: t('target'), color: 'soft', dashed: true, write: (value) => (value == null && isUnlimited ? none : each(value)), idle: isUnlimited ? none : each(target(task)) },
    ...found.lines,
  ];
  return html`<${Figure} title=${t('Throughput against target')}>
    <${Plot} label=${t('Throughput against target')} lines=${lines} data=${[...data, ...found.data]} span=${span} marks=${marks} sync=${task.id} write=${rate} least=${target(task) ?? 1} />
    <${Autopilot} found=${task.live?.autopilot} /><//>`;
}

function Spread({ latency }) {
  const buckets = latency?.buckets ?? [];
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  if (!buckets.length) return html`<p class="soft">${t('No calls completed yet.')}</p>`;
  return html`<div class="spread" role="img" aria-label=${t('Distribution of call times')}>
    ${buckets.map((bucket) => html`<div key=${bucket.from_seconds} title=${`${count(bucket.count)}: ${length(bucket.from_seconds)} – ${length(bucket.to_seconds)}`}>
      <i style=${{ height: `${Math.max(1, (bucket.count / most) * 100)}%` }}></i><span>${length(bucket.to_seconds)}</span></div>`)}</div>
    <p class="soft">${t('{n:call|calls}', { n: count(latency.count) })}, p50 ${seconds(latency.p50)}, p95 ${seconds(latency.p95)}, p99 ${seconds(latency.p99)}</p>`;
}

/** Call times, as percentiles or as a distribution. */
export function LatencyPlot({ task, series, span, marks, latency }) {
  const [isSpread, setSpread] = useState(false);
  const data = useData(series, ['p50', 'p95', 'p99']);
  const lines = [
    { name: 'p50', color: 'ok', write: seconds },
    { name: 'p95', color: 'run', write: seconds },
    { name: 'p99', color: 'warn', write: seconds },
  ];
  const end = html`<span class="segments"><button type="button" aria-pressed=${!isSpread} onClick=${() => setSpread(false)}>${t('over time')}</button>
    <button type="button" aria-pressed=${isSpread} onClick=${() => setSpread(true)}>${t('distribution')}</button></span>`;
  return html`<${Figure} title=${t('Call times')} end=${end}>${isSpread
    ? html`<${Spread} latency=${latency} />`
    : html`<${Plot} label=${t('Call times')} lines=${lines} data=${data} span=${span} marks=${marks} sync=${task.id} write=${(value) => length(value)} least=${0.01} />`}<//>`;
}

/** Error budget and its use. */
function Budget({ task }) {
  const written = task.error_budget;
  if (written === 'none') return html`<span class="soft">${t('no error budget')}</span>`;
  if (/\/|auto/.test(written)) return html`<span class="soft">${t('budget {budget}', { budget: written })}</span>`;
  const most = written.endsWith('%') ? (task.total * Number.parseFloat(written)) / 100 : Number.parseFloat(written);
  return html`<span class="soft">${t('{share} of the {budget} budget used', { share: share(most ? task.counts.failed / most : 0), budget: written })}</span>`;
}

/** Failed attempts, and the most frequent codes. */
export function ErrorsPlot({ task, series, span, marks, watched }) {
  const data = useData(series, ['errors']);
  const budget = /\//.test(task.error_budget) ? perSecond(task.error_budget) : null;
  const withBudget = budget == null ? data : [...data, data[0].map(() => budget)];
  const lines = [
    { name: t('failed attempts'), color: 'bad', fill: true, write: each },
    ...(budget == null ? [] : [{ name: t('budget'), color: 'soft', dashed: true, write: each }]),
  ];
  const groups = useResource(task.counts.failed ? `/v1/tasks/${task.id}/failures/groups` : null, { every: watched.failed ? 5000 : 15_000 });
  const codes = groups.data?.items.slice(0, 3) ?? [];
  return html`<${Figure} title=${t('Errors')} end=${html`<${Budget} task=${task} />`}>
    <${Plot} label=${t('Errors')} lines=${lines} data=${withBudget} span=${span} marks=${marks} sync=${task.id} write=${rate} least=${budget ?? 1} />
    <p class="legend">${codes.map((group) => html`<a key=${group.code} class="nowrap" href=${`/tasks/${task.id}/failures`}><code>${group.code}</code> ${count(group.count)}</a>`)}</p><//>`;
}
