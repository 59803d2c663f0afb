/** @file Translation. The code has the English text; dictionaries map it to other languages, and missing entries stay English. */
import { signal } from '../../vendor/preact-htm.js';
import { kept } from './kept.js';

/** Languages with a file below words/. */
const OTHERS = ['zh-CN'];
const preferred = /^zh/i.test(navigator.language) ? ['zh-CN', 'en'] : ['en', 'zh-CN'];

/** Language of the page. */
export const language = kept('language', preferred);

/** @type {import('@preact/signals').Signal<Record<string, Record<string, string>>>} */
const dictionaries = signal({});
/** @type {typeof dictionaries} */
const templates = signal({});

/** Fetches the dictionary of the page's language unless it is loaded. */
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
 * Returns a text in the page's language.
 * @param {string} text the English text: `{name}` is a value, `{n:item|items}` a number with the noun that agrees with it
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const found = dictionaries.value[language.value]?.[text] ?? text;
  return found.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (whole, name, one, many) => {
    if (!(name in values)) return whole;
    const value = String(values[name]);
    return one == null ? value : `${value} ${value === '1' ? one : many}`;
  });
}

/** Sets the language of the document for browsers and screen readers. */
export function applyLanguage() {
  document.documentElement.lang = language.value;
  fetchWords().catch(() => { language.value = 'en'; });
}
