/** @file The rates of several tasks as one line. Pure. */

/**
 * Adds series up on a common grid of moments.
 * @param {{time: string[], rate: number[], seconds: number[]}[]} all
 * @param {{from: number, to: number, step: number}} grid in seconds
 * @returns {[number[], number[]]} times in seconds, items per second
 */
export function addUp(all, { from, to, step }) {
  const first = Math.floor(from / step);
  const size = Math.max(1, Math.floor(to / step) - first + 1);
  const items = new Array(size).fill(0);
  for (const { time, rate, seconds } of all) {
    time.forEach((text, at) => {
      const bucket = Math.floor(Date.parse(text) / 1000 / step) - first;
      if (bucket >= 0 && bucket < size) items[bucket] += rate[at] * seconds[at];
    });
  }
  return [items.map((_, at) => (first + at + 1) * step), items.map((sum) => sum / step)];
}
