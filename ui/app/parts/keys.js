/** @file Keyboard shortcuts in one table, and the help: terms, keys and references. */
import { html, signal, useEffect, useRef } from '../../vendor/preact-htm.js';
import { fitting } from '../lib/guide.js';
import { t } from '../lib/i18n.js';
import { singleKeys } from '../lib/kept.js';
import { pause } from '../lib/live.js';
import { go, route } from '../lib/router.js';

const GO = { o: '/', t: '/tasks', b: '/businesses', s: '/schedules', d: '/datasets', n: '/nodes', l: '/log', a: '/audit' };
const SEQUENCE_MS = 1200;
const isHelp = signal(false);

/** Opens the help. */
export function help() {
  isHelp.value = true;
}

function move(by) {
  const links = [...document.querySelectorAll('main tbody [data-row]')];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))].focus();
}

const press = (key, otherwise = () => {}) => () => {
  const found = document.querySelector(`main [data-key="${key}"]`);
  if (found) found.click();
  else otherwise();
};

function search() {
  const place = document.querySelector('main [data-search], main input[type="search"]');
  if (place) place.focus();
  else go('/tasks');
}

const KEYS = {
  '/': [search, 'search'],
  '?': [help, 'show this help'],
  j: [() => move(1), 'next row'],
  k: [() => move(-1), 'previous row'],
  r: [() => pause(), 'pause or resume updates'],
  s: [press('s'), 'stop or start the open task'],
  e: [press('e'), 'show what limits the rate'],
  c: [press('c', () => go('/tasks/new')), 'new task'],
};

function isTyping(target) {
  return target instanceof HTMLElement && (target.closest('input, textarea, select, dialog[open]') || target.isContentEditable);
}

let leader = 0;

function onKey(event) {
  if (singleKeys.value === 'disabled' || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target) || document.querySelector('dialog[open]')) return;
  if (Date.now() - leader < SEQUENCE_MS && GO[event.key]) {
    leader = 0;
    event.preventDefault();
    return go(GO[event.key]);
  }
  leader = event.key === 'g' ? Date.now() : 0;
  const found = KEYS[event.key];
  if (!found) return;
  event.preventDefault();
  found[0]();
}

/** Registers the keyboard shortcuts. */
export function useKeys() {
  useEffect(() => {
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

const PLACES = { o: 'Overview', t: 'Tasks', b: 'Businesses', s: 'Schedules', d: 'Datasets', n: 'Nodes', l: 'Data log', a: 'Audit' };

/** Terms that the pages use. */
const TERMS = {
  business: 'a handler with its defaults and limits; tasks belong to one',
  task: 'one pass over the items of a source, at a rate',
  'in flight': 'sent, not answered yet',
  retrying: 'failed before, sent again after a wait',
  parked: 'retrying outside the window, so that it holds up nothing',
  settled: 'succeeded, skipped or failed for good',
  watermark: 'every item below it is settled or parked',
  window: 'items that may be in flight, from the watermark on',
  canary: 'the first items; then the task stops for review',
  redrive: 'a task over the failed items of another',
};

/** Choice between keys that act at once and none. */
export function KeysChoice() {
  return html`<label class="check"><input type="checkbox" checked=${singleKeys.value === 'enabled'} onChange=${() => singleKeys.next()} />${t('Single-key shortcuts')}</label>`;
}

const pairs = (of) => html`<dl class="pairs is-tight">${of.map(([name, text]) => html`<dt key=${text}>${name}</dt><dd>${t(text)}</dd>`)}</dl>`;
const kbd = (key) => html`<kbd>${key}</kbd>`;

/** Help. */
export function Help() {
  const place = useRef(null);
  const isShown = isHelp.value;
  useEffect(() => {
    if (isShown) place.current?.showModal();
  }, [isShown]);
  if (!isShown) return null;
  const close = () => { isHelp.value = false; };
  return html`<dialog ref=${place} onClose=${close} aria-label=${t('Help')}><div class="inside">
    <header class="row"><h2 class="grow">${t('Help')}</h2><button type="button" class="button is-small" onClick=${close} autofocus>${t('Close')}</button></header>
    <p class="row wrap"><a class="link" href=${fitting(route.value.path)} onClick=${close}>${t('Guide to this page')}</a><a class="link" href="/docs">${t('API')}</a><a class="link" href="/problems">${t('Error reference')}</a><code>windrow --help</code></p>
    <h3>${t('Terms')}</h3>${pairs(Object.entries(TERMS).map(([name, text]) => [t(name), text]))}
    <h3>${t('Keyboard')}</h3><${KeysChoice} />
    ${pairs([...Object.entries(PLACES).map(([key, text]) => [html`${kbd('g')} ${kbd(key)}`, text]), ...Object.entries(KEYS).map(([key, [, text]]) => [kbd(key), text]), [kbd('Enter'), 'open row'], [kbd('Esc'), 'close']])}
  </div></dialog>`;
}
