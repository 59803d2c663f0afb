/** @file Fires and coming fires on days and hours. Pure. */

const DAY = 86_400_000;

/**
 * Moments by day, from the first day on.
 * @param {{at: number, kind: string, text: string, task?: string}[]} moments
 * @param {number} from start of the first day
 * @param {number} days
 */
export function byDay(moments, from, days) {
  const rows = Array.from({ length: days }, (_, at) => ({ at: from + at * DAY, moments: [] }));
  for (const moment of moments) {
    const row = rows[Math.floor((moment.at - from) / DAY)];
    if (row) row.moments.push({ ...moment, part: ((moment.at - from) % DAY) / DAY });
  }
  return rows;
}

/** The start of the day of a moment, by UTC or by this machine's clock. */
export function dayOf(time, isUtc) {
  const date = new Date(time);
  return isUtc ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) : new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}
