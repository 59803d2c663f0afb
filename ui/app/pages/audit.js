/** @file Audit log: all changes, with user, time, source and reason. */
import { html, useState } from '../../vendor/preact-htm.js';
import { get, path } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { Empty, Whole } from '../parts/basic.js';
import { Changes, objectText } from '../parts/changes.js';
import { Icon } from '../parts/icon.js';
import { Page } from '../parts/shell.js';
import { Filter, Pager } from '../parts/table.js';
import { toast } from '../parts/toast.js';

const FILTERS = ['object', 'task', 'business', 'actor', 'action', 'cursor'];

/** Maximum number of exported entries. */
const ROWS_MAX = 20_000;
const NAMES = ['id', 'at', 'actor', 'role', 'source', 'action', 'object', 'task', 'business', 'before', 'after', 'reason', 'request_id'];

/** Text that a spreadsheet treats as a formula, after the blanks that it drops; numbers are none. Same as in `core/text/csv.rs`. */
const FORMULA = /^([\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠−﹢﹣﹦﹫])/u;
const NUMBER = /^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$/;

/** CSV cell; formulas are escaped as text. */
function cell(value) {
  const text = value == null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  return `"${(FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** Exports all matching entries as CSV. */
export async function csvOf(query, read = get) {
  const lines = [NAMES.join()];
  for (let cursor = null; lines.length <= ROWS_MAX;) {
    const page = await read(path('/v1/audit', { ...query, cursor, limit: 500 }));
    lines.push(...page.items.map((entry) => NAMES.map((name) => cell(name === 'object' ? objectText(entry.object) : entry[name])).join()));
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  return `${lines.join('\r\n')}\r\n`;
}

function Export({ query }) {
  const [isPending, setPending] = useState(false);
  const load = async () => {
    setPending(true);
    try {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([await csvOf(query)], { type: 'text/csv' }));
      link.download = 'audit.csv';
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (error) {
      toast(error.message);
    }
    setPending(false);
  };
  return html`<button type="button" class="button" disabled=${isPending} onClick=${load}><${Icon} name="down" />CSV</button>`;
}

/** Time filter from the address in the API's format; null while it is incomplete. */
function instant(name) {
  const at = new Date(route.value.query.get(name) ?? '');
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

/** Audit page. */
export function Audit() {
  const query = { ...Object.fromEntries(FILTERS.map((name) => [name, route.value.query.get(name)])), since: instant('since'), until: instant('until') };
  const read = useResource(path('/v1/audit', { ...query, limit: 100 }), { every: 5000, keep: true });
  return html`<${Page} title=${t('Audit')} acts=${html`<${Export} query=${{ ...query, cursor: null }} />`}>
    <div class="filters"><${Filter} name="actor" label=${t('user')} width="9rem" /><${Filter} name="action" label=${t('action, e.g. task.start')} width="13rem" />
      <${Filter} name="object" label=${t('object, e.g. task:t12')} width="13rem" /><${Filter} name="business" label=${t('business')} width="9rem" />
      <label>${t('since')} <${Filter} name="since" label=${t('since')} type="datetime-local" /></label><label>${t('until')} <${Filter} name="until" label=${t('until')} type="datetime-local" /></label></div>
    <${Whole} of=${read}>${(page) => (page.items.length ? html`<${Changes} entries=${page.items} isGlobal=${true} /><${Pager} next=${page.next_cursor} />` : html`<${Empty} say=${t('No matching changes.')} />`)}<//><//>`;
}
