/** @file Frame around every page: navigation, freshness, user. */
import { html, signal, useEffect } from '../../vendor/preact-htm.js';
import { now } from '../lib/clock.js';
import { age, clock } from '../lib/format.js';
import { fitting } from '../lib/guide.js';
import { language, t } from '../lib/i18n.js';
import { theme, zone } from '../lib/kept.js';
import { heardAt, pause, paused, stream } from '../lib/live.js';
import { route } from '../lib/router.js';
import { logOut, session } from '../lib/session.js';
import { tasks } from '../lib/tasks.js';
import { Icon } from './icon.js';
import { help } from './keys.js';
import { announce } from './toast.js';

const isOpen = signal(false);

const PLACES = [
  [
    ['/', 'home', 'Overview', ['viewer', 'operator', 'admin']],
    ['/tasks', 'list', 'Tasks', ['viewer', 'operator', 'admin', 'business']],
    ['/businesses', 'people', 'Businesses', ['viewer', 'operator', 'admin']],
    ['/schedules', 'calendar', 'Schedules', ['viewer', 'operator', 'admin', 'business']],
    ['/datasets', 'data', 'Datasets', ['viewer', 'operator', 'admin', 'business', 'reader']],
  ],
  [
    ['/nodes', 'server', 'Nodes', ['viewer', 'operator', 'admin']],
    ['/limits', 'gauge', 'Limits', ['viewer', 'operator', 'admin', 'business']],
    ['/alerts', 'warn', 'Alerts', ['viewer', 'operator', 'admin']],
    ['/statistics', 'chart', 'Statistics', ['viewer', 'operator', 'admin', 'business']],
  ],
  [
    ['/log', 'lines', 'Data log', ['viewer', 'operator', 'admin', 'business']],
    ['/audit', 'seal', 'Audit', ['viewer', 'operator', 'admin']],
    ['/guide', 'book', 'Guide', ['viewer', 'operator', 'admin', 'business', 'reader']],
    ['/settings', 'gear', 'Settings', ['viewer', 'operator', 'admin', 'business', 'reader']],
  ],
];

function isHere(path) {
  const at = route.value.path;
  return path === '/' ? at === '/' : at === path || at.startsWith(`${path}/`);
}

function Place({ place: [path, icon, text] }) {
  const running = path === '/tasks' && tasks.value ? [...tasks.value.values()].filter((task) => task.status === 'running').length : 0;
  return html`<a href=${path} aria-current=${isHere(path) ? 'page' : undefined}><${Icon} name=${icon} />${t(text)}
    ${running > 0 && html`<span class="tally" title=${t('running')}>${running}</span>`}</a>`;
}

function Foot() {
  const { name, role, session: own } = session.value;
  return html`<div class="foot">
    <p class="who"><span class="cut" title=${name}>${name}</span> <span>${t(role ?? '')}</span></p>
    <p class="tools">
      <button type="button" class="tool" onClick=${() => theme.next()} title=${t('Theme')}><${Icon} name="theme" />${t(theme.value)}</button>
      <button type="button" class="tool" onClick=${() => language.next()} title=${t('Language')} lang=${language.value === 'en' ? 'zh-CN' : 'en'}>${language.value === 'en' ? '中文' : 'English'}</button>
      <button type="button" class="tool" onClick=${() => zone.next()} title=${t('Time zone')}>${zone.value === 'UTC' ? 'UTC' : t('local')}</button>
      ${own && html`<button type="button" class="tool" onClick=${logOut}>${t('Sign out')}</button>`}
    </p>
  </div>`;
}

function Side() {
  const mine = (place) => place[3].includes(session.value.role);
  return html`<div class=${`side ${isOpen.value ? 'is-open' : ''}`} id="side">
    <a class="brand" href="/"><img class="mark" src="/ui/icon.svg" alt="" />Windrow</a>
    <nav aria-label=${t('Pages')}>${PLACES.map((group, at) => {
      const shown = group.filter(mine);
      return shown.length > 0 && html`<div class="nav" key=${at}>${shown.map((place) => html`<${Place} key=${place[0]} place=${place} />`)}</div>`;
    })}</nav>
    <${Foot} />
  </div>`;
}

/** Bar above data that no longer follow the node. */
function Stale() {
  const isLost = stream.value.state === 'lost';
  const isStale = isLost || paused.value;
  const text = isLost ? t('Disconnected') : t('Paused');
  useEffect(() => {
    if (isStale) announce(text, true);
  }, [isStale, text]);
  if (!isStale) return null;
  return html`<div class="stale"><${Icon} name=${isLost ? 'warn' : 'pause'} /><span class="grow"><b>${text}</b> ${t('since {time}: the data is {age} old.', { time: clock(heardAt.value), age: age((now.value - heardAt.value) / 1000) })}${isLost && ` ${t('The page continues by itself.')}`}</span>
    ${!isLost && html`<button type="button" class="button is-small" onClick=${() => pause(false)}>${t('Continue')}</button>`}</div>`;
}

function Chip() {
  const { state } = stream.value;
  const shown = state === 'idle' ? 'live' : state;
  const text = t({ live: 'live', lost: 'disconnected', paused: 'paused' }[shown]);
  return html`<button type="button" class="chip" data-state=${shown} onClick=${() => pause()} aria-pressed=${paused.value}
    title=${paused.value ? t('Resume (r)') : t('Pause (r)')} aria-label=${paused.value ? t('paused: resume') : t('{state}: pause', { state: text })}><span class="dot" aria-hidden="true"></span><span class="words">${text}</span></button>`;
}

/**
 * Page with title, breadcrumbs and actions.
 * @param {{title: string, up?: [string, string][], acts?: any, note?: any, children: any}} props
 */
export function Page({ title, up = [], acts, note, children }) {
  useEffect(() => {
    document.title = `${title} · Windrow`;
  }, [title]);
  return html`
    <header class="top">
      <button type="button" class="tool menu-button" aria-expanded=${isOpen.value} aria-controls="side" aria-label=${t('Menu')}
        onClick=${() => { isOpen.value = !isOpen.value; }}><${Icon} name="menu" /></button>
      <div class="crumbs">
        ${up.map(([href, text]) => html`<a class="up" key=${href} href=${href}>${text}</a><span class="soft" aria-hidden="true">/</span>`)}
        <h1 tabindex="-1" title=${title}>${title}</h1>${note}
      </div>
      <div class="acts">${acts}</div>
      <${Chip} /><a class="tool" href=${fitting(route.value.path)} title=${t('Guide to this page')} aria-label=${t('Guide to this page')}><${Icon} name="book" /></a><button type="button" class="tool" onClick=${help} title=${`${t('Help')} (?)`} aria-label=${t('Help')}>?</button>
    </header>
    <${Stale} />
    ${children}`;
}

/** Frame of all pages. */
export function Shell({ children }) {
  useEffect(() => {
    isOpen.value = false;
  }, [route.value.path]);
  const isStale = stream.value.state === 'lost' || paused.value;
  return html`<div class=${`frame ${isStale ? 'is-stale' : ''}`}>
    <a class="skip" href="#main">${t('Skip to content')}</a>
    <${Side} />
    <main class="main" id="main" onClick=${() => { isOpen.value = false; }}>${children}</main>
  </div>`;
}
