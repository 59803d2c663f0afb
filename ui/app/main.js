/** @file Begins the dashboard: which path is which page. */
import { html, render, useEffect, useErrorBoundary } from '../vendor/preact-htm.js';
import { applyLanguage, language, t } from './lib/i18n.js';
import { applyTheme, theme } from './lib/kept.js';
import { followLinks, pattern, route } from './lib/router.js';
import { identify, session } from './lib/session.js';
import { Asker } from './parts/ask.js';
import { Empty, Loading, Problem } from './parts/basic.js';
import { Help, useKeys } from './parts/keys.js';
import { Page, Shell } from './parts/shell.js';
import { Toasts } from './parts/toast.js';
import { Audit } from './pages/audit.js';
import { Business } from './pages/business.js';
import { Businesses } from './pages/businesses.js';
import { Dataset } from './pages/dataset.js';
import { Datasets } from './pages/datasets.js';
import { Limit, Limits } from './pages/limits.js';
import { DataLog } from './pages/log.js';
import { Login } from './pages/login.js';
import { NewTask } from './pages/make/page.js';
import { Node } from './pages/node.js';
import { Nodes } from './pages/nodes.js';
import { Overview } from './pages/overview.js';
import { Register } from './pages/register.js';
import { Schedule } from './pages/schedule.js';
import { Schedules } from './pages/schedules.js';
import { Settings } from './pages/settings.js';
import { Statistics } from './pages/statistics.js';
import { Task } from './pages/task/page.js';
import { Tasks } from './pages/tasks.js';

const PAGES = [
  ['/', Overview],
  ['/tasks', Tasks],
  ['/tasks/new', NewTask],
  ['/tasks/:task/items/:index', Task],
  ['/tasks/:task/:tab', Task],
  ['/tasks/:task', Task],
  ['/businesses', Businesses],
  ['/businesses/new', Register],
  ['/businesses/:business', Business],
  ['/schedules', Schedules],
  ['/schedules/:schedule', Schedule],
  ['/datasets', Datasets],
  ['/datasets/:dataset', Dataset],
  ['/nodes', Nodes],
  ['/nodes/:node', Node],
  ['/limits', Limits],
  ['/limits/:limit', Limit],
  ['/statistics', Statistics],
  ['/log', DataLog],
  ['/audit', Audit],
  ['/settings', Settings],
].map(([path, page]) => [pattern(path), page]);

function Missing() {
  return html`<${Page} title=${t('Nothing is here')}><${Empty} say=${t('There is no page at this address.')}>
    <p><a href="/">${t('Overview')}</a></p><//><//>`;
}

function Broken({ error, again }) {
  return html`<${Page} title=${t('This page broke')}>
    <${Problem} error=${error} /><button type="button" class="button" onClick=${again}>${t('Try again')}</button><//>`;
}

function Shown() {
  const [error, again] = useErrorBoundary((fault) => console.error(fault));
  const { path } = route.value;
  useEffect(() => {
    if (error) again();
  }, [path]);
  if (error) return html`<${Broken} error=${error} again=${again} />`;
  for (const [match, page] of PAGES) {
    const parts = match(path);
    if (parts) return html`<${page} ...${parts} key=${page.keepsState ? 0 : path} />`;
  }
  return html`<${Missing} />`;
}

function App() {
  useKeys();
  useEffect(applyTheme, [theme.value]);
  useEffect(applyLanguage, [language.value]);
  const { state, error } = session.value;
  if (state === 'asking') return html`<${Loading} />`;
  if (state === 'away') return html`<main class="main"><${Problem} error=${error} retry=${identify} /></main>`;
  if (state === 'out') return html`<${Login} />`;
  return html`<${Shell}><${Shown} /><//><${Asker} /><${Help} /><${Toasts} />`;
}

followLinks();
identify();
render(html`<${App} />`, document.getElementById('app'));
