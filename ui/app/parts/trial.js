/** @file Test call of a business without a task: request, response, verdict and duration. */
import { html, useState } from '../../vendor/preact-htm.js';
import { ApiError, call, part } from '../lib/api.js';
import { count, span } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { may } from '../lib/session.js';
import { sh } from '../lib/command.js';
import { Copy, Json, Pairs, Problem, Section } from './basic.js';
import { ItemStatus } from './status.js';

/** Request body with the data as typed: numbers too long for JavaScript keep their digits. */
const bodyOf = ({ index, data }) => `{"index":${Number(index) || 0}${data.trim() && `,"data":${data.trim()}`}}`;

function check({ data }) {
  try {
    return data.trim() && JSON.parse(data);
  } catch (error) {
    throw new ApiError({ title: t('The data is not valid JSON'), detail: error.message, status: 0 });
  }
}

const commandOf = (name, form) => String(sh`windrow api POST ${`/v1/businesses/${part(name)}/tries`} --data ${bodyOf(form)}`);

function Reply({ of: { sent, reply, called } }) {
  return html`<div class="stack tried" role="status"><${Pairs} of=${[
    [t('Verdict'), html`<${ItemStatus} state=${reply.result} />`],
    [t('Duration'), span(reply.latency_seconds)],
    [t('Handler'), html`<code>${called}</code>`],
    [t('Item'), html`#${count(reply.index)} <span class="soft mono">${reply.item_key}</span>`],
    reply.code && [t('Code'), html`<code>${reply.code}</code>`],
    reply.message && [t('Message'), reply.message],
    reply.output_bytes && [t('Response'), t('{n:byte|bytes}, too large to show', { n: count(reply.output_bytes) })],
    reply.logs.length > 0 && [t('Log lines'), reply.logs.map((line, at) => html`<span key=${at} class="block mono">${line}</span>`)],
  ]} />
  ${sent && html`<h3>${t('Sent data')}</h3><pre class="json" tabindex="0" role="region" aria-label=${t('Sent data')}>${sent}</pre>`}
  ${reply.output != null && html`<h3>${t('Response')}</h3><${Json} value=${reply.output} label=${t('Response')} />`}</div>`;
}

/**
 * Test call section.
 * @param {{name: string, called: string}} props called: handler, for display
 */
export function Trial({ name, called }) {
  const [form, setForm] = useState({ index: '0', data: '' });
  const [state, setState] = useState({ isPending: false, done: null, error: null });
  const isAllowed = may('operator');
  const set = (member) => (event) => setForm((old) => ({ ...old, [member]: event.target.value }));
  const submit = async (event) => {
    event.preventDefault();
    if (!isAllowed || state.isPending) return;
    setState({ isPending: true, done: null, error: null });
    try {
      check(form);
      const body = new Blob([bodyOf(form)], { type: 'application/json' });
      const reply = await call('POST', `/v1/businesses/${part(name)}/tries`, body);
      setState({ isPending: false, done: { sent: form.data.trim(), reply, called }, error: null });
    } catch (error) {
      setState({ isPending: false, done: null, error });
    }
  };
  return html`<${Section} title=${t('Test call')} aside=${t('One call in preview mode, without a task; nothing is counted.')}>
    <form class="stack" onSubmit=${submit}>
      <label class="row"><span class="soft">${t('Item')} #</span><input type="number" min="0" value=${form.index} onInput=${set('index')} /></label>
      <label class="field"><span class="soft">${t('Data (JSON, optional)')}</span><textarea rows="3" spellcheck=${false} value=${form.data} placeholder='{"user_id": "u_1"}' onInput=${set('data')}></textarea></label>
      <p class="row"><button type="submit" class="button" disabled=${state.isPending} aria-disabled=${!isAllowed} title=${isAllowed ? undefined : t('requires the {role} role', { role: t('operator') })}>${state.isPending ? t('Calling the handler…') : t('Send test call')}</button>
        <${Copy} text=${commandOf(name, form)}>${t('Copy as command')}<//></p></form>
    ${state.error && html`<${Problem} error=${state.error} />`}${state.done && html`<${Reply} of=${state.done} />`}<//>`;
}
