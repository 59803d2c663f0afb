/** @file Preferences stored in this browser: theme, language, time zone, keys. Never a token or data. */
import { signal } from '../../vendor/preact-htm.js';

const PREFIX = 'windrow.';

function read(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null; // Storage may be blocked: then a choice lasts until the page is closed.
  }
}

function write(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch { /* As above. */ }
}

/**
 * Choice that outlives the page.
 * @param {string} name
 * @param {string[]} choices the first is the default
 */
export function kept(name, choices) {
  const stored = read(name);
  const choice = signal(choices.includes(stored) ? stored : choices[0]);
  return {
    choices,
    get value() {
      return choice.value;
    },
    set value(next) {
      choice.value = next;
      write(name, next);
    },
    next() {
      this.value = choices[(choices.indexOf(choice.value) + 1) % choices.length];
    },
  };
}

/** Colour theme: light, dark, or the system's. */
export const theme = kept('theme', ['auto', 'light', 'dark']);

/** Displayed time zone: the browser's or UTC. */
export const zone = kept('zone', ['local', 'UTC']);

/** Shortcuts of single keys, which some people press without meaning to. */
export const singleKeys = kept('keys', ['enabled', 'disabled']);

/** Applies the theme to the page. */
export function applyTheme() {
  const root = document.documentElement;
  if (theme.value === 'auto') delete root.dataset.theme;
  else root.dataset.theme = theme.value;
}
