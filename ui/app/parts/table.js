/** @file Lists. Tables are defined by columns that render the cells of a row. On narrow pages rows become blocks. */
import { html, useEffect, useRef, useState } from '../../vendor/preact-htm.js';
import { count } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { filter, go, route, withQuery } from '../lib/router.js';

/** @typedef {{head: string, cell: (row: any) => any, class?: string, hidden?: boolean, bare?: boolean}} Column */

function Head({ columns, pick }) {
  return html`<thead><tr>
    ${pick && html`<th class="pick" scope="col"><input type="checkbox" aria-label=${t('Select all')}
      checked=${pick.isAll} onChange=${pick.toggleAll} /></th>`}
    ${columns.map((column) => html`<th key=${column.head} scope="col" class=${column.class}>
      ${column.bare ? html`<span class="hidden-text">${column.head}</span>` : column.head}</th>`)}
  </tr></thead>`;
}

function Row({ row, columns, pick, id }) {
  return html`<tr>
    ${pick && html`<td class="pick"><input type="checkbox" aria-label=${t('Select {id}', { id })}
      checked=${pick.has(id)} onChange=${() => pick.toggle(id)} /></td>`}
    ${columns.map((column) => html`<td key=${column.head} class=${column.class} data-head=${column.bare ? '' : column.head}>${column.cell(row)}</td>`)}
  </tr>`;
}

/**
 * Table.
 * @param {{columns: Column[], rows: any[], id: (row: any) => string, label: string, pick?: any, isLoading?: boolean, isDense?: boolean, under?: (row: any) => any}} props
 * under: extra row below a row, across all columns
 */
export function Table({ columns, rows, id, label, pick, isLoading = false, isDense = false, under }) {
  const shown = columns.filter((column) => column && !column.hidden);
  const width = shown.length + (pick ? 1 : 0);
  return html`<table class=${`table stacks ${isLoading ? 'is-loading' : ''} ${isDense ? 'is-dense' : ''}`} aria-label=${label} aria-busy=${isLoading}>
    <${Head} columns=${shown} pick=${pick} />
    <tbody>${rows.map((row) => {
      const below = under?.(row);
      return html`<${Row} key=${id(row)} id=${id(row)} row=${row} columns=${shown} pick=${pick} />
        ${below && html`<tr key=${`${id(row)}+`} class="below"><td colspan=${width} class="fill">${below}</td></tr>`}`;
    })}</tbody>
  </table>`;
}

/** Selection of a list. */
export function usePick(ids) {
  const [picked, setPicked] = useState(() => new Set());
  const present = ids.filter((id) => picked.has(id));
  const toggle = (id) => setPicked((old) => {
    const next = new Set(old);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  return {
    ids: present,
    has: (id) => picked.has(id),
    toggle,
    isAll: ids.length > 0 && present.length === ids.length,
    toggleAll: () => setPicked(present.length === ids.length ? new Set() : new Set(ids)),
    clear: () => setPicked(new Set()),
  };
}

/**
 * Keeps the order of rows while the pointer is over them; new rows wait until requested.
 * @param {any[] | null} rows
 * @param {(row: any) => string} id
 */
export function useCalm(rows, id) {
  const [isOver, setOver] = useState(false);
  const order = useRef(/** @type {string[] | null} */ (null));
  const byId = new Map((rows ?? []).map((row) => [id(row), row]));
  if (!isOver || !order.current) order.current = rows ? [...byId.keys()] : null;
  const kept = (order.current ?? []).filter((one) => byId.has(one));
  return {
    rows: kept.map((one) => byId.get(one)),
    fresh: byId.size - kept.length,
    show: () => {
      order.current = [...byId.keys()];
      setOver(false);
    },
    over: { onMouseEnter: () => setOver(true), onMouseLeave: () => setOver(false) },
  };
}

/** Button that shows new rows. */
export function Fresh({ calm }) {
  return calm.fresh > 0 && html`<button type="button" class="button is-small fresh-pill" onClick=${calm.show}>${t('{n} new', { n: count(calm.fresh) })} ▲</button>`;
}

/** Pagination of a list; the address has the current page. */
export function Pager({ next, shown }) {
  const cursor = route.value.query.get('cursor');
  if (!next && !cursor) return shown == null ? null : html`<div class="pager">${shown}</div>`;
  return html`<nav class="pager" aria-label=${t('Pages')}>
    ${shown}
    <button type="button" class="button is-small" disabled=${!cursor} onClick=${() => filter({})}>${t('« first')}</button>
    <button type="button" class="button is-small" disabled=${!cursor} onClick=${() => history.back()}>${t('‹ previous')}</button>
    <button type="button" class="button is-small" disabled=${!next} onClick=${() => go(withQuery({ cursor: next }))}>${t('next ›')}</button>
  </nav>`;
}

/** Search or choice stored in the address. */
export function Filter({ name, label, options, type = 'search', width }) {
  const value = route.value.query.get(name) ?? '';
  const timer = useRef(0);
  const [typed, setTyped] = useState(null);
  useEffect(() => setTyped((old) => (old?.trim() === value ? old : null)), [value]);
  const later = (event) => {
    const { value: text } = event.target;
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => filter({ [name]: text.trim() }), 250);
  };
  if (options) {
    return html`<select aria-label=${label} value=${value} onChange=${(event) => filter({ [name]: event.target.value })}>
      <option value="">${label}</option>
      ${options.map(([word, text]) => html`<option key=${word} value=${word} selected=${word === value}>${text}</option>`)}
    </select>`;
  }
  return html`<input type=${type} aria-label=${label} placeholder=${label} value=${typed ?? value} onInput=${later}
    style=${width ? { width } : undefined} data-search=${name === 'q' ? '' : undefined} />`;
}
