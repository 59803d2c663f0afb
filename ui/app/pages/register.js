/** @file Registration of a business. The node checks the contract before it saves the business. */
import { html, useState } from '../../vendor/preact-htm.js';
import { ApiError, call } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { go } from '../lib/router.js';
import { may } from '../lib/session.js';
import { sh } from '../lib/command.js';
import { Command, Copy, Problem, Section } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { Trial } from '../parts/trial.js';
import { Checks } from './business.js';
import { handler } from './businesses.js';

const BLANK = { name: '', display_name: '', kind: 'url', url: 'http://', command: '', rate: '', timeout: '', limit: '', insecure: false, check: 'require' };

function bodyOf(form) {
  return {
    name: form.name.trim(),
    ...(form.display_name.trim() ? { display_name: form.display_name.trim() } : {}),
    ...(form.kind === 'url' ? { url: form.url.trim() } : { command: form.command.trim() }),
    ...(form.insecure ? { insecure_skip_verify: true } : {}),
    defaults: { ...(form.rate ? { rate: form.rate } : {}), ...(form.timeout ? { timeout: form.timeout } : {}) },
    limits: form.limit ? { rate: form.limit } : {},
  };
}

function commandOf(form) {
  return String(sh`windrow biz register ${form.name || 'NAME'} ${form.kind === 'url' ? sh`--url ${form.url}` : sh`--command ${form.command}`}`);
}

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
      if (!made.secret) go(`/businesses/${made.name}`);
    } catch (error) {
      setState({ isPending: false, error: error instanceof ApiError ? error : new ApiError({ title: String(error), status: 0 }), made: null });
    }
  };
  const field = (name, label, hint, more = {}) => html`<div class="field"><label><span>${label}</span><input type="text" value=${form[name]} onInput=${set(name)} autocomplete="off" spellcheck=${false} aria-describedby=${`${name}-hint`} ...${more} /></label>
    <span class="hint" id=${`${name}-hint`}>${hint}</span></div>`;
  const { made, error } = state;
  if (made) {
    return html`<${Page} title=${t('{name} is registered', { name: made.name })} up=${[['/businesses', t('Businesses')]]}>
      <div class="stack"><p>${t('Calls are signed with this secret, and the handler verifies them with it. It is shown only once.')}</p><${Command} text=${made.secret} />
      <p><a href=${`/businesses/${made.name}`}>${t('Continue')}</a></p></div>
      <${Trial} name=${made.name} called=${handler(made)} /><//>`;
  }
  const report = error?.problem?.check_report ?? error?.problem?.checks;
  return html`<${Page} title=${t('Register a business')} up=${[['/businesses', t('Businesses')]]}><form onSubmit=${submit}>
    <${Section} title=${t('Business')}><div class="fields">${field('name', t('Name'), t('lower-case letters, digits and -; cannot be changed later'), { required: true, pattern: '[a-z0-9\\-]{1,40}' })}
      ${field('display_name', t('Display name (optional)'))}</div><//>
    <${Section} title=${t('Call settings')}>
      <fieldset class="choice"><legend>${t('Handler type')}</legend>
        <label class="check"><input type="radio" name="kind" value="url" checked=${form.kind === 'url'} onChange=${set('kind')} />HTTP</label>
        <label class="check"><input type="radio" name="kind" value="command" checked=${form.kind === 'command'} onChange=${set('kind')} />${t('Command on the node')}</label></fieldset>
      <div class="fields">${form.kind === 'url' ? field('url', t('URL'), 'https://push.internal/windrow', { required: true }) : field('command', t('Command'), t('a name under [handler.command.commands]'), { required: true })}
      ${field('rate', t('Default task rate (optional)'), '500/s, auto')}${field('timeout', t('Call timeout (optional)'), '10s')}${field('limit', t('Total rate of all tasks (optional)'), '2000/s')}</div>
      <label class="check"><input type="checkbox" checked=${form.insecure} onChange=${set('insecure')} />${t('Trust any certificate (test systems only)')}</label><//>
    <${Section} title=${t('Contract')}><label class="check"><input type="checkbox" checked=${form.check === 'require'} onChange=${(event) => setForm((old) => ({ ...old, check: event.target.checked ? 'require' : 'skip' }))} />${t('Check the contract before saving')}</label>
      ${error && html`<${Problem} error=${error} />`}${Array.isArray(report) && html`<${Checks} reply=${{ checks: report }} />`}
      ${report?.checks && html`<${Checks} reply=${report} />`}<//>
    <p class="row"><button type="submit" class="button is-main" disabled=${state.isPending} aria-disabled=${!isAllowed}>${state.isPending ? t('Checking…') : t('Register')}</button>
      <${Copy} text=${commandOf(form)}>${t('Copy as command')}<//>${!isAllowed && html`<span class="soft">${t('requires the {role} role', { role: t('admin') })}</span>`}</p>
  </form><//>`;
}
