/** @file Sign-in with a token. It is sent to the node once and not stored in the browser. */
import { html, useRef, useState } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';
import { logIn } from '../lib/session.js';
import { Command, Problem } from '../parts/basic.js';

/** Sign-in page. The address stays, so that the requested page opens afterwards. */
export function Login() {
  const field = useRef(null);
  const [state, setState] = useState({ isPending: false, error: null });
  const submit = async (event) => {
    event.preventDefault();
    setState({ isPending: true, error: null });
    try {
      await logIn(field.current.value.trim());
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1><img class="mark" src="/ui/icon.svg" alt="" width="24" height="24" /> ${t('Sign in to Windrow')}</h1>
      <label class="field"><span>${t('Token')}</span>
        <input type="password" name="token" ref=${field} required autofocus autocomplete="current-password" placeholder="wrk_…" spellcheck=${false} /></label>
      ${state.error && html`<${Problem} error=${state.error} />`}
      <button type="submit" class="button is-main" disabled=${state.isPending}>${state.isPending ? t('Signing in…') : t('Sign in')}</button>
      <div class="stack soft">
        <p>${t('The first administrator token is in the file that the node named on its first start. An administrator can create a token for you:')}</p>
        <${Command} text="windrow token create --name ada --role operator" />
      </div>
    </form>
  </main>`;
}
