/** @file Entry point of the dashboard and its routes. A page's file is fetched when it is first shown. */
import { html, render, useEffect, useErrorBoundary } from '../vendor/preact-htm.js';
import { applyLanguage, fetchWords, language, t } from './lib/i18n.js';
import { applyTheme, theme } from './lib/kept.js';
import { followLinks, pattern, route } from './lib/router.js';
import { home, identify, session } from './lib/session.js';
import { Asker } from './parts/ask.js';
import { Empty, Loading, Problem } from './parts/basic.js';
import { Fetched } from './parts/fetched.js';
import { Help, useKeys } from './parts/keys.js';
import { Page, Shell } from './parts/shell.js';
import { Toasts } from './parts/toast.js';
import { Login } from './pages/login.js';

/** Routes: path, file below pages/, export, and file to prefetch. */
const PAGES = [
  ['/', 'overview', 'Overview'],
  ['/tasks', 'tasks', 'Tasks'],
  ['/tasks/new', 'make/page', 'NewTask'],
  // Metrics label tasks beyond their cardinality limit `other`, and alerts link here.
  ['/tasks/other', 'tasks', 'Tasks'],
  ['/tasks/other/:tab', 'tasks', 'Tasks'],
  ['/tasks/:task/items/:index', 'task/page', 'Task'],
  ['/tasks/:task/:tab', 'task/page', 'Task'],
  ['/tasks/:task', 'task/page', 'Task', 'task/live'],
  ['/businesses', 'businesses', 'Businesses'],
  ['/businesses/new', 'register', 'Register'],
  ['/businesses/:business', 'business', 'Business'],
  ['/schedules', 'schedules', 'Schedules'],
  ['/schedules/:schedule', 'schedule', 'Schedule'],
  ['/datasets', 'datasets', 'Datasets'],
  ['/datasets/:dataset', 'dataset', 'Dataset'],
  ['/nodes', 'nodes', 'Nodes'],
  ['/nodes/:node', 'node', 'Node'],
  ['/limits', 'limits', 'Limits'],
  ['/limits/:limit', 'limits', 'Limit'],
  ['/alerts', 'alerts', 'Alerts'],
  ['/alerts/:alert', 'alerts', 'Alert'],
  ['/statistics', 'statistics', 'Statistics'],
  ['/log', 'log', 'DataLog'],
  ['/audit', 'audit', 'Audit'],
  ['/guide', 'guide', 'Guide'],
  ['/guide/:page', 'guide', 'Guide'],
  ['/settings', 'settings', 'Settings'],
].map(([path, file, name, next]) => ({ match: pattern(path), file, name, next }));

function Missing() {
  return html`<${Page} title=${t('Page not found')}><${Empty} say=${t('There is no page at this address.')}>
    <p><a href="/">${t('Overview')}</a></p><//><//>`;
}

function Broken({ error, again }) {
  return html`<${Page} title=${t('Page error')}>
    <${Problem} error=${error} /><button type="button" class="button" onClick=${again}>${t('Try again')}</button><//>`;
}

function Content() {
  const [error, again] = useErrorBoundary((fault) => console.error(fault));
  const { path } = route.value;
  useEffect(() => {
    if (error) again();
  }, [path]);
  if (error) return html`<${Broken} error=${error} again=${again} />`;
  const shown = path === '/' ? home() : path;
  const page = PAGES.find(({ match }) => match(shown));
  return page ? html`<${Fetched} file=${page.file} name=${page.name} next=${page.next} props=${page.match(shown)} id=${path} />` : html`<${Missing} />`;
}

function App() {
  useKeys();
  useEffect(applyTheme, [theme.value]);
  useEffect(applyLanguage, [language.value]);
  const { state, error } = session.value;
  if (state === 'asking') return html`<${Loading} />`;
  if (state === 'away') return html`<main class="main"><${Problem} error=${error} retry=${identify} /></main>`;
  if (state === 'out') return html`<${Login} />`;
  return html`<${Shell}><${Content} /><//><${Asker} /><${Help} /><${Toasts} />`;
}

followLinks();
identify();
await fetchWords().catch(() => {});
render(html`<${App} />`, document.getElementById('app'));
