/** @file Shell commands. Every interpolated value stays one word, because handlers and people choose its content. */

/** Command, or part of one, that is already quoted. */
class Written extends String {}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Quotes a shell word if necessary. */
export const word = (value) => (/^[\w./:@%+,=-]+$/.test(String(value)) ? String(value) : quoted(String(value)));

function put(value) {
  if (Array.isArray(value)) return value.filter((one) => one || one === 0).map(put).join(' ');
  return value instanceof Written ? value.toString() : word(value);
}

/** Template tag for commands: values become words, lists become several words without empty ones, and nested commands stay as they are. */
export function sh(texts, ...values) {
  return new Written(texts.reduce((line, text, at) => line + put(values[at - 1]) + text).trim());
}

/** Flag with its value: `--call-timeout 10s`. */
export const flag = (name, value) => sh`${`--${name.replaceAll('_', '-')}`} ${value}`;
