/** @file In-flight window as a strip of cells on a canvas, with the item that holds the watermark. */
import { html, useLayoutEffect, useRef, useState } from '../../vendor/preact-htm.js';
import { count, span } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { look, pixel } from '../lib/palette.js';
import { go } from '../lib/router.js';
import { glyphs, layout, paint, shown } from '../lib/strip.js';

const HEIGHT = 60;
const COLORS = ['ok-fill', 'free', 'run-fill', 'park-fill', 'warn-fill', 'bad-fill'];
const WORDS = ['settled', 'free', 'in flight', 'parked', 'retrying', 'failed'];
const KEYS = ['of-succeeded', 'of-pending', 'of-in_flight', 'of-parked', 'of-retry', 'of-failed'];

function outline(context, pitch, size) {
  context.strokeStyle = getComputedStyle(context.canvas).color;
  context.lineWidth = Math.max(1, Math.round(pitch / 8));
  context.strokeRect(context.lineWidth / 2, context.lineWidth / 2, size - context.lineWidth, size - context.lineWidth);
}

/** Paints a picture and records its duration in milliseconds on the canvas. */
function draw(canvas, picture, place, ratio) {
  const begun = performance.now();
  const [width, height] = [Math.floor(place.width * ratio), Math.floor(HEIGHT * ratio)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const pitch = Math.floor(picture.pitch * ratio);
  const size = pitch - Math.max(1, Math.round(ratio));
  const background = pixel('bg');
  pixels.fill(background);
  paint(pixels, { width, pitch, columns: picture.columns, size, cells: picture.cells, glyphs: glyphs(size, COLORS.map(pixel), background) });
  context.putImageData(image, 0, 0);
  if (picture.cells.length) outline(context, pitch, size);
  canvas.dataset.drawMs = (performance.now() - begun).toFixed(2);
}

function useWidth(place) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWidth(place.current?.clientWidth ?? 0));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

function pictureOf(shard, width, before) {
  const motion = Math.ceil((shard.high_water - shard.watermark) / shard.items_per_cell);
  const grid = layout(width, HEIGHT, motion, before);
  return { ...grid, ...shown(shard, grid.columns * grid.rows) };
}

const STATES = { in_flight: 'in flight', retry_wait: 'retrying', pending: 'not sent yet' };

/** Reason why the watermark doesn't advance. */
function held(shard, counts) {
  const { head } = shard;
  if (!head || head.age_seconds < 1 || counts[0] === 0) return null;
  return t('Held by #{index} ({state}, attempt {attempt}) for {span}; {n:settled item|settled items} behind it.', {
    index: count(head.index), state: t(STATES[head.state] ?? head.state), attempt: head.attempt, span: span(head.age_seconds), n: count(counts[0]),
  });
}

function Says({ shard, picture, at, task }) {
  const hold = held(shard, picture.counts);
  if (at != null) {
    const first = shard.watermark + at * picture.perCell;
    const range = picture.perCell > 1 ? `${count(first)}–${count(first + picture.perCell - 1)}` : count(first);
    return html`<span>#${range} · ${t(WORDS[picture.cells[at]])}</span>`;
  }
  if (hold) return html`<span class="warn">${hold} <a class="link" href=${`/tasks/${task.id}/items/${shard.head.index}`}>${t('Open item')}</a></span>`;
  if (shard.capacity == null) return html`<span class="soft">${t('Watermark')} ${count(shard.watermark)}</span>`;
  return html`<span class="soft">${t('Watermark {low}; {used} of {window} window slots in use', {
    low: count(shard.watermark), used: count(shard.high_water - shard.watermark), window: count(shard.capacity),
  })}</span>`;
}

/** Legend of the colours. The task's header has the counts: the cells are from another moment and may represent several items each. */
export function StripLegend() {
  return html`<span class="legend">${WORDS.map((word, at) => html`<span key=${word}><i class=${`key ${KEYS[at]}`}></i>${t(word)}</span>`)}</span>`;
}

/**
 * Window of one shard.
 * @param {{task: any, shard: any, label: string}} props
 */
export function Strip({ task, shard, label }) {
  const place = useRef(null);
  const canvas = useRef(null);
  const pitch = useRef(0);
  const [at, setAt] = useState(null);
  const width = useWidth(place);
  const picture = width ? pictureOf(shard, width, pitch.current) : null;
  pitch.current = picture?.pitch ?? 0;
  const scheme = look();
  useLayoutEffect(() => {
    if (picture) draw(canvas.current, picture, { width }, devicePixelRatio);
  }, [shard.cells, shard.watermark, width, scheme]);
  const cellAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [column, row] = [Math.floor((event.clientX - box.left) / picture.pitch), Math.floor((event.clientY - box.top) / picture.pitch)];
    const found = row * picture.columns + column;
    return column < picture.columns && found < picture.cells.length ? found : null;
  };
  const open = (event) => {
    const found = cellAt(event);
    if (found != null) go(`/tasks/${task.id}/items/${shard.watermark + found * picture.perCell}`);
  };
  const words = picture ? WORDS.map((word, state) => (picture.counts[state] ? `${count(picture.counts[state])} ${t(word)}` : '')).filter(Boolean).join(', ') : '';
  return html`<div class="strip" ref=${place}>
    <div class="strip-legend">${picture && html`<${StripLegend} />`}</div>
    <canvas ref=${canvas} class="cells" role="img" aria-label=${`${label}: ${words}`} onMouseMove=${(event) => setAt(cellAt(event))}
      onMouseLeave=${() => setAt(null)} onClick=${open}></canvas>
    <p class="strip-says">${picture && html`<${Says} shard=${shard} picture=${picture} at=${at} task=${task} />`}</p>
  </div>`;
}
