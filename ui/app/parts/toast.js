/** @file Notifications with undo, and announcements for screen readers. */
import { html, signal, useEffect, useRef } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';

const SHOWN_MS = 8000;
const toasts = signal([]);
const said = signal('');
let number = 0;
let saidAt = 0;

/**
 * Shows a notification.
 * @param {string} text
 * @param {() => void} [undo]
 */
export function toast(text, undo) {
  number += 1;
  const one = { id: number, text, undo };
  toasts.value = [...toasts.value.slice(-2), one];
  announce(text, true);
  setTimeout(() => expire(one.id), SHOWN_MS);
}

/** Dismisses a toast when its time is over, unless it is hovered or focused. */
function expire(id) {
  if (document.querySelector('.toasts:is(:hover, :focus-within)')) setTimeout(() => expire(id), 1000);
  else dismiss(id);
}

function dismiss(id) {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

/** Announces a text to screen readers: at most every ten seconds unless `matters`. */
export function announce(text, matters = false) {
  if (!matters && Date.now() - saidAt < 10_000) return;
  saidAt = Date.now();
  said.value = text;
}

/** Host of toasts: above everything, even dialogs. */
export function Toasts() {
  const place = useRef(null);
  const isShown = toasts.value.length > 0;
  useEffect(() => {
    if (isShown) place.current?.showPopover?.();
  }, [isShown]);
  return html`
    <div class="hidden-text" role="status" aria-live="polite">${said.value}</div>
    ${isShown && html`<div class="toasts" popover="manual" ref=${place}>${toasts.value.map((one) => html`
      <div class="toast" key=${one.id}><span class="grow">${one.text}</span>
        ${one.undo && html`<button type="button" onClick=${() => { dismiss(one.id); one.undo(); }}>${t('Undo')}</button>`}
        <button type="button" onClick=${() => dismiss(one.id)} aria-label=${t('Dismiss')}>×</button>
      </div>`)}</div>`}`;
}
