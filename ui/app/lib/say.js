/** @file Messages of the node: their English text, or the template of their code in the page's language. */
import { count, rate, share, span } from './format.js';
import { t, templateOf } from './i18n.js';

/** Formats an argument: a number, a text, a span, a rate, a share or another message. */
function shown(arg) {
  if (typeof arg === 'number') return count(arg);
  if (arg == null || typeof arg !== 'object') return String(arg ?? '');
  if ('seconds' in arg) return span(arg.seconds);
  if ('per_second' in arg) return `${rate(arg.per_second)}/s`;
  if ('share' in arg) return share(arg.share);
  return say(arg, arg.text);
}

/**
 * Returns a message in the page's language.
 * @param {{ code: string, args: Record<string, unknown> } | null | undefined} message code and arguments, if the node sent them
 * @param {string | null | undefined} text the same in English
 */
export function say(message, text) {
  const template = message && templateOf(message.code);
  if (!template) return text;
  return template.replace(/\{(\w+)(?:#([^}]*)|\?([^|}]*)\|([^}]*))?\}/g, (whole, name, noun, one, many) => {
    const arg = message.args[name];
    if (arg === undefined) return whole;
    if (noun !== undefined) return `${shown(arg)} ${noun}${arg === 1 ? '' : 's'}`;
    if (one !== undefined) return arg === 1 ? one : many;
    return shown(arg);
  });
}

/** Returns several messages as one text. */
export function sayAll(messages, text) {
  if (!messages?.length || !messages.every((one) => templateOf(one.code))) return text;
  return messages.map((one) => say(one, '')).join('；');
}

/** Reason of a stop in words: `error budget`. */
export const reasonText = (slug) => t(slug ?? '').replaceAll('_', ' ');

/** Explanation of a task's status, if there is one. */
export const statusText = (task) => say(task.status_text_message, task.status_text);
