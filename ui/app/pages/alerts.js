/** @file Alerts, and the notices that each has sent. */
import { html, useState } from '../../vendor/preact-htm.js';
import { part } from '../lib/api.js';
import { sh } from '../lib/command.js';
import { count } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { may } from '../lib/session.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Command, Empty, Pairs, Section, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { Mark } from '../parts/status.js';
import { Table } from '../parts/table.js';

const KINDS = 'stopped, failed, finished, handler_down, withheld, schedule_missed, limit_80';
const FORMS = [['json', 'JSON'], ['slack', 'Slack'], ['text', 'text']];
const kindsOf = (text) => text.split(/[\s,]+/).filter(Boolean);

const newAlert = (show) => ({
  method: 'POST', path: '/v1/alerts', cli: sh`windrow alert create`, role: 'admin', title: t('New alert'), verb: t('Create'),
  fields: [
    { name: 'name', label: t('Name'), required: true, value: 'ops' }, { name: 'on', label: t('Events'), required: true, value: 'stopped, failed, handler_down', hint: KINDS },
    { name: 'url', label: t('URL (stored sealed)') }, { name: 'command', label: t('Command of the configuration, instead of a URL') },
    { name: 'form', label: t('Form'), value: 'json', options: FORMS }, { name: 'business', label: t('Business (optional)') },
  ],
  body: ({ on, ...rest }) => ({ on: kindsOf(on), ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value)) }),
  flags: (values) => [values.name, sh`--on ${kindsOf(values.on).join(',')}`, values.url && sh`--url @FILE`, values.command && sh`--command ${values.command}`, sh`--form ${values.form}`, values.business && sh`--business ${values.business}`],
  done: (now) => t('{name} created', { name: now.name }), after: show,
});

const testAlert = (alert) => ({
  method: 'POST', path: `/v1/alerts/${part(alert.name)}/test`, cli: sh`windrow alert test ${alert.name}`, role: 'admin', title: t('Send a test notice to {name}?', { name: alert.name }), verb: t('Send test'), noReason: true,
  done: () => t('test sent; its delivery is listed below'),
});

const removeAlert = (alert) => ({
  method: 'DELETE', path: `/v1/alerts/${part(alert.name)}`, cli: sh`windrow alert delete ${alert.name}`, role: 'admin', title: t('Delete {name}?', { name: alert.name }),
  text: t('Undelivered notices are dropped.'), verb: t('Delete'), isDanger: true, done: () => t('{id} deleted', { id: alert.name }), next: () => '/alerts',
});

const target = (alert) => alert.url ?? t('command {name}', { name: alert.command });

/** All alerts. */
export function Alerts() {
  const [made, setMade] = useState(null);
  const read = useResource('/v1/alerts?limit=200', { every: 10_000 });
  const columns = [
    { head: t('Alert'), class: 'main-cell', cell: (one) => html`<a data-row class="strong" href=${`/alerts/${one.name}`}>${one.name}</a>` },
    { head: t('Events'), class: 'fill', cell: (one) => one.on.join(', ') },
    { head: t('Target'), class: 'hide-s', cell: (one) => html`<span class="cut">${target(one)}</span>` },
    { head: t('Business'), class: 'hide-s', cell: (one) => one.business ?? html`<span class="soft">${t('all')}</span>` },
  ];
  const show = (alert) => { setMade(alert); read.reload(); };
  const acts = may('admin') && html`<${ActButton} isMain=${true} action=${newAlert(show)}>${t('New alert')}<//>`;
  return html`<${Page} title=${t('Alerts')} acts=${acts}>
    ${made?.secret && html`<p>${t('Signing secret of {name}, shown only once:', { name: made.name })}</p><${Command} text=${made.secret} />`}
    <${Whole} of=${read}>${(page) => (page.items.length
      ? html`<${Table} columns=${columns} rows=${page.items} id=${(one) => one.name} label=${t('Alerts')} />`
      : html`<${Empty} say=${t('No alerts yet. An alert tells people of events, by a URL or a command.')} commands=${['windrow alert create ops --on stopped,failed,handler_down --form slack --url @slack.url']} />`)}<//><//>`;
}

const STATES = { pending: ['clock', 'run', 'pending'], delivered: ['check', 'ok', 'delivered'], failed: ['cross', 'bad', 'failed'] };

function Deliveries({ name }) {
  const read = useResource(`/v1/alerts/${part(name)}/deliveries?limit=50`, { every: 2000 });
  const columns = [
    { head: t('At'), class: 'num', cell: (one) => html`<${Ago} at=${one.at} />` },
    { head: t('State'), cell: (one) => { const [icon, tone, text] = STATES[one.state]; return html`<${Mark} icon=${icon} tone=${tone} text=${t(text)} />`; } },
    { head: t('Notice'), class: 'fill main-cell', cell: (one) => html`<div><a class="link" href=${one.notice.path}>${one.notice.title}</a></div><div class="soft">${one.error ?? one.notice.text}</div>` },
    { head: t('Attempts'), class: 'num hide-s', cell: (one) => count(one.attempts) },
  ];
  return html`<${Whole} of=${read}>${(page) => (page.items.length
    ? html`<${Table} columns=${columns} rows=${page.items} id=${(one) => String(one.id)} label=${t('Notices')} />`
    : html`<p class="soft">${t('none')}</p>`)}<//>`;
}

/** Page of an alert. */
export function Alert({ alert: name }) {
  const read = useResource(`/v1/alerts/${part(name)}`, { every: 10_000 });
  const acts = read.data && may('admin') && html`<${ActButton} action=${testAlert(read.data)} /><${ActButton} class="is-danger" action=${removeAlert(read.data)} />`;
  return html`<${Page} title=${name} up=${[['/alerts', t('Alerts')]]} acts=${acts}><${Whole} of=${read}>${(alert) => html`
    <${Pairs} of=${[[t('Events'), alert.on.join(', ')], [t('Target'), target(alert)], [t('Business'), alert.business], [t('Form'), alert.template ?? alert.form]]} />
    <${Section} title=${t('Notices')} aside=${t('delivered ones of the last day, failed ones of 30 days')}><${Deliveries} name=${name} /><//>`}<//><//>`;
}
