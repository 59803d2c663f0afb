/** @file Keyboard shortcuts: one table, which the help shows too. */
import { html, signal, useEffect, useRef } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';
import { pause } from '../lib/live.js';
import { go } from '../lib/router.js';

const GO = { o: '/', t: '/tasks', b: '/businesses', s: '/schedules', d: '/datasets', n: '/nodes', l: '/log', a: '/audit' };
const SEQUENCE_MS = 1200;
const isHelp = signal(false);

/** Opens the keyboard help. */
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
  if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target) || document.querySelector('dialog[open]')) return;
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

/** Keyboard help. */
export function Help() {
  const place = useRef(null);
  const isShown = isHelp.value;
  useEffect(() => {
    if (isShown) place.current?.showModal();
  }, [isShown]);
  if (!isShown) return null;
  const close = () => { isHelp.value = false; };
  return html`<dialog ref=${place} onClose=${close} aria-label=${t('Keyboard')}><div class="inside">
    <h2>${t('Keyboard')}</h2>
    <dl class="pairs">
      ${Object.entries(PLACES).map(([key, text]) => html`<dt key=${key}><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${t(text)}</dd>`)}
      ${Object.entries(KEYS).map(([key, [, text]]) => html`<dt key=${key}><kbd>${key}</kbd></dt><dd>${t(text)}</dd>`)}
      <dt><kbd>Enter</kbd></dt><dd>${t('open row')}</dd>
      <dt><kbd>Esc</kbd></dt><dd>${t('close')}</dd>
    </dl>
    <div class="ends"><button type="button" class="button" onClick=${close} autofocus>${t('Close')}</button></div>
  </div></dialog>`;
}
