/** @file The rates of several tasks as one line. Pure. */

/** Adds what was done between two places of the grid to the buckets between them, each as much as lies in it. */
function spread(items, { from, to, perBucket }) {
  for (let bucket = Math.max(0, Math.floor(from)); bucket < Math.min(items.length, to); bucket += 1) {
    items[bucket] += perBucket * Math.max(0, Math.min(bucket + 1, to) - Math.max(bucket, from));
  }
}

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
      const end = Date.parse(text) / 1000;
      spread(items, { from: end / step - seconds[at] / step - first, to: end / step - first, perBucket: rate[at] * step });
    });
  }
  return [items.map((_, at) => (first + at + 1) * step), items.map((sum) => sum / step)];
}
