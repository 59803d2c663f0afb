/** @file Registration of a business. The node checks the contract before it saves the business. */
import { html, useState } from '../../vendor/preact-htm.js';
import { ApiError, call } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { may } from '../lib/session.js';
import { BLANK, HOOKS, bodyOf, commandOf } from '../lib/registration.js';
import { Command, Copy, Problem, Section } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { Trial } from '../parts/trial.js';
import { Checks } from './business.js';
import { handler } from './businesses.js';

const HOOK_TEXTS = { validate: 'is created', prepare: 'begins', stopped: 'stops', finished: 'finishes', reduce: 'publishes' };

/** Fields of each kind of handler. */
const KINDS = {
  url: (field, lines) => html`${field('url', t('URL'), 'https://push.internal/windrow', { required: true })}
    ${lines('headers', t('Headers (optional)'), t('one per line, name: value'))}${lines('secret_headers', t('Secret headers (optional)'), t('stored encrypted, shown as ***'))}`,
  request: (field, lines) => html`${field('call', t('Method and URL'), 'POST https://push.internal/orders/{order_id}', { required: true })}
    ${lines('json', t('JSON body (optional)'), '{"qty": {qty:number}, "note": {note}}')}${lines('headers', t('Headers (optional)'), 'authorization: Bearer {secret.TOKEN}')}
    ${lines('secrets', t('Secrets (optional)'), t('TOKEN=value per line, for {secret.TOKEN}; stored encrypted'))}${field('result', t('Output in the response (optional)'), '/data/id')}`,
  command: (field) => field('command', t('Command'), t('a name under [handler.command.commands]'), { required: true }),
};

/** Registration page. */
export function Register() {
  const [form, setForm] = useState(BLANK);
  const [state, setState] = useState({ isPending: false, error: null, made: null });
  const set = (name) => (event) => setForm((old) => ({ ...old, [name]: event.target.type === 'checkbox' ? event.target.checked : event.target.value }));
  const isAllowed = may('admin');
  const submit = async (event) => {
    event.preventDefault();
    if (!isAllowed) return;
    setState({ isPending: true, error: null, made: null });
    try {
      const made = await call('POST', `/v1/businesses?check=${form.check}`, bodyOf(form));
      setState({ isPending: false, error: null, made });
    } catch (error) {
      setState({ isPending: false, error: error instanceof ApiError ? error : new ApiError({ title: String(error), status: 0 }), made: null });
    }
  };
  const lines = (name, label, hint, rows = 2) => html`<div class="field"><label><span>${label}</span><textarea rows=${rows} value=${form[name]} onInput=${set(name)} spellcheck=${false} aria-describedby=${`${name}-hint`}></textarea></label>
    <span class="hint" id=${`${name}-hint`}>${hint}</span></div>`;
  const hook = (name) => (event) => setForm((old) => ({ ...old, hooks: HOOKS.filter((one) => (one === name ? event.target.checked : old.hooks.includes(one))) }));
  const field = (name, label, hint, more = {}) => html`<div class="field"><label><span>${label}</span><input type="text" value=${form[name]} onInput=${set(name)} autocomplete="off" spellcheck=${false} aria-describedby=${`${name}-hint`} ...${more} /></label>
    <span class="hint" id=${`${name}-hint`}>${hint}</span></div>`;
  const { made, error } = state;
  if (made) {
    return html`<${Page} title=${t('{name} is registered', { name: made.name })} up=${[['/businesses', t('Businesses')]]}>
      <div class="stack">${made.secret && html`<p>${t('Calls are signed with this secret, and the handler verifies them with it. It is shown only once.')}</p><${Command} text=${made.secret} />`}
      <p><a href=${`/businesses/${made.name}`}>${t('Continue')}</a></p></div>
      <${Trial} name=${made.name} called=${handler(made)} /><//>`;
  }
  const report = error?.problem?.check_report ?? error?.problem?.checks;
  return html`<${Page} title=${t('Register a business')} up=${[['/businesses', t('Businesses')]]}><form onSubmit=${submit}>
    <${Section} title=${t('Business')}><div class="fields">${field('name', t('Name'), t('lower-case letters, digits and -; cannot be changed later'), { required: true, pattern: '[a-z0-9\\-]{1,40}' })}
      ${field('display_name', t('Display name (optional)'))}</div><//>
    <${Section} title=${t('Call settings')}>
      <fieldset class="choice"><legend>${t('Handler type')}</legend>
        <label class="check"><input type="radio" name="kind" value="url" checked=${form.kind === 'url'} onChange=${set('kind')} />${t('Handler at a URL')}</label>
        <label class="check"><input type="radio" name="kind" value="request" checked=${form.kind === 'request'} onChange=${set('kind')} />${t('Request to any API')}</label>
        <label class="check"><input type="radio" name="kind" value="command" checked=${form.kind === 'command'} onChange=${set('kind')} />${t('Command on the node')}</label></fieldset>
      <div class="fields is-wide">${KINDS[form.kind](field, lines)}</div>
      <div class="fields">${field('rate', t('Default task rate (optional)'), '500/s, auto')}${field('timeout', t('Call timeout (optional)'), '10s')}${field('limit', t('Total rate of all tasks (optional)'), '2000/s')}</div>
      <label class="check"><input type="checkbox" checked=${form.insecure} onChange=${set('insecure')} />${t('Trust any certificate (test systems only)')}</label><//>
    <details class="section" open=${form.hooks.length > 0}><summary><h2>${t('Hooks')}</h2></summary>
      <fieldset class="choice"><legend>${t('Call it when a task')}</legend>${HOOKS.map((name) => html`<label class="check" key=${name}><input type="checkbox" checked=${form.hooks.includes(name)} onChange=${hook(name)} />${t(HOOK_TEXTS[name])}</label>`)}</fieldset>
      <div class="fields is-wide">${field('hookUrl', t('Hook URL'), form.kind === 'url' ? t('empty: the URL of the handler') : 'https://push.internal/hooks', { required: form.kind !== 'url' && form.hooks.length > 0 })}</div></details>
    <${Section} title=${t('Contract')}><label class="check"><input type="checkbox" checked=${form.check === 'require'} onChange=${(event) => setForm((old) => ({ ...old, check: event.target.checked ? 'require' : 'skip' }))} />${t('Check the contract before saving')}</label>
      ${error && html`<${Problem} error=${error} />`}${Array.isArray(report) && html`<${Checks} reply=${{ checks: report }} />`}
      ${report?.checks && html`<${Checks} reply=${report} />`}<//>
    <p class="row"><button type="submit" class="button is-main" disabled=${state.isPending} aria-disabled=${!isAllowed}>${state.isPending ? t('Checking…') : t('Register')}</button>
      <${Copy} text=${commandOf(form)}>${t('Copy as command')}<//>${!isAllowed && html`<span class="soft">${t('requires the {role} role', { role: t('admin') })}</span>`}</p>
  </form><//>`;
}
