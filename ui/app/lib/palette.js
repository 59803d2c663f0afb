/** @file Current colours of the style sheet, for canvases. */
import { theme } from './kept.js';

let cache = new Map();
let cachedFor = '';

const scheme = () => `${theme.value} ${matchMedia('(prefers-color-scheme: dark)').matches}`;

/** Current colour scheme: canvases are redrawn when it changes. */
export const look = scheme;

function resolve(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Colour of the style sheet in the browser's notation: `rgb(0, 103, 176)`. */
export function color(name) {
  const present = scheme();
  if (cachedFor !== present) [cache, cachedFor] = [new Map(), present];
  if (!cache.has(name)) cache.set(name, resolve(name));
  return cache.get(name);
}

/** Colour as a little-endian pixel of four bytes. */
export function pixel(name) {
  const [red, green, blue] = color(name).match(/\d+(\.\d+)?/g).map(Number);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
