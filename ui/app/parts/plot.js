/** @file Plot of lines over time, from zero. The legend shows the last or the pointed value; a table shows all. */
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../../vendor/preact-htm.js';
import { nearest } from '../lib/axes.js';
import { draw, frame, under } from '../lib/draw.js';
import { clock } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { look } from '../lib/palette.js';

/** @typedef {{name: string, color: string, dashed?: boolean, fill?: boolean, write: (value: number | null) => string, idle?: string}} Line
 * idle: text of the legend if there is no last value */

/** Pointed time, and the key of the plots that share it. */
const pointer = signal({ key: null, time: 0 });

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

function written(line, value, at) {
  return at == null && value == null && line.idle ? line.idle : line.write(value);
}

function Legend({ lines, data, at }) {
  const shown = at ?? data[0].length - 1;
  return html`<div class="legend">${lines.map((line, index) => html`<span key=${line.name}>
    <i class=${`stroke ${line.dashed ? 'is-dashed' : ''}`} style=${{ borderColor: `var(--${line.color})` }}></i>${line.name}
    <b>${written(line, data[index + 1][shown] ?? null, at)}</b></span>`)}
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
 * Plot.
 * @param {{label: string, lines: Line[], data: number[][], span: () => [number, number], sync?: string,
 *   marks?: {at: number, text: string}[], write: (value: number) => string, least?: number}} props
 * data: times in seconds, then one list per line; sync: plots with the same key share a pointer; least: minimum top of the y axis
 */
export function Plot({ label, lines, data, span, sync, marks, write, least = 1 }) {
  const place = useRef(null);
  const [isTable, setTable] = useState(false);
  const size = useSize(place);
  const key = useMemo(() => sync ?? {}, [sync]);
  const at = pointer.value.key === key ? nearest(data[0], pointer.value.time) : null;
  const box = frame(size, data, span(), least);
  // Renders again when the theme changes.
  look();
  useEffect(() => {
    if (size.width && !isTable) draw(place.current.firstChild, box, { lines, data, marks, pointed: at, write });
  });
  const point = (event) => {
    const found = under(box, event.offsetX, data);
    pointer.value = { key: found == null ? null : key, time: data[0][found] };
  };
  const leave = () => { pointer.value = { key: null, time: 0 }; };
  return html`<figure class="plot" aria-label=${label}>
    <div class="row"><div class="grow"><${Legend} lines=${lines} data=${data} at=${at} /></div>
      <button type="button" class="copy" aria-pressed=${isTable} title=${t('Show as table')} aria-label=${t('{label} as a table', { label })}
        onClick=${() => setTable(!isTable)}>≡</button></div>
    <div class="canvas" ref=${place} aria-hidden="true" hidden=${isTable}><canvas onPointerMove=${point} onPointerLeave=${leave}></canvas></div>
    ${isTable && html`<div class="canvas" tabindex="0" role="region" aria-label=${label} style=${{ overflow: 'auto' }}><${AsTable} lines=${lines} data=${data} label=${label} /></div>`}
  </figure>`;
}

/** Sparkline. */
export function Spark({ values, most, label }) {
  const [width, height] = [80, 20];
  const top = Math.max(most ?? 0, ...values, 0.001);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 1 - (Math.min(value, top) / top) * (height - 3)).toFixed(1)}`).join(' ');
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label=${label}>
    <polyline points=${points} fill="none" stroke="currentColor" stroke-width="1.25" vector-effect="non-scaling-stroke" /></svg>`;
}
