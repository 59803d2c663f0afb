/** @file Router: real paths, filters in the query, working Back button. Independent of pages. */
import { signal } from '../../vendor/preact-htm.js';

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search), hash: location.hash.slice(1) });

/** Current path, query, and anchor. */
export const route = signal(here());

/** Paths served by the node that are not pages of the dashboard. */
const SERVED = /^\/(v1|docs|problems|metrics|healthz|readyz|version|openapi\.json|actors|ui)(\/|$)/;

/**
 * Navigates to a page.
 * @param {string} to path with query and anchor
 * @param {{replace?: boolean}} [options] replace: without a history entry
 */
export function go(to, { replace = false } = {}) {
  if (to === location.pathname + location.search + location.hash) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  const moved = location.pathname !== route.value.path;
  route.value = here();
  if (moved) scrollTo(0, 0);
}

/** Current page with changed filters; null or an empty text removes a filter. */
export function withQuery(changes, path = route.value.path) {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value == null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Changes filters of the current page. */
export function filter(changes) {
  go(withQuery({ cursor: null, ...changes }), { replace: true });
}

/** Compiles a path pattern such as `/tasks/:task` into a function that returns the parameters of a path, or null. */
export function pattern(text) {
  const names = [];
  const source = text.replace(/:(\w+)/g, (_, name) => {
    names.push(name);
    return '([^/]+)';
  });
  const expression = new RegExp(`^${source}/?$`);
  return (path) => {
    const found = expression.exec(path);
    return found && Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(found[at + 1])]));
  };
}

function isPlainClick(event) {
  return event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) && !event.defaultPrevented;
}

/** Follows links within the dashboard without a page load. */
export function followLinks() {
  addEventListener('popstate', () => {
    route.value = here();
  });
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    if (!link || !isPlainClick(event) || link.target || link.hasAttribute('download')) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || SERVED.test(to.pathname) || link.getAttribute('href').startsWith('#')) return;
    event.preventDefault();
    go(to.pathname + to.search + to.hash);
  });
}
