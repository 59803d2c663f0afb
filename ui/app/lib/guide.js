/** @file The guide: where its files are, and the page that fits a page of the dashboard. */

/** Folder of the files, which the build makes from docs/. */
const FILES = `${import.meta.url.slice(0, import.meta.url.lastIndexOf('/app/'))}/guide/`;

/** Address of a file of the guide. */
export const file = (name) => `${FILES}${name}.json`;

/** Fetches the functions of the search. */
export const fetchSearch = () => import(FILES + 'search.js');

/** Pages of the guide by path of the dashboard; the first that fits counts. */
const FITTING = [
  [/^\/$/, '/guide/dashboard'],
  [/^\/tasks\/new/, '/guide/service'],
  [/^\/tasks\/.*\/(failures|items)/, '/guide/handlers#which-failures-count'],
  [/^\/tasks\/.*\/results/, '/guide/operations#results'],
  [/^\/tasks/, '/guide/concepts#progress-of-a-task'],
  [/^\/businesses\/new/, '/guide/dashboard#registering-a-business'],
  [/^\/businesses/, '/guide/handlers'],
  [/^\/schedules/, '/guide/recurring'],
  [/^\/datasets/, '/guide/datasets'],
  [/^\/nodes/, '/guide/operations'],
  [/^\/limits/, '/guide/concepts#limits-in-units'],
  [/^\/statistics/, '/guide/statistics'],
  [/^\/(audit|settings)/, '/guide/operations#tokens-and-roles'],
];

/** Address of the guide's page about a page of the dashboard. */
export const fitting = (path) => FITTING.find(([about]) => about.test(path))?.[1] ?? '/guide';
