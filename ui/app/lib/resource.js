/** @file Data read from the API and kept fresh. Old data stays when a later read fails, with its age. */
import { useEffect, useRef, useState } from '../../vendor/preact-htm.js';
import { get } from './api.js';
import { heard, missed, paused, renewed } from './live.js';

const NOTHING = { data: null, error: null, at: 0, path: null };

/**
 * Reads a path and polls it.
 * @param {string | null} path null reads nothing
 * @param {{every?: number, keep?: boolean}} [options] every: milliseconds; keep: show old data until the next path is read
 * @returns {{data: any, error: any, at: number, isLoading: boolean, reload: () => void}}
 */
export function useResource(path, { every = 0, keep = false } = {}) {
  const [state, setState] = useState(NOTHING);
  const [round, setRound] = useState(0);
  const present = useRef(path);
  present.current = path;
  useEffect(() => {
    if (path == null) return undefined;
    const abort = new AbortController();
    let isBusy = false;
    const read = async () => {
      if (isBusy) return;
      isBusy = true;
      const next = await answer(path, abort.signal);
      isBusy = false;
      if (abort.signal.aborted || present.current !== path || !next) return;
      setState((old) => (next.error && old.path === path ? { ...old, error: next.error } : { ...NOTHING, ...next, path }));
    };
    read();
    const timer = every ? setInterval(() => document.hidden || paused.value || read(), every) : 0;
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [path, every, round, renewed.value]);
  const isOld = state.path !== path;
  const shown = isOld && !keep ? NOTHING : state;
  return { ...shown, isLoading: path != null && isOld, reload: () => setRound((count) => count + 1) };
}

async function answer(path, signal) {
  try {
    const data = await get(path, { signal });
    heard();
    return { data, error: null, at: Date.now() };
  } catch (error) {
    if (error.name === 'AbortError') return null;
    if (error.status === 0) missed();
    return { error };
  }
}
