/** @file In-flight windows of all shards as one strip of cells on a canvas, with the item that holds the watermark. */
import { html, useLayoutEffect, useRef, useState } from '../../vendor/preact-htm.js';
import { count, span } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { look, pixel } from '../lib/palette.js';
import { go } from '../lib/router.js';
import { glyphs, itemsAt, layout, paint, together } from '../lib/strip.js';

const HEIGHT = 60;
const COLORS = ['ok-fill', 'free', 'run-fill', 'park-fill', 'warn-fill', 'bad-fill', 'bg'];
const WORDS = ['settled', 'free', 'in flight', 'parked', 'retrying', 'failed'];
const KEYS = ['of-succeeded', 'of-pending', 'of-in_flight', 'of-parked', 'of-retry', 'of-failed'];

/** Outlines a cell: the watermarks, and the cell that the keyboard is at. */
function outline(context, pitch, size, columns, at) {
  context.strokeStyle = getComputedStyle(context.canvas).color;
  context.lineWidth = Math.max(1, Math.round(pitch / 8));
  const edge = context.lineWidth / 2;
  context.strokeRect((at % columns) * pitch + edge, Math.floor(at / columns) * pitch + edge, size - 2 * edge, size - 2 * edge);
}

/** Paints a picture and records its duration in milliseconds on the canvas. */
function draw(canvas, picture, place, ratio, at) {
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
  for (const cell of [...picture.parts.map((one) => one.start), at ?? 0]) if (picture.cells.length) outline(context, pitch, size, picture.columns, cell);
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

function pictureOf(shards, width, before) {
  const motion = shards.reduce((sum, one) => sum + Math.ceil((one.high_water - one.watermark) / one.items_per_cell) + 1, -1);
  const grid = layout(width, HEIGHT, motion, before);
  return { ...grid, ...together(shards, grid.columns * grid.rows) };
}

const STATES = { in_flight: 'in flight', retry_wait: 'retrying', pending: 'not sent yet' };

/** Item that has held its watermark for longest, and the reason; null if all advance. */
function held({ parts }) {
  const stuck = parts.filter(({ shard: { head }, counts }) => head && head.age_seconds >= 1 && counts[0] > 0);
  const worst = stuck.sort((a, b) => b.shard.head.age_seconds - a.shard.head.age_seconds)[0];
  if (!worst) return null;
  const { head } = worst.shard;
  return { index: head.index, text: t('Held by #{index} ({state}, attempt {attempt}) for {span}; {n:settled item|settled items} behind it.', {
    index: count(head.index), state: t(STATES[head.state] ?? head.state), attempt: head.attempt, span: span(head.age_seconds), n: count(worst.counts[0]),
  }) };
}

/** Items and state of a cell. */
function cellText(picture, at) {
  const found = itemsAt(picture, at);
  if (!found) return '';
  const { shard, first, size } = found;
  const range = size > 1 ? `${count(first)}–${count(first + size - 1)}` : count(first);
  return [`#${range}`, t(WORDS[picture.cells[at]]), picture.parts.length > 1 && t('shard {n}', { n: shard.shard })].filter(Boolean).join(' · ');
}

function Says({ picture, at, task }) {
  if (at != null) return html`<span>${cellText(picture, at)}</span>`;
  const hold = held(picture);
  if (hold) return html`<span class="warn">${hold.text} <a class="link" href=${`/tasks/${task.id}/items/${hold.index}`}>${t('Open item')}</a></span>`;
  const [{ shard }] = picture.parts;
  return picture.parts.length === 1 && html`<span class="soft">${t('Watermark')} ${count(shard.watermark)}</span>`;
}

/** Legend of the colours. The task's header has the counts: the cells are from another moment and may represent several items each. */
function Legend() {
  return html`<span class="legend">${WORDS.map((word, at) => html`<span key=${word}><i class=${`key ${KEYS[at]}`}></i>${t(word)}</span>`)}</span>`;
}

/** Cell that a key moves to; blank cells are passed over. Null for other keys. */
function moved(key, at, { cells, columns, parts }) {
  const last = cells.length - 1;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  if (!by) return null;
  const to = Math.max(0, Math.min(last, at + by));
  return itemsAt({ parts }, to) ? to : Math.min(last, to + Math.sign(by));
}

/**
 * Windows of all shards of a task.
 * @param {{task: any, shards: any[]}} props
 */
export function Strip({ task, shards }) {
  const place = useRef(null);
  const canvas = useRef(null);
  const pitch = useRef(0);
  const [at, setAt] = useState(null);
  const width = useWidth(place);
  const picture = width ? pictureOf(shards, width, pitch.current) : null;
  pitch.current = picture?.pitch ?? 0;
  const pointed = at == null || !picture ? null : Math.min(at, picture.cells.length - 1);
  const scheme = look();
  useLayoutEffect(() => {
    if (picture) draw(canvas.current, picture, { width }, devicePixelRatio, pointed);
  }, [shards, width, scheme, pointed]);
  const cellAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [column, row] = [Math.floor((event.clientX - box.left) / picture.pitch), Math.floor((event.clientY - box.top) / picture.pitch)];
    const found = row * picture.columns + column;
    return column < picture.columns && found < picture.cells.length ? found : null;
  };
  const open = (cell) => {
    const found = cell != null && itemsAt(picture, cell);
    if (found) go(`/tasks/${task.id}/items/${found.first}`);
  };
  const onKey = (event) => {
    if (event.key === 'Enter') open(pointed);
    const to = moved(event.key, pointed ?? 0, picture);
    if (to == null) return;
    event.preventDefault();
    setAt(to);
  };
  const words = picture ? WORDS.map((word, state) => (picture.counts[state] ? `${count(picture.counts[state])} ${t(word)}` : '')).filter(Boolean).join(', ') : '';
  return html`<div class="strip" ref=${place}>
    <div class="strip-legend">${picture && html`<${Legend} />`}</div>
    <canvas ref=${canvas} class="cells" role="slider" tabindex="0" aria-label=${`${t('Window of {task}', { task: task.id })}: ${words}`}
      aria-valuemin="0" aria-valuemax=${Math.max(0, (picture?.cells.length ?? 1) - 1)} aria-valuenow=${pointed ?? 0} aria-valuetext=${picture ? cellText(picture, pointed ?? 0) : ''}
      onMouseMove=${(event) => setAt(cellAt(event))} onMouseLeave=${() => setAt(null)} onClick=${(event) => open(cellAt(event))}
      onKeyDown=${onKey} onFocus=${() => setAt((old) => old ?? 0)} onBlur=${() => setAt(null)}></canvas>
    <p class="strip-says">${picture && html`<${Says} picture=${picture} at=${pointed} task=${task} />`}</p>
  </div>`;
}
