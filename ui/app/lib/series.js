/** @file Recent history of a task, read once and then incrementally. */
import { useEffect, useState } from '../../vendor/preact-htm.js';
import { get, part, path } from './api.js';
import { paused } from './live.js';

/** Selectable spans: length in seconds, seconds per point, and polling interval in milliseconds. */
export const SPANS = { '5m': [300, 1, 1000], '15m': [900, 1, 1000], '1h': [3600, 10, 5000], '6h': [21_600, 10, 10_000] };

const LISTS = ['time', 'rate', 'sent', 'target', 'found_rate', 'refused_share', 'p50', 'p95', 'p99', 'errors', 'in_flight'];
const NONE = Object.fromEntries(LISTS.map((name) => [name, []]));

/** Appends new points and drops those before `from`. */
export function joined(old, fresh, from) {
  const begin = fresh.time.length ? Date.parse(fresh.time[0]) / 1000 : Infinity;
  const next = Object.fromEntries(LISTS.map((name) => [name, []]));
  const take = (source, at) => LISTS.forEach((name) => next[name].push(name === 'time' ? source.seconds[at] : source[name][at]));
  old.time.forEach((time, at) => { if (time > from && time < begin - 0.2) take({ ...old, seconds: old.time }, at); });
  const seconds = fresh.time.map((text) => Date.parse(text) / 1000);
  seconds.forEach((time, at) => { if (time > from) take({ ...fresh, seconds }, at); });
  return next;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const most = (values) => Math.max(...values);
const last = (values) => values.at(-1);
const PUT = { time: last, rate: mean, sent: mean, errors: mean, target: last, found_rate: last, refused_share: most, in_flight: last, p50: mean, p95: most, p99: most };

/** Merges neighbours until at most `points` are left: rates by mean, call times by maximum. */
export function thinned(series, points) {
  const size = Math.ceil(series.time.length / points);
  if (size <= 1) return series;
  const from = series.time[0];
  const step = (series.time.at(-1) - from) / Math.max(1, series.time.length - 1);
  const groups = new Map();
  series.time.forEach((time, at) => {
    const group = Math.floor(time / (size * step));
    groups.set(group, [...(groups.get(group) ?? []), at]);
  });
  const thin = Object.fromEntries(LISTS.map((name) => [name, []]));
  for (const all of groups.values()) {
    for (const name of LISTS) {
      const known = all.map((at) => series[name][at]).filter((value) => value != null);
      thin[name].push(known.length ? PUT[name](known) : null);
    }
  }
  return thin;
}

/** API series with its times in seconds. */
export const inSeconds = (series) => ({ ...series, time: series.time.map((text) => Date.parse(text) / 1000) });

/** Lists for a plot: times, then the named ones. Lines break at gaps in which nothing ran. */
export function withGaps(series, names, gap) {
  const times = [];
  const lists = names.map(() => []);
  series.time.forEach((time, at) => {
    if (at && time - series.time[at - 1] > gap) {
      times.push(series.time[at - 1] + 0.5);
      lists.forEach((list) => list.push(null));
    }
    times.push(time);
    names.forEach((name, index) => lists[index].push(series[name][at]));
  });
  return [times, ...lists];
}

async function read(id, old, [length, step], whole) {
  const from = Date.now() / 1000 - length;
  const last = whole ? from : Math.max(from, (old.time.at(-1) ?? from) - 2 * step);
  const stats = await get(path(`/v1/tasks/${part(id)}/stats`, { from: new Date(last * 1000).toISOString(), step: `${step}s` }));
  return { series: joined(whole ? NONE : old, stats.series, from), stats };
}

/**
 * Returns the series of a task over a span.
 * @param {string} id
 * @param {keyof SPANS} name
 * @param {boolean} isLive true if more points will follow
 */
export function useSeries(id, name, isLive) {
  const [state, setState] = useState({ series: NONE, latency: null, key: '' });
  const key = `${id} ${name}`;
  useEffect(() => {
    let isOver = false;
    let kept = NONE;
    let round = 0;
    let isBusy = false;
    const once = async () => {
      if (isBusy || document.hidden || paused.value) return;
      isBusy = true;
      try {
        const { series, stats } = await read(id, kept, SPANS[name], round % 15 === 0);
        kept = series;
        if (!isOver) setState((old) => ({ series, key, latency: round % 15 === 0 ? stats.latency : old.latency }));
        round += 1;
      } catch { /* The stream's chip shows that the node is unreachable; the next round retries. */ }
      isBusy = false;
    };
    once();
    const timer = isLive ? setInterval(once, SPANS[name][2]) : 0;
    return () => { isOver = true; clearInterval(timer); };
  }, [key, isLive]);
  return state.key === key ? state : { series: NONE, latency: null, key };
}
