/** @file List of datasets with their current generation. */
import { html } from '../../vendor/preact-htm.js';
import { path } from '../lib/api.js';
import { count } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { Ago, Empty, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { Pager, Table } from '../parts/table.js';

function columns() {
  return [
    { head: t('Dataset'), class: 'fill main-cell', cell: (one) => html`<a data-row class="strong" href=${`/datasets/${one.name}`}>${one.name}</a>` },
    { head: t('Business'), class: 'name-cell', cell: (one) => html`<a class="soft" href=${`/businesses/${one.business}`}>${one.business}</a>` },
    { head: t('Current generation'), class: 'num', cell: (one) => (one.generation == null ? html`<span class="soft">${t('none yet')}</span>` : count(one.generation)) },
    { head: t('Latest generation'), class: 'num', cell: (one) => html`<span class=${one.generation != null && one.highest > one.generation ? 'warn' : ''}>${count(one.highest)}</span>` },
    { head: t('Generations kept'), class: 'num', cell: (one) => count(one.keep) },
    { head: t('Publications'), class: 'num', cell: (one) => count(one.publication) },
    { head: t('Published'), class: 'num', cell: (one) => html`<${Ago} at=${one.published_at} />` },
  ];
}

/** All datasets. */
export function Datasets() {
  const read = useResource(path('/v1/datasets', { limit: 100, cursor: route.value.query.get('cursor') }), { every: 5000, keep: true });
  return html`<${Page} title=${t('Datasets')}><${Whole} of=${read}>${(page) => (page.items.length
    ? html`<${Table} columns=${columns()} rows=${page.items} id=${(one) => one.name} label=${t('Datasets')} /><${Pager} next=${page.next_cursor} />`
    : html`<${Empty} say=${t('No datasets yet. A task can publish its results as a generation of a dataset, which readers see at once.')}
        commands=${['windrow task create hello --total 1000 --results keep --publish board --start']} />`)}<//><//>`;
}
