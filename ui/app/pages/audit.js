/** @file Who changed what, when, from where and why: all of it. */
import { html } from '../../vendor/preact-htm.js';
import { path } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { Empty, Whole } from '../parts/basic.js';
import { Changes } from '../parts/changes.js';
import { Page } from '../parts/shell.js';
import { Filter, Pager } from '../parts/table.js';

const FILTERS = ['task', 'business', 'actor', 'action', 'cursor'];

/** The page. */
export function Audit() {
  const query = Object.fromEntries(FILTERS.map((name) => [name, route.value.query.get(name)]));
  const read = useResource(path('/v1/audit', { ...query, limit: 100 }), { every: 5000, keep: true });
  return html`<${Page} title=${t('Audit')}>
    <div class="filters"><${Filter} name="actor" label=${t('who')} width="9rem" /><${Filter} name="action" label=${t('what, such as task.start')} width="13rem" />
      <${Filter} name="task" label=${t('task')} width="7rem" /><${Filter} name="business" label=${t('business')} width="9rem" /></div>
    <${Whole} of=${read}>${(page) => (page.items.length ? html`<${Changes} entries=${page.items} isGlobal=${true} /><${Pager} next=${page.next_cursor} />` : html`<${Empty} say=${t('Nobody changed anything like this.')} />`)}<//><//>`;
}
