/** @file Past and future fires by day and hour. Pure. */

/** Fraction of a day by its clock: noon is one half, even when daylight saving time begins or ends. */
export function clockPart(time, isUtc) {
  const at = new Date(time);
  const [hours, minutes, seconds] = isUtc ? [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()] : [at.getHours(), at.getMinutes(), at.getSeconds()];
  return (hours * 3600 + minutes * 60 + seconds) / 86_400;
}

/**
 * Groups moments by day.
 * @param {{at: number, kind: string, text: string, task?: string}[]} moments
 * @param {number[]} starts start of each day and end of the last: with daylight saving time a day may not have 24 hours
 */
export function byDay(moments, starts, isUtc) {
  const rows = starts.slice(0, -1).map((at) => ({ at, moments: [] }));
  for (const moment of moments) {
    const place = starts.findLastIndex((start) => start <= moment.at);
    if (rows[place]) rows[place].moments.push({ ...moment, part: clockPart(moment.at, isUtc) });
  }
  return rows;
}

/** Start of a moment's day, or of `later` days after it, by UTC or the local clock. */
export function dayOf(time, isUtc, later = 0) {
  const date = new Date(time);
  return isUtc
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + later)
    : new Date(date.getFullYear(), date.getMonth(), date.getDate() + later).getTime();
}
