/** @file Shared clock of the page, updated every second. It stops while the page is hidden. */
import { signal } from '../../vendor/preact-htm.js';

/** Current time in milliseconds since 1970, as of the last tick. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now();
});
