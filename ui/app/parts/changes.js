/** @file Table of audit entries. */
import { html } from '../../vendor/preact-htm.js';
import { t } from '../lib/i18n.js';
import { withQuery } from '../lib/router.js';
import { Ago } from './basic.js';
import { Table } from './table.js';

const brief = (value) => (value === undefined || value === null ? '–' : typeof value === 'object' ? JSON.stringify(value) : String(value));

/** Changed members, as `rate: 100/s → 200/s`. */
export function difference({ before, after }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return names
    .filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
    .map((name) => (before && name in before ? `${name}: ${brief(before[name])} → ${brief(after?.[name])}` : `${name}: ${brief(after?.[name])}`));
}

/** Pages of objects by kind. Schedules need an id, which an entry may lack. */
const PAGES = {
  task: (name) => `/tasks/${name}/settings`,
  business: (name) => `/businesses/${encodeURIComponent(name)}`,
  dataset: (name) => `/datasets/${encodeURIComponent(name)}`,
  limit: (name) => `/limits/${encodeURIComponent(name)}`,
  node: (name) => `/nodes/${encodeURIComponent(name)}`,
};

/** Object in the format of filters: `task:t12`. */
export const objectText = (object) => (object ? `${object.kind}:${object.name}` : '');

function About({ object }) {
  if (!object) return html`<span class="soft">–</span>`;
  const page = PAGES[object.kind]?.(object.name);
  const only = { href: withQuery({ object: objectText(object), cursor: null }), title: t('Show only changes to {name}', { name: objectText(object) }) };
  return html`<a class="link" ...${page ? { href: page } : only}>${t(object.kind)} ${object.name}</a>`;
}

/** @param {{entries: any[], isGlobal?: boolean}} props */
export function Changes({ entries, isGlobal = false }) {
  const columns = [
    { head: t('Time'), class: 'nowrap', cell: (entry) => html`<${Ago} at=${entry.at} />` },
    { head: t('User'), class: 'name-cell', cell: (entry) => html`<span title=${entry.role}>${entry.actor}</span> <span class="soft">${entry.source}</span>` },
    { head: t('Action'), class: 'nowrap', cell: (entry) => html`<code>${entry.action}</code>` },
    { head: t('Object'), class: 'name-cell', hidden: !isGlobal, cell: (entry) => html`<${About} object=${entry.object} />` },
    { head: t('Change'), class: 'fill main-cell', cell: (entry) => { const text = difference(entry).join(', '); return html`<span class="cut block" title=${text}>${text}</span>`; } },
    { head: t('Reason'), class: 'main-cell', cell: (entry) => html`<span class="soft">${entry.reason}</span>` },
  ];
  return html`<${Table} columns=${columns} rows=${entries} id=${(entry) => String(entry.id)} label=${t('Changes')} isDense=${true} />`;
}
