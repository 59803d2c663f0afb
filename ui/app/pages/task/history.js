/** @file Settings of a task, editable where possible, and its history. */
import { html, useEffect, useState } from '../../../vendor/preact-htm.js';
import { change } from '../../lib/actions.js';
import { part, path } from '../../lib/api.js';
import { t } from '../../lib/i18n.js';
import { useResource } from '../../lib/resource.js';
import { route } from '../../lib/router.js';
import { may } from '../../lib/session.js';
import { hasEnded } from '../../lib/task.js';
import { ask } from '../../parts/ask.js';
import { Json, Pairs, Section, Stamp, Whole } from '../../parts/basic.js';
import { Changes } from '../../parts/changes.js';
import { Pager } from '../../parts/table.js';

const SETTINGS = [
  ['Pace', ['rate', 'burst', 'concurrency', 'max_concurrency', 'window', 'batch', 'batch_linger', 'timeout', 'ordered']],
  ['Failures', ['max_attempts', 'backoff', 'on_exhausted', 'error_budget', 'error_window', 'park_after', 'parked_max', 'straggler_after', 'outage_patience', 'judge_after']],
  ['Results and checkpoints', ['results', 'checkpoint_interval', 'unsaved_max', 'reduce_timeout']],
];

/** Converts typed text to the API's type. */
function typedAs(before, text) {
  if (typeof before === 'boolean') return text === 'true';
  return /^\d+$/.test(text) ? Number(text) : text;
}

function Setting({ task, name }) {
  const [typed, setTyped] = useState(null);
  const written = String(task[name] ?? '');
  if (typed == null) {
    const isFixed = hasEnded(task) || !may('operator');
    return html`<span class="editable"><span class="mono">${written || '–'}</span>
      ${!isFixed && html`<button type="button" class="tool" onClick=${() => setTyped(written)} aria-label=${t('Change {name}', { name })}>${t('change')}</button>`}</span>`;
  }
  const submit = (event) => {
    event.preventDefault();
    if (typed.trim() !== written) ask({ ...change(task, { [name]: typedAs(task[name], typed.trim()) }), after: () => setTyped(null) });
    else setTyped(null);
  };
  return html`<form class="editable" onSubmit=${submit}><input type="text" value=${typed} autofocus aria-label=${name} onInput=${(event) => setTyped(event.target.value)}
    onKeyDown=${(event) => event.key === 'Escape' && setTyped(null)} /><button class="button is-small is-main" type="submit">${t('Apply')}</button></form>`;
}

function Facts({ task }) {
  return html`<${Section} title=${t('Details')}><${Pairs} of=${[
    [t('Created at'), html`<${Stamp} at=${task.created_at} />`],
    [t('Source'), `${task.source.type}${task.source.upload ? ` ${task.source.upload}` : ''}${task.source.url ? ` ${task.source.url}` : ''}`],
    [t('Pool'), task.pool],
    [t('Priority'), task.priority],
    [t('Shards'), String(task.shards)],
    [t('Limits'), task.limits.join(', ') || null],
    [t('Items skipped at the start'), task.skip_first],
    [t('Starts'), task.start],
    [t('Version'), task.version],
  ]} />
  ${task.params != null && html`<h3>${t('Parameters')}</h3><${Json} value=${task.params} label=${t('Parameters')} />`}<//>`;
}

/** Settings and history tab. */
export function History({ task, watched }) {
  const read = useResource(path(`/v1/tasks/${part(task.id)}/revisions`, { limit: 50, cursor: route.value.query.get('cursor') }), { every: 15_000, keep: true });
  useEffect(() => {
    if (watched.changed) read.reload();
  }, [watched.changed]);
  return html`<div class="columns">
    ${SETTINGS.map(([title, names]) => html`<${Section} key=${title} title=${t(title)}><${Pairs} isTight=${true} of=${names.map((name) => [html`<code>${name}</code>`, html`<${Setting} task=${task} name=${name} />`])} /><//>`)}
    <${Facts} task=${task} /></div>
    <${Section} title=${t('History')}><${Whole} of=${read}>${(page) => html`<${Changes} entries=${page.items} /><${Pager} next=${page.next_cursor} />`}<//><//>`;
}
