/** @file Arithmetic of plots: round numbers and times for axes, and positions of points. Pure. */

/** Round intervals between two marks. Unit: seconds. */
const ROUND_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

/**
 * Returns at most `most` round numbers from 0 to a top.
 * @param {number} top
 * @param {number} most
 */
export function numbers(top, most) {
  if (!(top > 0)) return [0];
  const least = top / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least * 0.999);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

/**
 * Returns at most `most` round times in a span, and their interval.
 * @param {number} from seconds since 1970
 * @param {number} to
 * @param {number} most
 * @param {number} east seconds by which the displayed clock is ahead of UTC
 */
export function times(from, to, most, east = 0) {
  const step = ROUND_S.find((one) => (to - from) / one <= most) ?? 86_400 * Math.ceil((to - from) / 86_400 / Math.max(1, most));
  const first = Math.ceil((from + east) / step) * step - east;
  const count = Math.max(0, Math.floor((to - first) / step) + 1);
  return { step, at: Array.from({ length: count }, (_, index) => first + index * step) };
}

/** Returns the index of the value nearest to another in a sorted list; null if the list is empty. */
export function nearest(list, value) {
  let [low, high] = [0, list.length - 1];
  if (high < 0) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle;
    else high = middle;
  }
  return value - list[low] <= list[high] - value ? low : high;
}

/** Returns the unbroken segments of a line, as first and last index. */
export function stretches(values) {
  const found = [];
  let first = -1;
  values.forEach((value, at) => {
    if (value != null && first < 0) first = at;
    if (value == null && first >= 0) {
      found.push([first, at - 1]);
      first = -1;
    }
  });
  if (first >= 0) found.push([first, values.length - 1]);
  return found;
}
