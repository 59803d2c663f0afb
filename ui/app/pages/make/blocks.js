/** @file Sections of the form for a new task. */
import { html } from '../../../vendor/preact-htm.js';
import { fault } from '../../lib/draft.js';
import { t } from '../../lib/i18n.js';
import { Section } from '../../parts/basic.js';
import { File } from './file.js';

function Text({ form, set, faults = {}, name, label, hint, type = 'text', width }) {
  const wrong = faults[name];
  return html`<div class="field" style=${width ? { width } : undefined}><label><span>${label}</span>
    <input type=${type} value=${form[name]} class=${wrong ? 'invalid' : ''} aria-invalid=${wrong ? 'true' : undefined} aria-describedby=${`${name}-hint`} spellcheck=${false} autocomplete="off"
      onInput=${(event) => set({ [name]: event.target.value })} /></label>
    <span id=${`${name}-hint`} class=${wrong ? 'bad' : 'hint'}>${wrong ?? hint}</span></div>`;
}

function Choice({ form, set, name, options, label }) {
  return html`<fieldset class="choice"><legend>${label}</legend>${options.map(([value, text]) => html`<label class="check" key=${value}>
    <input type="radio" name=${name} value=${value} checked=${form[name] === value} onChange=${() => set({ [name]: value })} /><span>${text}</span></label>`)}</fieldset>`;
}

/** Business and name. */
export function Business({ form, set, names, faults }) {
  const chosen = names.find((one) => one.name === form.business);
  return html`<${Section} title=${`1 ${t('Business')}`}><div class="fields">
    <div class="field"><label><span>${t('Handled by')}</span><select value=${form.business} onChange=${(event) => set({ business: event.target.value })}>
      <option value="">${t('choose…')}</option>${names.map((one) => html`<option key=${one.name} value=${one.name} selected=${one.name === form.business}>${one.name}</option>`)}</select></label>
      ${chosen && html`<span class="hint cut">${chosen.url ?? chosen.command ?? chosen.request?.call ?? ''}</span>`}</div>
    <${Text} form=${form} set=${set} faults=${faults} name="name" label=${t('Name (optional)')} hint=${t('unique within the business')} />
    <${Text} form=${form} set=${set} faults=${faults} name="labels" label=${t('Labels (optional)')} hint="team:growth, source:crm" />
  </div><//>`;
}

/** Source of the items. */
export function Items({ form, set, faults }) {
  const kinds = [['file', t('File')], ['range', t('Number range')], ['url', t('URL')], ['open', t('Appended while running')]];
  return html`<${Section} title=${`2 ${t('Items')}`}>
    <${Choice} form=${form} set=${set} name="kind" options=${kinds} label=${t('Source')} />
    ${form.kind === 'file' && html`<${File} form=${form} set=${set} />`}
    ${form.kind === 'range' && html`<${Text} form=${form} set=${set} faults=${{ total: faults.source }} name="total" type="number" label=${t('Number of items')} width="12rem" hint=${t('handlers receive the numbers 0, 1, 2 …')} />`}
    ${form.kind === 'url' && html`<div class="fields"><${Text} form=${form} set=${set} faults=${{ url: faults.source }} name="url" label=${t('URL')} hint="https://…" />
      <label class="field"><span>${t('Format')}</span><select onChange=${(event) => set({ format: event.target.value })}>
        ${['ndjson', 'csv', 'lines'].map((one) => html`<option key=${one} value=${one} selected=${form.format === one}>${one}</option>`)}</select></label></div>`}
    ${form.kind === 'open' && html`<p class="soft">${t('Programs append items while the task runs, until it is sealed:')} <code>windrow task append</code>, <code>POST /v1/tasks/t1/items</code></p>`}<//>`;
}

/** Rate, concurrency and window. */
export function Pace(props) {
  return html`<${Section} title=${`3 ${t('Pace')}`}><div class="fields">
    <${Text} ...${props} name="rate" label=${t('Rate')} hint=${t('500/s, 30/m, unlimited, or auto (found by the autopilot); can be changed while running')} />
    <${Text} ...${props} name="concurrency" label=${t('Concurrency')} hint=${t('items in flight: a number or auto')} />
    <${Text} ...${props} name="window" label=${t('Window')} hint=${t('items ahead of the oldest unfinished one: a number or auto')} />
    <${Text} ...${props} name="timeout" label=${t('Call timeout (optional)')} hint="10s" />
  </div><//>`;
}

/** Canary, error budget, retries and responses. */
export function Safety(props) {
  const { form, set, faults } = props;
  return html`<${Section} title=${`4 ${t('Safety')}`}><div class="fields">
    <div class="field"><label class="check"><input type="checkbox" checked=${form.canary} onChange=${(event) => set({ canary: event.target.checked })} />
        <span>${t('Run a canary first')}</span></label>
      <input type="number" min="1" value=${form.canaryItems} disabled=${!form.canary} aria-label=${t('Canary items')} onInput=${(event) => set({ canaryItems: event.target.value })} />
      <span class=${faults.canary ? 'bad' : 'hint'}>${faults.canary ?? t('run this many items first, then pause for review')}</span></div>
    <${Text} ...${props} name="error_budget" label=${t('Error budget')} hint=${t('auto or 10/s: pause; 1% or 500: stop; none: no limit')} />
    <${Text} ...${props} name="max_attempts" type="number" label=${t('Attempts per item (optional)')} hint=${t('default: set by the business, else 5')} />
    <${Text} ...${props} name="backoff" label=${t('Retry backoff (optional)')} hint="1s..60s x2 jitter 20%" />
  </div>
  <${Choice} form=${form} set=${set} name="on_exhausted" label=${t('When retries run out')} options=${[['fail', t('mark failed and continue')], ['stop', t('stop the task')]]} />
  <${Choice} form=${form} set=${set} name="results" label=${t('Responses')} options=${[['off', t('discard')], ['keep', t('keep')]]} /><//>`;
}

/** Rarely used settings. */
export function More(props) {
  const { form, set } = props;
  const wrong = fault(form);
  return html`<details class="section"><summary>${t('More')}</summary><div class="fields">
    <${Text} ...${props} name="shards" label=${t('Shards')} hint=${t('parts that nodes run in parallel')} />
    <${Text} ...${props} name="start_at" type="datetime-local" label=${t('Start at')} />
    <${Text} ...${props} name="deadline" type="datetime-local" label=${t('Deadline')} />
    </div><label class="field"><span>${t('Parameters (JSON, sent with each call)')}</span>
      <textarea rows="4" class=${wrong ? 'invalid' : ''} value=${form.params} onInput=${(event) => set({ params: event.target.value })}></textarea>
      ${wrong && html`<span class="bad">${wrong}</span>`}</label></details>`;
}
