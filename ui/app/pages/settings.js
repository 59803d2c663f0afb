/** @file Preferences of this browser, tokens, sessions, and details of the node. */
import { html, useState } from '../../vendor/preact-htm.js';
import { endSession, newToken, revoke } from '../lib/actions_more.js';
import { t, language } from '../lib/i18n.js';
import { theme, zone } from '../lib/kept.js';
import { useResource } from '../lib/resource.js';
import { may, session } from '../lib/session.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Command, Pairs, Section, Whole } from '../parts/basic.js';
import { KeysChoice } from '../parts/keys.js';
import { Page } from '../parts/shell.js';
import { Mark } from '../parts/status.js';
import { Table } from '../parts/table.js';

const NAMES = { auto: 'match system', light: 'light', dark: 'dark', en: 'English', 'zh-CN': '中文', local: 'local', UTC: 'UTC' };

function Choice({ label, of }) {
  return html`<div class="row"><span class="soft w7">${label}</span><span class="segments" role="group" aria-label=${label}>${[...of.choices].sort().map((one) => html`
    <button type="button" key=${one} aria-pressed=${of.value === one} onClick=${() => { of.value = one; }}>${t(NAMES[one])}</button>`)}</span></div>`;
}

function TokenState({ token }) {
  if (token.revoked_at) return html`<${Mark} icon="cross" tone="soft" text=${t('revoked')} />`;
  if (token.expires_at && Date.parse(token.expires_at) < Date.now()) return html`<${Mark} icon="clock" tone="soft" text=${t('expired')} />`;
  return html`<${Mark} icon="check" tone="ok" text=${t('valid')} />`;
}

function Tokens() {
  const [made, setMade] = useState(null);
  const read = useResource('/v1/tokens?limit=200');
  const columns = [
    { head: t('Name'), class: 'fill main-cell', cell: (token) => html`<b>${token.name}</b> <code class="soft">${token.prefix}…</code>` },
    { head: t('Role'), cell: (token) => html`${t(token.role)} <span class="soft">${token.business}</span>` },
    { head: t('State'), cell: (token) => html`<${TokenState} token=${token} />` },
    { head: t('Created at'), class: 'num', cell: (token) => html`<${Ago} at=${token.created_at} />` },
    { head: t('Created by'), cell: (token) => token.created_by },
    { head: t('Expires'), class: 'num', cell: (token) => (token.expires_at ? html`<${Ago} at=${token.expires_at} />` : html`<span class="soft">${t('never')}</span>`) },
    { head: t('Revoke'), bare: true, class: 'num', cell: (token) => !token.revoked_at && html`<${ActButton} class="is-small is-danger" action=${{ ...revoke(token), after: read.reload }} />` },
  ];
  const show = (token) => { setMade(token); read.reload(); };
  return html`<${Section} title=${t('Tokens')} end=${html`<${ActButton} class="is-small" action=${newToken(show)}>${t('New token')}<//>`}>
    ${made && html`<p>${t('Token of {name}, shown only once:', { name: made.name })}</p><${Command} text=${made.token} />`}
    <${Whole} of=${read}>${(page) => (page.items.length
      ? html`<${Table} columns=${columns} rows=${page.items} id=${(token) => String(token.id)} label=${t('Tokens')} />`
      : html`<p class="soft">${t('none')}</p>`)}<//><//>`;
}

function Sessions() {
  const read = useResource('/v1/sessions?limit=200');
  const own = session.value.session?.id;
  const columns = [
    { head: t('User'), class: 'fill main-cell', cell: (one) => html`<b>${one.name}</b> ${one.id === own && html`<span class="soft">${t('this browser')}</span>`}` },
    { head: t('Role'), cell: (one) => t(one.role) },
    { head: t('Address'), cell: (one) => one.address },
    { head: t('Signed in'), class: 'num', cell: (one) => html`<${Ago} at=${one.created_at} />` },
    { head: t('Expires'), class: 'num', cell: (one) => html`<${Ago} at=${one.expires_at} />` },
    { head: t('Sign out'), bare: true, class: 'num', cell: (one) => html`<${ActButton} class="is-small" action=${{ ...endSession(one), after: read.reload }} />` },
  ];
  if (read.data && !read.data.items.length) return null;
  return html`<${Section} title=${t('Active sessions')}><${Whole} of=${read}>${(page) => html`<${Table} columns=${columns} rows=${page.items} id=${(one) => String(one.id)} label=${t('Active sessions')} />`}<//><//>`;
}

/** Settings page. */
export function Settings() {
  const version = useResource('/version');
  const { name, role, business } = session.value;
  return html`<${Page} title=${t('Settings')}>
    <${Section} title=${t('This browser')} aside=${t('stored in this browser, not on the node')}><div class="stack">
      <${Choice} label=${t('Theme')} of=${theme} /><${Choice} label=${t('Language')} of=${language} /><${Choice} label=${t('Time zone')} of=${zone} /><${KeysChoice} /></div><//>
    <${Section} title=${t('Account')}><${Pairs} of=${[[t('Name'), name], [t('Role'), t(role)], business && [t('Business'), business]]} /><//>
    ${may('admin') && html`<${Tokens} /><${Sessions} />`}
    <${Section} title=${t('This node')}><${Whole} of=${version}>${(one) => html`<${Pairs} of=${[[t('Name'), one.node], [t('Version'), one.version], [t('API'), html`<a class="link" href="/docs">/docs</a>, <a class="link" href="/openapi.json">/openapi.json</a>`],
      [t('Metrics'), html`<a class="link" href="/metrics">/metrics</a>`], [t('Actors'), html`<a class="link" href="/actors">/actors</a>`], [t('Error reference'), html`<a class="link" href="/problems">/problems</a>`],
      [t('Third-party licences'), html`preact, @preact/signals (MIT), htm (Apache-2.0)`]]} />`}<//><//><//>`;
}
