/** @file List of businesses and their handlers. */
import { html, useEffect } from '../../vendor/preact-htm.js';
import { path } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route, withQuery } from '../lib/router.js';
import { statusText } from '../lib/say.js';
import { may } from '../lib/session.js';
import { keepTasks, tasks } from '../lib/tasks.js';
import { Ago, Empty, Segments, Whole } from '../parts/basic.js';
import { Icon } from '../parts/icon.js';
import { Page } from '../parts/shell.js';
import { Mark } from '../parts/status.js';
import { Pager, Table } from '../parts/table.js';

/** Short description of a business's handler. */
export const handler = (one) => one.url ?? (one.command && t('command {name}', { name: one.command })) ?? one.request?.call ?? '–';

/** Limits shared by all its tasks. */
export const limits = (one) => [one.limits.rate, one.limits.concurrency && `${one.limits.concurrency}×`, ...(one.limits.named ?? [])].filter(Boolean).join(', ') || null;

/** Health of the handler, derived from running tasks. */
function Health({ name }) {
  const running = [...(tasks.value?.values() ?? [])].filter((task) => task.business === name && task.status === 'running');
  if (!running.length) return html`<span class="soft">${t('idle')}</span>`;
  const down = running.find((task) => task.handler_down);
  return down ? html`<a href=${`/tasks/${down.id}`} title=${statusText(down)}><${Mark} icon="warn" tone="bad" text=${t('handler down')} /></a>` : html`<${Mark} icon="check" tone="ok" text=${t('responding')} />`;
}

function columns() {
  return [
    { head: t('Business'), class: 'name-cell', cell: (one) => html`<a class="strong" data-row href=${`/businesses/${one.name}`}>${one.name}</a> ${one.display_name && html`<span class="soft">${one.display_name}</span>`}` },
    { head: t('Handler'), class: 'fill main-cell', cell: (one) => html`<code class="cut block" title=${handler(one)}>${handler(one)}</code>` },
    { head: t('Health'), class: 'nowrap', cell: (one) => html`<${Health} name=${one.name} />` },
    { head: t('TLS'), cell: (one) => one.insecure_skip_verify && html`<span class="warn">${t('not verified')}</span>` },
    { head: t('Pool'), cell: (one) => one.pool },
    { head: t('Limits'), class: 'name-cell', cell: (one) => limits(one) ?? html`<span class="soft">–</span>` },
    { head: t('Revision'), class: 'num', cell: (one) => one.revision },
    { head: t('Updated'), class: 'num', cell: (one) => html`<${Ago} at=${one.updated_at} />` },
  ];
}

/** All businesses. */
export function Businesses() {
  const { query } = route.value;
  useEffect(keepTasks, []);
  const archived = query.get('archived');
  const read = useResource(path('/v1/businesses', { archived, limit: 100, cursor: query.get('cursor') }), { every: 10_000, keep: true });
  const acts = html`<a class="button is-main" href="/businesses/new" aria-disabled=${!may('admin')} data-key="c"><${Icon} name="plus" />${t('Register')}</a>`;
  return html`<${Page} title=${t('Businesses')} acts=${acts}>
    <div class="filters"><${Segments} label=${t('Filter')} items=${[
      { href: withQuery({ archived: null, cursor: null }), isCurrent: !archived, text: t('active') },
      { href: withQuery({ archived: 'true', cursor: null }), isCurrent: archived === 'true', text: t('archived') },
    ]} /></div>
    <${Whole} of=${read}>${(page) => (page.items.length
      ? html`<${Table} columns=${columns()} rows=${page.items} id=${(one) => one.name} label=${t('Businesses')} /><${Pager} next=${page.next_cursor} />`
      : html`<${Empty} say=${archived ? t('No archived businesses.') : t('No businesses yet. A business handles items, at an HTTP address or with a command.')}
          commands=${archived ? [] : ['windrow init python', 'windrow biz register hello --url http://127.0.0.1:9000']} />`)}<//><//>`;
}
