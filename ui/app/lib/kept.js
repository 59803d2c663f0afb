/** @file What this browser remembers of a person's taste: theme, language, time zone. Never a token, never data. */
import { signal } from '../../vendor/preact-htm.js';

const PREFIX = 'windrow.';

function read(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null; // Storage may be forbidden: then a choice holds until the page is closed.
  }
}

function write(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch { /* As above. */ }
}

/**
 * A choice out of a few that outlives the page.
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

/** Light, dark, or as the system says. */
export const theme = kept('theme', ['auto', 'light', 'dark']);

/** Whose clock times are shown in: the browser's or UTC. */
export const zone = kept('zone', ['local', 'UTC']);

/** Puts the theme on the page. */
export function applyTheme() {
  const root = document.documentElement;
  if (theme.value === 'auto') delete root.dataset.theme;
  else root.dataset.theme = theme.value;
}
