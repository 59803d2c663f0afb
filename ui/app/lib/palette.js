/** @file The page's colours for canvases, as the style sheet says them now. */
import { theme } from './kept.js';

let cache = new Map();
let cachedFor = '';

const scheme = () => `${theme.value} ${matchMedia('(prefers-color-scheme: dark)').matches}`;

/** What colours are shown at present: what draws them draws anew when this changes. */
export const look = scheme;

function resolve(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A colour of the style sheet as the browser writes it: `rgb(0, 103, 176)`. */
export function color(name) {
  const present = scheme();
  if (cachedFor !== present) [cache, cachedFor] = [new Map(), present];
  if (!cache.has(name)) cache.set(name, resolve(name));
  return cache.get(name);
}

/** A colour as the four bytes of a pixel, least first. */
export function pixel(name) {
  const [red, green, blue] = color(name).match(/\d+(\.\d+)?/g).map(Number);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
