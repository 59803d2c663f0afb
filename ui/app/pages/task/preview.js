/** @file Preview of a task: calls the handler with a few of its items and records nothing. */
import { html, useState } from '../../../vendor/preact-htm.js';
import { call, part } from '../../lib/api.js';
import { count, span } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { may } from '../../lib/session.js';
import { sh } from '../../lib/command.js';
import { Copy, Problem, Section } from '../../parts/basic.js';
import { ItemStatus } from '../../parts/status.js';
import { Table } from '../../parts/table.js';

/** Columns of previewed items. */
export function columns() {
  return [
    { head: t('Item'), class: 'num', cell: (one) => `#${count(one.index)}` },
    { head: t('Result'), cell: (one) => html`<${ItemStatus} state=${one.result} />` },
    { head: t('Duration'), class: 'num', cell: (one) => span(one.latency_seconds) },
    { head: t('Code'), cell: (one) => one.code && html`<code>${one.code}</code>` },
    { head: t('Response'), class: 'fill main-cell', cell: (one) => one.message ?? (one.output != null && html`<code class="cut block">${JSON.stringify(one.output)}</code>`) },
  ];
}

/** Preview section. */
export function Preview({ task }) {
  const [indexes, setIndexes] = useState('0-2');
  const [state, setState] = useState({ isPending: false, reply: null, error: null });
  const isAllowed = may('operator');
  const submit = async (event) => {
    event.preventDefault();
    if (!isAllowed) return;
    setState({ isPending: true, reply: null, error: null });
    try {
      setState({ isPending: false, error: null, reply: await call('POST', `/v1/tasks/${part(task.id)}/preview`, { indexes: indexes.trim() }) });
    } catch (error) {
      setState({ isPending: false, error, reply: null });
    }
  };
  return html`<${Section} title=${t('Preview')} aside=${t('Calls the handler with a few items in preview mode; nothing is recorded.')}>
    <form class="filters" onSubmit=${submit}><label class="row"><span class="soft">${t('Indexes')}</span><input type="text" value=${indexes} required onInput=${(event) => setIndexes(event.target.value)} /></label>
      <button type="submit" class="button" disabled=${state.isPending} aria-disabled=${!isAllowed} title=${isAllowed ? undefined : t('requires the {role} role', { role: t('operator') })}>${state.isPending ? t('Calling the handler…') : t('Run preview')}</button>
      <${Copy} text=${String(sh`windrow task preview ${task.id} --items ${indexes}`)}>${t('Copy as command')}<//></form>
    ${state.error && html`<${Problem} error=${state.error} />`}
    ${state.reply && html`<${Table} columns=${columns()} rows=${state.reply.items} id=${(one) => String(one.index)} label=${t('Preview')} />`}<//>`;
}
