/** @file Dialog for all changes: effect, reason, and equivalent command. Nothing is shown as done before the node confirms it. */
import { html, signal, useEffect, useRef, useState } from '../../vendor/preact-htm.js';
import { ApiError, call } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { renewed } from '../lib/live.js';
import { go } from '../lib/router.js';
import { may } from '../lib/session.js';
import { sh } from '../lib/command.js';
import { Copy, Problem } from './basic.js';
import { toast } from './toast.js';

/**
 * @typedef {object} Action
 * @property {string} title question of the dialog
 * @property {string} [text] effect of the action
 * @property {string} verb label of the button
 * @property {'GET'|'POST'|'PATCH'|'DELETE'} method
 * @property {string} path
 * @property {String} cli equivalent command from `sh`, without the reason
 * @property {'viewer'|'operator'|'admin'} [role] required role; default: operator
 * @property {boolean} [isForStaff] not for businesses, whatever the role
 * @property {boolean} [isDanger]
 * @property {string} [typed] text to type as confirmation
 * @property {boolean} [noReason] the request takes no reason
 * @property {{name: string, label: string, value?: any, hint?: string, options?: [string, string][], type?: string, required?: boolean}[]} [fields]
 * @property {(values: any) => object} [body] members of the request body
 * @property {(values: any) => any} [flags] additions of the fields to the command: parts of `sh`, or values
 * @property {(answer: any) => string} [done] message afterwards
 * @property {(answer: any) => Action} [undo] inverse action
 * @property {(answer: any) => string | void} [next] page to open afterwards
 * @property {(answer: any) => void} [after]
 * @property {(would: any) => any} [foresee] text from the node's dry run
 * @property {(values: any) => Action[]} [each] instead of a request: actions performed in sequence under one dialog
 */

const asked = signal(/** @type {Action | null} */ (null));

/** Opens the dialog of an action. @param {Action} action */
export function ask(action) {
  asked.value = action;
}

function requestOf(action, values, reason) {
  const withReason = action.noReason || !reason ? {} : { reason };
  const members = action.body?.(values) ?? {};
  if (action.method === 'DELETE') {
    const query = new URLSearchParams(withReason).toString();
    return { path: query ? `${action.path}?${query}` : action.path, body: undefined };
  }
  return { path: action.path, body: { ...members, ...withReason } };
}

function commandOf(action, values, reason) {
  if (action.each) return action.each(values).map((one) => commandOf(one, values, reason)).join('\n');
  return String(sh`${[action.cli, action.flags?.(values), reason && !action.noReason && sh`--reason ${reason}`]}`);
}

function curlOf(action, values, reason) {
  if (action.each) return action.each(values).map((one) => curlOf(one, values, reason)).join('\n');
  const { path, body } = requestOf(action, values, reason);
  const data = body !== undefined && sh`-H 'content-type: application/json' -d ${JSON.stringify(body)}`;
  return String(sh`curl -X ${action.method} -H "authorization: Bearer $WINDROW_TOKEN" ${[data, location.origin + path]}`);
}

/** Performs an action at once. @returns {Promise<any>} the node's response */
export async function perform(action, values = {}, reason = '') {
  if (action.each) return performAll(action, values, reason);
  const { path, body } = requestOf(action, values, reason);
  const answer = await call(action.method, path, body);
  action.after?.(answer);
  renewed.value += 1;
  const undo = action.undo?.(answer);
  const back = undo && (() => perform(undo).catch((error) => toast(error.message)));
  if (action.done) toast(action.done(answer), back);
  const next = action.next?.(answer);
  if (next) go(next);
  return answer;
}

/** Performs several actions in sequence and reports the result; the successful ones can be undone together. */
async function performAll(action, values, reason) {
  const [undos, refusals] = [[], []];
  const all = action.each(values);
  for (const one of all) {
    try {
      const { path, body } = requestOf(one, values, reason);
      undos.push(one.undo?.(await call(one.method, path, body)));
    } catch (error) {
      refusals.push(error);
    }
  }
  renewed.value += 1;
  if (refusals.length === all.length) throw refusals[0];
  const back = () => performAll({ each: () => undos.filter(Boolean) }, {}, '').catch((error) => toast(error.message));
  toast(refusals.length
    ? t('{n} of {all} rejected: {why}', { n: refusals.length, all: all.length, why: refusals[0].message })
    : t('done for {n:task|tasks}', { n: all.length }), undos.some(Boolean) ? back : undefined);
  action.after?.();
}

function Field({ field, value, set }) {
  const change = (event) => set(field.type === 'checkbox' ? event.target.checked : event.target.value);
  if (field.type === 'checkbox') {
    return html`<label class="check"><input type="checkbox" checked=${value} onChange=${change} /><span>${field.label}</span></label>`;
  }
  return html`<div class="field"><label><span>${field.label}</span>
    ${field.type === 'json' ? html`<textarea rows="6" value=${value} onInput=${change} spellcheck=${false}></textarea>` : field.options
      ? html`<select value=${value} onChange=${change}>${field.options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}</select>`
      : html`<input type=${field.type ?? 'text'} value=${value} required=${field.required} onInput=${change} autocomplete="off" spellcheck=${false} aria-describedby=${field.hint && `${field.name}-hint`} />`}</label>
    ${field.hint && html`<span class="hint" id=${`${field.name}-hint`}>${field.hint}</span>`}
  </div>`;
}

function useAnswers(action) {
  const [values, setValues] = useState(() => Object.fromEntries((action.fields ?? []).map((field) => [field.name, field.value ?? ''])));
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [state, setState] = useState({ isPending: false, error: null });
  const submit = async (event) => {
    event.preventDefault();
    if (state.isPending) return;
    setState({ isPending: true, error: null });
    try {
      await perform(action, values, reason.trim());
      asked.value = null;
    } catch (error) {
      setState({ isPending: false, error: error instanceof ApiError ? error : new ApiError({ title: String(error), status: 0 }) });
    }
  };
  const set = (name, value) => setValues((old) => ({ ...old, [name]: value }));
  return { values, set, reason, setReason, typed, setTyped, submit, ...state };
}

/** Dry run on the node, shortly after the last keystroke. */
function Foreseen({ action, values }) {
  const [state, setState] = useState({ would: null, error: null });
  const { path, body } = requestOf(action, values, '');
  useEffect(() => {
    const timer = setTimeout(() => call(action.method, `${path}?dry_run=true`, body).then(
      ({ would }) => setState({ would, error: null }),
      (error) => setState({ would: null, error }),
    ), 400);
    return () => clearTimeout(timer);
  }, [JSON.stringify(body)]);
  if (state.error) return html`<${Problem} error=${state.error} />`;
  return state.would && html`<p class="soft" role="status">${action.foresee(state.would)}</p>`;
}

function Question({ action }) {
  const answers = useAnswers(action);
  const { values, reason } = answers;
  const isHeld = action.typed != null && answers.typed !== action.typed;
  return html`<form onSubmit=${answers.submit}>
    <h2>${action.title}</h2>
    ${action.text && html`<p>${action.text}</p>`}
    ${action.fields?.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]} set=${(value) => answers.set(field.name, value)} />`)}
    ${action.typed != null && html`<label class="field"><span>${t('Type {name} to confirm', { name: action.typed })}</span>
      <input type="text" value=${answers.typed} onInput=${(event) => answers.setTyped(event.target.value)} autocomplete="off" spellcheck=${false} /></label>`}
    ${!action.noReason && html`<label class="field"><span>${t('Reason for the audit log (optional)')}</span>
      <input type="text" maxlength="1000" value=${reason} onInput=${(event) => answers.setReason(event.target.value)} /></label>`}
    ${answers.error ? html`<${Problem} error=${answers.error} />` : action.foresee && html`<${Foreseen} action=${action} values=${values} />`}
    <div class="ends">
      <span class="left"><${Copy} text=${commandOf(action, values, reason)}>${t('Copy as command')}<//>
        <${Copy} text=${curlOf(action, values, reason)}>curl<//></span>
      <button type="button" class="button" onClick=${() => { asked.value = null; }}>${t('Cancel')}</button>
      <button type="submit" class=${`button is-main ${action.isDanger ? 'is-danger-main' : ''}`} disabled=${isHeld || answers.isPending} autofocus=${!action.fields && action.typed == null}>
        ${answers.isPending ? t('Waiting for the node…') : action.verb}</button>
    </div>
  </form>`;
}

/** Host of the dialog. */
export function Asker() {
  const place = useRef(null);
  const action = asked.value;
  useEffect(() => {
    if (!action) return;
    place.current.showModal();
  }, [action]);
  if (!action) return null;
  return html`<dialog ref=${place} aria-label=${action.title} onClose=${() => { asked.value = null; }}>
    <${Question} action=${action} key=${action} /></dialog>`;
}

/** Button that opens a dialog. Without the required role it is disabled and names the role. */
export function ActButton({ action, children, class: extra = '', isMain = false, hotkey }) {
  const role = action.role ?? 'operator';
  const isAllowed = may(role, action.isForStaff);
  return html`<button type="button" data-key=${hotkey} class=${`button ${isMain ? 'is-main' : ''} ${extra}`} aria-disabled=${!isAllowed}
    title=${isAllowed ? undefined : t('requires the {role} role', { role: t(role) })} onClick=${() => isAllowed && ask(action)}>${children ?? action.verb}</button>`;
}
