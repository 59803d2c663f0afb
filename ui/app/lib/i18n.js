/** @file Words. English stands in the code; other languages are dictionaries from it, and what they lack stays English. */
import { signal } from '../../vendor/preact-htm.js';
import { kept } from './kept.js';

/** Languages that have a file below words/. */
const OTHERS = ['zh-CN'];
const preferred = /^zh/i.test(navigator.language) ? ['zh-CN', 'en'] : ['en', 'zh-CN'];

/** The language of the page. */
export const language = kept('language', preferred);

/** @type {import('@preact/signals').Signal<Record<string, Record<string, string>>>} */
const dictionaries = signal({});
/** @type {typeof dictionaries} */
const templates = signal({});

/** Fetches the words of the page's language, where they aren't there yet. */
export async function fetchWords() {
  const wanted = language.value;
  if (!OTHERS.includes(wanted) || dictionaries.value[wanted]) return;
  const { default: messages } = await import(`../words/messages.${wanted}.js`);
  templates.value = { ...templates.value, [wanted]: messages };
  const { default: words } = await import(`../words/${wanted}.js`);
  dictionaries.value = { ...dictionaries.value, [wanted]: words };
}

/** Template of a message of the node in the page's language; undefined in English and for unknown codes. */
export function templateOf(code) {
  return templates.value[language.value]?.[code];
}

/**
 * A text in the page's language.
 * @param {string} text the English text, with `{name}` where a value goes
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const found = dictionaries.value[language.value]?.[text] ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Tells browsers and screen readers which language this is. */
export function applyLanguage() {
  document.documentElement.lang = language.value;
  fetchWords().catch(() => { language.value = 'en'; });
}
