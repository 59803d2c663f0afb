/** @file Settings that can change while a task runs: rate, concurrency, window, error budget. Shows the setting and the current value. */
import { html, useRef, useState } from '../../../vendor/preact-htm.js';
import { change } from '../../lib/actions.js';
import { count } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { may } from '../../lib/session.js';
import { ask } from '../../parts/ask.js';

/** Scales a written rate. */
function scaled(written, factor) {
  const found = /^([\d.]+)\s*(\/.*)$/.exec(written);
  return found ? `${Number((Number(found[1]) * factor).toPrecision(3))}${found[2]}` : written;
}

function asNumber(text) {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function Knob({ task, name, label, now, isRate }) {
  const [typed, setTyped] = useState(null);
  const field = useRef(null);
  const written = String(task[name]);
  const value = typed ?? written;
  const isChanged = value.trim() !== written && value.trim() !== '';
  const isAllowed = may('operator');
  const apply = (event) => {
    event.preventDefault();
    if (!isChanged || !isAllowed) return;
    const wish = isRate ? value.trim() : asNumber(value.trim());
    ask({ ...change(task, { [name]: wish }), after: () => setTyped(null) });
  };
  const step = (factor) => { setTyped(scaled(value, factor)); field.current.focus(); };
  return html`<form class="knob" onSubmit=${apply}>
    <label><span class="soft">${label}</span>
      <input type="text" ref=${field} value=${value} onInput=${(event) => setTyped(event.target.value)} readonly=${!isAllowed}
        title=${isAllowed ? undefined : t('requires the {role} role', { role: t('operator') })} spellcheck=${false}
        onKeyDown=${(event) => event.key === 'Escape' && setTyped(null)} /></label>
    ${isRate && /^\d/.test(written) && html`<span class="steps">
      <button type="button" class="copy" aria-label=${`÷2 ${t('halve the rate')}`} disabled=${!isAllowed} onClick=${() => step(0.5)}>÷2</button>
      <button type="button" class="copy" aria-label=${`×2 ${t('double the rate')}`} disabled=${!isAllowed} onClick=${() => step(2)}>×2</button></span>`}
    ${now != null && written === 'auto' && html`<span class="soft">${t('now {n}', { n: count(now) })}</span>`}
    <button type="submit" class="button is-small is-main" style=${{ visibility: isChanged ? 'visible' : 'hidden' }} disabled=${!isChanged}>${t('Apply')}</button>
  </form>`;
}

/** Knobs of a task. */
export function Knobs({ task }) {
  return html`<div class="knobs">
    <${Knob} task=${task} name="rate" label=${t('Rate')} isRate=${true} />
    <${Knob} task=${task} name="concurrency" label=${t('Concurrency')} now=${task.live?.concurrency} />
    <${Knob} task=${task} name="window" label=${t('Window')} now=${task.live?.window} />
    <${Knob} task=${task} name="error_budget" label=${t('Error budget')} />
  </div>`;
}
