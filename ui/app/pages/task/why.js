/** @file Why a task isn't faster: where the missing rate went, and what would bring it back. */
import { html } from '../../../vendor/preact-htm.js';
import { change } from '../../lib/actions.js';
import { part } from '../../lib/api.js';
import { count, rate, share } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { say, sayAll } from '../../lib/say.js';
import { waitsForItems } from '../../lib/task.js';
import { ActButton } from '../../parts/ask.js';
import { Whole } from '../../parts/basic.js';
import { Icon } from '../../parts/icon.js';

/** Up to this share of the target, what is missing is none. */
const ENOUGH = 0.03;
const CAUSES_MAX = 6;
/** Smaller shares of what is missing are left out. */
const LEAST = 0.005;

function Causes({ of }) {
  return html`<div class="bars">${of.map((one) => html`
    <span key=${one.slug} class="strong" title=${say(one.text_message, one.text)}>${say(one.title_message, one.title)}</span>
    <span class="bar"><i class="of-retry" style=${{ width: `${Math.max(0, Math.min(1, one.share ?? 0)) * 100}%` }}></i></span>
    <span class="value">${one.rate == null ? '' : html`${rate(one.rate)}/s `}<span class="soft">${share(one.share)}</span></span>
    ${one.text && one.slug !== 'handler_down' && html`<span class="soft causes-text">${say(one.text_message, one.text)}</span>`}`)}</div>`;
}

function Advice({ task, advice }) {
  return html`<ul class="advice">${advice.map((one) => html`<li key=${one.text}>
    <span class="grow">${say(one.text_message, one.text)}${one.predicted_rate && html` <span class="soft">→ ≈ ${rate(one.predicted_rate)}/s</span>`}
      ${one.hindrance && html`<span class="soft block">${say(one.hindrance_message, one.hindrance)}</span>`}</span>
    ${one.change && html`<${ActButton} action=${change(task, one.change)} class="is-small" />`}</li>`)}</ul>`;
}

function isFast(found) {
  return found.target_rate != null && (found.missing_rate ?? 0) <= found.target_rate * ENOUGH;
}

function Found({ task, found }) {
  if (waitsForItems(task)) return html`<p class="soft"><${Icon} name="clock" /> ${t('All added items have been sent. The task waits for more, or to be sealed.')}</p>`;
  if (isFast(found) && found.advice.length === 0) return html`<p><${Icon} name="check" class="ok" /> ${t('On target.')}</p>`;
  const causes = found.causes.filter((one) => one.share >= LEAST).slice(0, CAUSES_MAX);
  const waits = found.waits.map((one) => ({ ...one, text: '' }));
  // With causes, the summary would say the same again.
  return html`<div class="stack">${causes.length > 0 ? html`<${Causes} of=${causes} />` : html`<p>${sayAll(found.why_messages, found.why)}</p>${waits.length > 0 && html`<${Causes} of=${waits} />`}`}
    <${Advice} task=${task} advice=${found.advice} /></div>`;
}

const missing = (found) => (found.missing_rate > 0 && !isFast(found) ? t('{n}/s below the target of {target}/s', { n: rate(found.missing_rate), target: rate(found.target_rate) }) : t('over the last {n}s', { n: count(Math.round(found.span_seconds)) }));

/** The section. */
export function Why({ task }) {
  const read = useResource(`/v1/tasks/${part(task.id)}/explain`, { every: task.status === 'running' ? 3000 : 6000 });
  return html`<div id="why" data-key="e" tabindex="-1" onClick=${(event) => { if (event.detail === 0) { event.currentTarget.scrollIntoView(); event.currentTarget.focus(); } }}>
    <h3 class="row wrap"><span class="grow">${t('Bottlenecks')}</span>${read.data && task.status === 'running' && !waitsForItems(task) && html`<span class="soft">${missing(read.data)}</span>`}</h3>
    <${Whole} of=${read}>${(found) => html`<${Found} task=${task} found=${found} />`}<//></div>`;
}
