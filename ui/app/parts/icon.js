/** @file Icons in the colour of their text. Each has a text beside it; none carries meaning alone. */
import { html } from '../../vendor/preact-htm.js';

const SHAPES = {
  play: 'M4.5 2.8v10.4L13 8z',
  stop: 'M3.5 3.5h9v9h-9z',
  pause: 'M4 3h3v10H4zM9 3h3v10H9z',
  check: '-M2.8 8.6l3.3 3.3 7-7.6',
  cross: '-M3.5 3.5l9 9M12.5 3.5l-9 9',
  warn: '-M8 2.2l6.3 11.3H1.7zM8 6.4v3.4M8 11.6v.3',
  clock: '-M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M8 4.6V8l2.4 1.6',
  again: '-M13.3 6.4A5.6 5.6 0 1 0 13.6 9M13.6 2.6v3.8H9.8',
  circle: '-M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 1 0 8 2.2',
  half: '-M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 1 0 8 2.2M8 2.4v11.2M8 8h5.6',
  dots: 'M2 7h3v2.6H2zM6.6 7h3v2.6h-3zM11.2 7h3v2.6h-3z',
  copy: '-M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  down: '-M8 2.5v8M4.6 7.4L8 10.8l3.4-3.4M3 13.5h10',
  plus: '-M8 3v10M3 8h10',
  more: 'M7 3h2v2H7zM7 7h2v2H7zM7 11h2v2H7z',
  menu: '-M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  search: '-M7 2.6a4.4 4.4 0 1 0 0 8.8A4.4 4.4 0 1 0 7 2.6M10.4 10.4l3.4 3.4',
  home: '-M2.5 7.5L8 2.8l5.5 4.7M4 6.6v6.8h8V6.6',
  list: '-M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.6M2.5 8h.6M2.5 12h.6',
  people: '-M2.5 13.5v-8h11v8zM5.5 5.5v-3h5v3M2.5 9h11',
  calendar: '-M2.5 3.5h11v10h-11zM2.5 6.6h11M5.5 2v2.6M10.5 2v2.6',
  data: '-M2.8 4.2C2.8 1.6 13.2 1.6 13.2 4.2S2.8 6.8 2.8 4.2M2.8 4.2v7.6c0 2.6 10.4 2.6 10.4 0V4.2M2.8 8c0 2.6 10.4 2.6 10.4 0',
  server: '-M2.5 2.8h11v4.4h-11zM2.5 8.8h11v4.4h-11zM5 5h.6M5 11h.6',
  gauge: '-M2.2 11.8a6.2 6.2 0 1 1 11.6 0M8 9.4l3-3.6',
  chart: '-M2.5 2.5v11h11M5.5 11V8M8.5 11V5M11.5 11V6.6',
  lines: '-M2.5 3.5h11M2.5 6.5h8M2.5 9.5h11M2.5 12.5h6',
  seal: '-M3.5 2.5h9v11l-4.5-2.6-4.5 2.6zM6 6h4',
  book: '-M8 4.2C6.4 2.8 4 2.8 2 3.4v9.4c2-.6 4.4-.6 6 .8 1.6-1.4 4-1.4 6-.8V3.4c-2-.6-4.4-.6-6 .8v9.2',
  gear: '-M8 5.6a2.4 2.4 0 1 0 0 4.8A2.4 2.4 0 1 0 8 5.6M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6L5 5M11 11l1.4 1.4M12.4 3.6L11 5M5 11l-1.4 1.4',
  theme: 'M8 2a6 6 0 0 1 0 12z -M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2',
};

/** @param {{name: keyof SHAPES, class?: string}} props */
export function Icon({ name, class: extra = '' }) {
  const shape = SHAPES[name];
  const [filled, drawn] = shape.startsWith('-') ? ['', shape.slice(1)] : shape.split(' -');
  return html`<svg class=${`icon ${extra}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    ${filled && html`<path d=${filled} fill="currentColor" />`}
    ${drawn && html`<path d=${drawn} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />`}
  </svg>`;
}
