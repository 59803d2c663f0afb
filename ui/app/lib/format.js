/** @file Numbers and times for display. Pure except for the chosen language and time zone. */
import { language, t } from './i18n.js';
import { zone } from './kept.js';

const DASH = '–';

/** Whole number with thousands separators. */
export function count(number) {
  return number == null ? DASH : new Intl.NumberFormat(language.value).format(number);
}

/** Rate in items per second, without its unit: three significant digits, two below one. */
export function rate(perSecond) {
  if (perSecond == null) return DASH;
  if (perSecond > 0 && perSecond < 1) return new Intl.NumberFormat(language.value, { maximumSignificantDigits: 2 }).format(perSecond);
  const digits = perSecond >= 100 || perSecond === 0 ? 0 : perSecond >= 10 ? 1 : 2;
  return new Intl.NumberFormat(language.value, { maximumFractionDigits: digits }).format(perSecond);
}

/** Amount of a unit, rounded down to three digits, with the suffixes that limits have: `0.71`, `3.1k`, `1.2M`. */
export function amount(text) {
  if (text == null) return DASH;
  const number = Number(text);
  const [scale, suffix] = number >= 1e6 ? [1e6, 'M'] : number >= 1e3 ? [1e3, 'k'] : [1, ''];
  return `${new Intl.NumberFormat(language.value, { maximumSignificantDigits: 3, roundingMode: 'trunc' }).format(number / scale)}${suffix}`;
}

/** Percentage as the node reports it. */
export function percentOf(number) {
  return number == null ? DASH : `${number.toFixed(number === 100 ? 0 : 1)}%`;
}

/** Percentage of a whole; 100 % only when nothing is left. */
export function percent(part, whole) {
  if (!whole) return DASH;
  return percentOf(part >= whole ? 100 : Math.min(999, Math.floor((part / whole) * 1000)) / 10);
}

/** Share between 0 and 1, as a percentage. */
export function share(value) {
  return value == null ? DASH : `${(value * 100).toFixed(value > 0 && value < 0.0995 ? 1 : 0)}%`;
}

const UNITS = [
  [86400, 'd'],
  [3600, 'h'],
  [60, 'm'],
  [1, 's'],
];

const trimmed = (value, unit) => value.toFixed(1).replace(/\.0$/, '') + unit;

/** Duration, in the form of every surface: `0.3ms`, `450ms`, `2.4s`, `12s`, `2m 05s`, `3h 20m`, `4d 6h`. */
export function span(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return DASH;
  if (seconds <= 0) return '0s';
  if (seconds < 0.00995) return trimmed(seconds * 1000, 'ms');
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)}ms`;
  if (seconds < 9.95) return trimmed(seconds, 's');
  const at = UNITS.findIndex(([size]) => seconds >= size);
  const [size, unit] = UNITS[at];
  const whole = Math.floor(seconds / size);
  const next = UNITS[at + 1];
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
  return rest ? `${whole}${unit} ${next[1] === 'h' ? rest : String(rest).padStart(2, '0')}${next[1]}` : `${whole}${unit}`;
}

/** Age in its largest unit: `8s`, `3m`. */
export function age(seconds) {
  const at = Math.max(0, seconds);
  const [size, unit] = UNITS.find(([unitSize]) => at >= unitSize) ?? [1, 's'];
  return `${Math.floor(at / size)}${unit}`;
}

/** Size in bytes. */
export function bytes(size) {
  if (size == null) return DASH;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = size < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(size) / 10));
  return `${(size / 1024 ** at).toFixed(at && size / 1024 ** at < 10 ? 1 : 0)} ${units[at]}`;
}

function parts(time, options) {
  const timeZone = zone.value === 'UTC' ? 'UTC' : undefined;
  return new Intl.DateTimeFormat('sv-SE', { timeZone, ...options }).format(new Date(time));
}

/** Time of day: `17:02:11`. */
export function clock(time) {
  return parts(time, { timeStyle: 'medium' });
}

/** Hours and minutes. */
export function minute(time) {
  return parts(time, { hour: '2-digit', minute: '2-digit' });
}

/** Hours and minutes, with the date unless it is today. */
export function near(time, nowMs = Date.now()) {
  return day(time) === day(nowMs) ? minute(time) : `${day(time)} ${minute(time)}`;
}

/** Date and time in the chosen zone. */
export function stamp(time) {
  const text = parts(time, { dateStyle: 'short', timeStyle: 'medium' });
  return zone.value === 'UTC' ? `${text} UTC` : text;
}

/** Date: `2026-11-25`. */
export function day(time) {
  return parts(time, { dateStyle: 'short' });
}

/** Local time in the format of `datetime-local` inputs. */
export function localTime(time) {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Returns true if a written rate is found by the autopilot: `auto`, `auto up to 500/s`. */
export const isAutoRate = (written) => /^\s*auto\b/.test(written ?? '');

/** Ceiling of a written rate that the autopilot finds; null if it has none. */
export const ceiling = (written) => /^\s*auto\s+up\s+to\s+(.*\S)/.exec(written ?? '')?.[1] ?? null;

/** Written rate that the autopilot finds, in the reader's language. */
export function autoText(written) {
  const most = ceiling(written);
  return most ? t('auto, at most {rate}', { rate: most }) : t('auto');
}

/** Parses a written rate into items per second; null if it is unlimited, or found by the autopilot. */
export function perSecond(written) {
  const found = /^\s*([\d.]+)\s*\/\s*([\d.]*)\s*(ms|s|m|h|d)?\s*$/.exec(written ?? '');
  if (!found) return null;
  const unit = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 }[found[3] ?? 's'];
  return Number(found[1]) / ((found[2] ? Number(found[2]) : 1) * unit);
}
