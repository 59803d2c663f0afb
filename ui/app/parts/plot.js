/** @file Lines over time, from zero. The legend says the last value, or the one under the pointer; a table says all. */
import { html, useEffect, useLayoutEffect, useRef, useState } from '../../vendor/preact-htm.js';
import uPlot from '../../vendor/uplot.js';
import { clock, minute } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { color, look } from '../lib/palette.js';

/** @typedef {{name: string, color: string, dashed?: boolean, fill?: boolean, write: (value: number | null) => string}} Line */

/** So few points make no line: each is shown. */
const FEW = 4;
const FONT = '11px system-ui, "Noto Sans", sans-serif';

function axis(extra) {
  return {
    stroke: () => color('soft'),
    font: FONT,
    grid: { stroke: () => color('line'), width: 1 },
    ticks: { show: false },
    gap: 4,
    ...extra,
  };
}

function seriesOf(line) {
  return {
    label: line.name,
    stroke: () => color(line.color),
    width: 1.5,
    dash: line.dashed ? [4, 4] : undefined,
    fill: line.fill ? () => color(line.color).replace('rgb', 'rgba').replace(')', ', .12)') : undefined,
    points: { show: (plot) => plot.data[0].length < FEW, size: 5, fill: () => color(line.color) },
    spanGaps: false,
  };
}

/** Vertical lines at moments that mean something. */
function drawMarks(marks) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = color('warn');
    ctx.setLineDash([2, 3]);
    for (const mark of marks.current ?? []) {
      const x = Math.round(plot.valToPos(mark.at, 'x', true)) + 0.5;
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };
}

function options({ lines, span, size, sync, marks, hover, write, least }) {
  return {
    ...size,
    padding: [8, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, sync: sync ? { key: sync } : undefined, drag: { x: false, y: false } },
    scales: { x: { time: true, range: () => span.current() }, y: { range: (_, __, most) => [0, Math.max(most ?? 0, least) * 1.08] } },
    axes: [
      axis({ size: 22, space: 70, values: (_, all) => all.map((at) => (all[1] - all[0] < 60 ? clock : minute)(at * 1000)) }),
      axis({ size: 44, space: 32, values: (_, all) => all.map(write) }),
    ],
    series: [{}, ...lines.map(seriesOf)],
    hooks: { draw: [drawMarks(marks)], setCursor: [(plot) => hover(plot.cursor.idx ?? null)] },
  };
}

function useSize(place) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const measure = () => setSize({ width: place.current.clientWidth, height: place.current.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(place.current);
    measure();
    return () => watch.disconnect();
  }, []);
  return size;
}

function Legend({ lines, data, at }) {
  const shown = at ?? data[0].length - 1;
  return html`<div class="legend">${lines.map((line, index) => html`<span key=${line.name}>
    <i class=${`stroke ${line.dashed ? 'is-dashed' : ''}`} style=${{ borderColor: `var(--${line.color})` }}></i>${line.name}
    <b>${line.write(data[index + 1][shown] ?? null)}</b></span>`)}
    ${at != null && html`<span>${clock(data[0][at] * 1000)}</span>`}</div>`;
}

const ROWS = 30;

function AsTable({ lines, data, label }) {
  const rows = data[0].map((_, index) => index).slice(-ROWS).reverse();
  return html`<table class="table" aria-label=${label}><thead><tr><th scope="col">${t('time')}</th>
    ${lines.map((line) => html`<th scope="col" class="num" key=${line.name}>${line.name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row}><td>${clock(data[0][row] * 1000)}</td>
      ${lines.map((line, index) => html`<td class="num" key=${line.name}>${line.write(data[index + 1][row] ?? null)}</td>`)}</tr>`)}</tbody></table>`;
}

/**
 * A plot.
 * @param {{label: string, lines: Line[], data: number[][], span: () => [number, number], sync?: string,
 *   marks?: {at: number, text: string}[], write: (value: number) => string, least?: number}} props
 * data: times in seconds, then one list a line; least: the y axis reaches at least so far
 */
export function Plot({ label, lines, data, span, sync, marks, write, least = 1 }) {
  const [place, plot, marked, spans] = [useRef(null), useRef(null), useRef(marks), useRef(span)];
  const [at, setAt] = useState(null);
  const [isTable, setTable] = useState(false);
  const size = useSize(place);
  marked.current = marks;
  spans.current = span;
  const scheme = look();
  useEffect(() => {
    if (!size.width) return undefined;
    plot.current = new uPlot(options({ lines, span: spans, size, sync, marks: marked, hover: setAt, write, least }), data, place.current);
    return () => plot.current?.destroy();
  }, [size.width, size.height, scheme, lines.length, isTable]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [data, marks]);
  return html`<figure class="plot" aria-label=${label}>
    <div class="row"><div class="grow"><${Legend} lines=${lines} data=${data} at=${at} /></div>
      <button type="button" class="copy" aria-pressed=${isTable} title=${t('As a table')} aria-label=${t('{label} as a table', { label })}
        onClick=${() => setTable(!isTable)}>≡</button></div>
    <div class="canvas" ref=${place} aria-hidden="true" hidden=${isTable}></div>
    ${isTable && html`<div class="canvas" tabindex="0" role="region" aria-label=${label} style=${{ overflow: 'auto' }}><${AsTable} lines=${lines} data=${data} label=${label} /></div>`}
  </figure>`;
}

/** A line as small as a word. */
export function Spark({ values, most, label }) {
  const [width, height] = [80, 20];
  const top = Math.max(most ?? 0, ...values, 0.001);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 1 - (Math.min(value, top) / top) * (height - 3)).toFixed(1)}`).join(' ');
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label=${label}>
    <polyline points=${points} fill="none" stroke="currentColor" stroke-width="1.25" vector-effect="non-scaling-stroke" /></svg>`;
}
