/** @file Commands for a shell. A value that is put into one stays one word, whatever it holds: handlers and people choose what it says. */

/** A command, or a part of one, that needs no more quotes. */
class Written extends String {}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A word for a shell, in quotes where it needs them. */
export const word = (value) => (/^[\w./:@%+,=-]+$/.test(String(value)) ? String(value) : quoted(String(value)));

function put(value) {
  if (Array.isArray(value)) return value.filter((one) => one || one === 0).map(put).join(' ');
  return value instanceof Written ? value.toString() : word(value);
}

/** A command as a template: values become words, lists several of them without what is empty, and other commands stay as they are. */
export function sh(texts, ...values) {
  return new Written(texts.reduce((line, text, at) => line + put(values[at - 1]) + text).trim());
}

/** A flag with its value: `--call-timeout 10s`. */
export const flag = (name, value) => sh`${`--${name.replaceAll('_', '-')}`} ${value}`;
