/** @file The moment that everything on the page agrees on, a second at a time. Stands still while the page is hidden. */
import { signal } from '../../vendor/preact-htm.js';

/** The present in milliseconds since 1970, as of the last full second. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now();
});
