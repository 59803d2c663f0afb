/** @file Draws lines over time on a canvas, with axes from zero, marks and the pointed value. Independent of components. */
import { nearest, numbers, stretches, times } from './axes.js';
import { clock, minute } from './format.js';
import { zone } from './kept.js';
import { color } from './palette.js';

const FONT = '11px system-ui, "Noto Sans", sans-serif';
/** Margins around the lines. Unit: pixels. */
const ROOM = { left: 48, right: 14, top: 8, bottom: 22 };
/** Space of an axis label. Unit: pixels. */
const [LABEL_WIDTH, LABEL_HEIGHT] = [70, 32];
/** With fewer points than this, each is drawn as a dot. */
const FEW = 4;

/** Seconds by which the displayed clock is ahead of UTC. */
const east = (at) => (zone.value === 'UTC' ? 0 : -new Date(at * 1000).getTimezoneOffset() * 60);

/**
 * Layout of a plot: the box of the lines, and the coordinates of times and values in it.
 * @param {{width: number, height: number}} size
 * @param {number[][]} data times in seconds, then one list per line
 * @param {[number, number]} span
 * @param {number} least minimum top of the y axis
 */
export function frame(size, data, [from, to], least) {
  const box = { left: ROOM.left, top: ROOM.top, width: Math.max(1, size.width - ROOM.left - ROOM.right), height: Math.max(1, size.height - ROOM.top - ROOM.bottom) };
  let most = least;
  for (const list of data.slice(1)) list.forEach((value, at) => { if (value > most && data[0][at] >= from) most = value; });
  const ceiling = most * 1.08;
  return {
    ...box, span: [from, to], most: ceiling,
    x: (at) => box.left + ((at - from) / Math.max(1e-9, to - from)) * box.width,
    y: (value) => box.top + box.height - (value / ceiling) * box.height,
  };
}

/** Index of the point nearest to a canvas position; null outside the lines. */
export function under(at, left, data) {
  if (left < at.left || left > at.left + at.width) return null;
  const [from, to] = at.span;
  return nearest(data[0], from + ((left - at.left) / at.width) * (to - from));
}

function stroke(context, points) {
  context.beginPath();
  points.forEach(([left, top], index) => (index ? context.lineTo(left, top) : context.moveTo(left, top)));
  context.stroke();
}

function axes(context, at, write) {
  context.font = FONT;
  context.fillStyle = color('soft');
  context.strokeStyle = color('line');
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const value of numbers(at.most, at.height / LABEL_HEIGHT)) {
    const top = Math.round(at.y(value)) + 0.5;
    stroke(context, [[at.left, top], [at.left + at.width, top]]);
    context.fillText(write(value), at.left - 6, top);
  }
  context.textBaseline = 'top';
  context.textAlign = 'center';
  const { step, at: marks } = times(...at.span, at.width / LABEL_WIDTH, east(at.span[1]));
  for (const time of marks) {
    const left = Math.round(at.x(time)) + 0.5;
    stroke(context, [[left, at.top], [left, at.top + at.height]]);
    const text = (step < 60 ? clock : minute)(time * 1000);
    const isCut = left + context.measureText(text).width / 2 > at.left + at.width + ROOM.right;
    if (!isCut) context.fillText(text, left, at.top + at.height + 6);
  }
}

function line(context, at, { color: name, dashed, fill }, [all, values]) {
  context.strokeStyle = color(name);
  context.lineWidth = 1.5;
  context.setLineDash(dashed ? [4, 4] : []);
  for (const [first, last] of stretches(values)) {
    const points = [];
    for (let place = first; place <= last; place += 1) points.push([at.x(all[place]), at.y(values[place])]);
    stroke(context, points);
    if (!fill) continue;
    context.lineTo(points.at(-1)[0], at.y(0));
    context.lineTo(points[0][0], at.y(0));
    context.fillStyle = color(name).replace('rgb', 'rgba').replace(')', ', .12)');
    context.fill();
  }
  context.setLineDash([]);
}

function dot(context, left, top, name, radius) {
  context.fillStyle = color(name);
  context.beginPath();
  context.arc(left, top, radius, 0, 2 * Math.PI);
  context.fill();
}

function upright(context, at, left, name) {
  context.strokeStyle = color(name);
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  stroke(context, [[left, at.top], [left, at.top + at.height]]);
  context.setLineDash([]);
}

/**
 * Draws a plot.
 * @param {HTMLCanvasElement} canvas
 * @param {ReturnType<typeof frame>} at
 * @param {{lines: any[], data: number[][], marks?: {at: number}[], pointed: number | null, write: (value: number) => string}} what
 */
export function draw(canvas, at, { lines, data, marks = [], pointed, write }) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  axes(context, at, write);
  context.save();
  context.beginPath();
  context.rect(at.left, at.top - 1, at.width, at.height + 2);
  context.clip();
  lines.forEach((one, index) => line(context, at, one, [data[0], data[index + 1]]));
  marks.forEach((mark) => upright(context, at, Math.round(at.x(mark.at)) + 0.5, 'warn'));
  if (pointed != null) upright(context, at, Math.round(at.x(data[0][pointed])) + 0.5, 'soft');
  context.restore();
  const places = data[0].length < FEW ? [...data[0].keys()] : pointed == null ? [] : [pointed];
  for (const place of places) {
    lines.forEach((one, index) => {
      const value = data[index + 1][place];
      if (value != null) dot(context, at.x(data[0][place]), at.y(value), one.color, place === pointed ? 3 : 2.5);
    });
  }
}
