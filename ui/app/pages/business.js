/** @file One business: call settings, contract check, tasks and history. */
import { html, useState } from '../../vendor/preact-htm.js';
import { archive, editBusiness, rotate } from '../lib/actions_more.js';
import { call, part } from '../lib/api.js';
import { count } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { may } from '../lib/session.js';
import { sh } from '../lib/command.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Command, Copy, Empty, Pairs, Problem, Section, Stamp, Whole } from '../parts/basic.js';
import { Icon } from '../parts/icon.js';
import { Page } from '../parts/shell.js';
import { Progress, TaskStatus } from '../parts/status.js';
import { Table } from '../parts/table.js';
import { Trial } from '../parts/trial.js';
import { handler, limits } from './businesses.js';

const RESULTS = { ok: ['check', 'ok'], warn: ['warn', 'warn'], fail: ['cross', 'bad'] };

/** Results of a contract check. */
export function Checks({ reply }) {
  return html`<ul class="checks">${reply.checks.map((one) => html`<li key=${one.check}><${Icon} name=${RESULTS[one.result][0]} class=${RESULTS[one.result][1]} />
    <span class="strong nowrap">${one.check}</span><span class="grow">${one.detail}${one.try && html`<span class="soft block">→ ${one.try}</span>`}</span></li>`)}</ul>`;
}

function Check({ name }) {
  const [state, setState] = useState({ isPending: false, reply: null, error: null });
  const isAllowed = may('operator');
  const check = async () => {
    setState({ isPending: true, reply: null, error: null });
    try {
      setState({ isPending: false, reply: await call('POST', `/v1/businesses/${part(name)}/check`, {}), error: null });
    } catch (error) {
      setState({ isPending: false, reply: null, error });
    }
  };
  return html`<${Section} title=${t('Contract')} aside=${t('the protocol between windrow and the handler')} end=${html`
      <button type="button" class="button" onClick=${check} disabled=${state.isPending} aria-disabled=${!isAllowed} title=${isAllowed ? undefined : t('requires the {role} role', { role: t('operator') })}>${state.isPending ? t('Checking…') : t('Check now')}</button>`}>
    ${state.error && html`<${Problem} error=${state.error} />`}
    ${state.reply && html`<p class="row"><${Icon} name=${state.reply.passed ? 'check' : 'cross'} class=${state.reply.passed ? 'ok' : 'bad'} />${state.reply.passed ? t('The handler meets the contract.') : t('The handler violates the contract.')}</p><${Checks} reply=${state.reply} />`}
    ${!state.reply && !state.error && html`<p class="soft">${t('A check calls the handler in preview mode; nothing is recorded.')}</p>`}<//>`;
}

const masked = (headers) => Object.entries(headers).map(([name, value]) => html`<span key=${name} class="block mono">${name}: ${value}</span>`);

function Facts({ one }) {
  return html`<${Section} title=${t('Call settings')}><${Pairs} of=${[
    [t('Handler'), html`<code>${handler(one)}</code> ${one.url && html`<${Copy} text=${one.url} />`}`],
    one.workers && [t('Workers'), t('{idle} of {all} idle', { idle: count(one.workers.idle), all: count(one.workers.idle + one.workers.busy) })],
    one.request?.json && [t('Body'), html`<code>${one.request.json}</code>`],
    Object.keys(one.headers).length > 0 && [t('Headers'), masked(one.headers)],
    Object.keys(one.secret_headers).length > 0 && [t('Secret headers'), masked(one.secret_headers)],
    one.proxy && [t('Proxy'), one.proxy],
    [t('Pool'), one.pool],
    [t('TLS'), one.insecure_skip_verify ? html`<span class="warn">${t('not verified')}</span>` : t('verified')],
    [t('Signature'), one.require_signature ? t('required') : t('not required')],
    [t('Hooks'), Object.keys(one.hooks).join(', ') || t('none')],
    [t('Limits'), limits(one)],
    [t('Revision'), one.revision],
    one.archived_at && [t('Archived'), html`<${Stamp} at=${one.archived_at} />`],
  ]} />
  ${Object.keys(one.defaults).length > 0 && html`<h3>${t('Task defaults')}</h3><${Pairs} of=${Object.entries(one.defaults).map(([name, value]) => [html`<code>${name}</code>`, html`<code>${String(value)}</code>`])} />`}<//>`;
}

function Tasks({ name }) {
  const read = useResource(`/v1/tasks?business=${part(name)}&limit=20`, { every: 5000 });
  const columns = [
    { head: t('Task'), class: 'fill main-cell', cell: (task) => html`<a class="cut" data-row href=${`/tasks/${task.id}`}><span class="soft">${task.id}</span> ${task.name}</a>` },
    { head: t('Status'), cell: (task) => html`<${TaskStatus} task=${task} />` },
    { head: t('Progress'), class: 'progress-cell', cell: (task) => html`<${Progress} task=${task} />` },
    { head: t('Items'), class: 'num', cell: (task) => count(task.total) },
    { head: t('Failed'), class: 'num', cell: (task) => count(task.counts.failed) },
    { head: t('Created at'), class: 'num', cell: (task) => html`<${Ago} at=${task.created_at} />` },
  ];
  return html`<${Section} title=${t('Tasks')} end=${html`<a class="link" href=${`/tasks?business=${part(name)}`}>${t('all')}</a>`}><${Whole} of=${read}>${(page) => (page.items.length
    ? html`<${Table} columns=${columns} rows=${page.items} id=${(task) => task.id} label=${t('Tasks')} />`
    : html`<${Empty} say=${t('No tasks.')} commands=${[sh`windrow task create ${name} --total 1000 --rate 50/s --start`]} />`)}<//><//>`;
}

function Revisions({ name }) {
  const read = useResource(`/v1/businesses/${part(name)}/revisions?limit=20`);
  const columns = [
    { head: t('Time'), class: 'nowrap', cell: (one) => html`<${Ago} at=${one.at} />` },
    { head: t('User'), class: 'nowrap', cell: (one) => html`${one.actor} <span class="soft">${one.source}</span>` },
    { head: t('Action'), class: 'nowrap', cell: (one) => html`<code>${one.action}</code>` },
    { head: t('Change'), class: 'fill main-cell', cell: (one) => { const text = one.diff.map(({ pointer, from, to }) => `${pointer}: ${JSON.stringify(from ?? null)} → ${JSON.stringify(to ?? null)}`).join(', '); return html`<span class="cut block" title=${text}>${text}${one.secrets_changed ? ` ${t('a secret changed')}` : ''}</span>`; } },
    { head: t('Reason'), cell: (one) => html`<span class="soft">${one.reason}</span>` },
  ];
  return html`<${Section} title=${t('History')}><${Whole} of=${read}>${(page) => html`<${Table} columns=${columns} rows=${page.items} id=${(one) => one.at + one.action} label=${t('History')} />`}<//><//>`;
}

/** Page of a business. */
export function Business({ business: name }) {
  const [secret, setSecret] = useState(null);
  const read = useResource(`/v1/businesses/${part(name)}`, { every: 15_000 });
  const after = (action) => ({ ...action, after: (answer) => { action.after?.(answer); read.reload(); } });
  const acts = read.data && html`<a class="button is-main" href=${`/tasks/new?business=${part(name)}`} data-key="c">${t('New task')}</a>
    <${ActButton} action=${after(editBusiness(read.data))}>${t('Change')}<//>${read.data.url && html`<${ActButton} action=${rotate(read.data, (answer) => setSecret(answer.secret))}>${t('Rotate secret')}<//>`}<${ActButton} action=${after(archive(read.data))} />`;
  return html`<${Page} title=${name} up=${[['/businesses', t('Businesses')]]} acts=${acts}>
    ${secret && html`<div class="stack"><p class="strong">${t('New secret, shown only once:')}</p><${Command} text=${secret} /></div>`}
    <${Whole} of=${read}>${(one) => html`<${Check} name=${name} /><${Trial} name=${name} called=${handler(one)} /><${Facts} one=${one} /><${Tasks} name=${name} /><${Revisions} name=${name} />`}<//><//>`;
}
