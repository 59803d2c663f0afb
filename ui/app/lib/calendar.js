/** @file Fires and coming fires on days and hours. Pure. */

/** How far the clock of a day has gone: noon is the half, also of a day on which clocks are put forward or back. */
export function clockPart(time, isUtc) {
  const at = new Date(time);
  const [hours, minutes, seconds] = isUtc ? [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()] : [at.getHours(), at.getMinutes(), at.getSeconds()];
  return (hours * 3600 + minutes * 60 + seconds) / 86_400;
}

/**
 * Moments by day.
 * @param {{at: number, kind: string, text: string, task?: string}[]} moments
 * @param {number[]} starts when each day begins, and when the last one ends: where clocks are put forward or back, a day is no 24 hours
 */
export function byDay(moments, starts, isUtc) {
  const rows = starts.slice(0, -1).map((at) => ({ at, moments: [] }));
  for (const moment of moments) {
    const place = starts.findLastIndex((start) => start <= moment.at);
    if (rows[place]) rows[place].moments.push({ ...moment, part: clockPart(moment.at, isUtc) });
  }
  return rows;
}

/** The start of the day of a moment, or of so many days later, by UTC or by this machine's clock. */
export function dayOf(time, isUtc, later = 0) {
  const date = new Date(time);
  return isUtc
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + later)
    : new Date(date.getFullYear(), date.getMonth(), date.getDate() + later).getTime();
}
