/** @file Words. English stands in the code; other languages are dictionaries from it, and what they lack stays English. */
import zh from '../words/zh.js';
import { kept } from './kept.js';

const DICTIONARIES = { en: {}, 'zh-CN': zh };
const preferred = /^zh/i.test(navigator.language) ? ['zh-CN', 'en'] : ['en', 'zh-CN'];

/** The language of the page. */
export const language = kept('language', preferred);

/**
 * A text in the page's language.
 * @param {string} text the English text, with `{name}` where a value goes
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const found = DICTIONARIES[language.value][text] ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Tells browsers and screen readers which language this is. */
export function applyLanguage() {
  document.documentElement.lang = language.value;
}
