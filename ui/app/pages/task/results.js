/** @file Results of a task in index order: page by page, or all as a file. */
import { html, useEffect, useState } from '../../../vendor/preact-htm.js';
import { ApiError, part, path } from '../../lib/api.js';
import { count } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { filter, route } from '../../lib/router.js';
import { sh } from '../../lib/command.js';
import { Empty, Loading, Problem, Section } from '../../parts/basic.js';
import { Icon } from '../../parts/icon.js';
import { Table } from '../../parts/table.js';

const ROWS = 50;

/** Reads the rows of a page, plus one that shows if there is a next page. */
async function firstRows(url, signal) {
  const reply = await fetch(url, { signal, headers: { accept: 'application/x-ndjson', 'windrow-client': 'ui' } });
  if (!reply.ok) throw new ApiError(await reply.json().catch(() => ({ title: `${reply.status}`, status: reply.status })));
  return (await reply.text()).split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

function useRows(url) {
  const [state, setState] = useState({ rows: null, error: null });
  useEffect(() => {
    const abort = new AbortController();
    setState((old) => ({ ...old, error: null }));
    firstRows(url, abort.signal).then(
      (rows) => abort.signal.aborted || setState({ rows, error: null }),
      (error) => abort.signal.aborted || setState({ rows: null, error }),
    );
    return () => abort.abort();
  }, [url]);
  return state;
}

function Rows({ task, rows }) {
  const shown = rows.slice(0, ROWS);
  const columns = [
    { head: t('Item'), class: 'num', cell: (row) => html`<a class="link" data-row href=${`/tasks/${task.id}/items/${row.index}?from=results`}>#${count(row.index)}</a>` },
    { head: t('Output'), class: 'fill main-cell', cell: (row) => html`<code class="cut block" title=${JSON.stringify(row.output)}>${JSON.stringify(row.output)}</code>` },
  ];
  return html`<${Table} columns=${columns} rows=${shown} id=${(row) => String(row.index)} label=${t('Results')} />
    ${rows.length > ROWS && html`<div class="pager"><button type="button" class="button is-small" onClick=${() => filter({ after: shown.at(-1).index })}>${t('next ›')}</button></div>`}`;
}

function Shown({ task, after }) {
  const { rows, error } = useRows(path(`/v1/tasks/${part(task.id)}/results`, { after, limit: ROWS + 1 }));
  if (error) return html`<${Problem} error=${error} />`;
  if (!rows) return html`<${Loading} />`;
  if (!rows.length) return html`<${Empty} say=${t('No results from this item on.')} />`;
  return html`<${Rows} task=${task} rows=${rows} />`;
}

/** Results tab. */
export function Results({ task }) {
  if (task.results === 'off') {
    return html`<${Empty} say=${t('This task keeps no results.')} commands=${[sh`windrow task set ${task.id} --results keep`]}>
      <p>${t('With results: keep, a task stores the "output" of each response.')}</p><//>`;
  }
  const after = route.value.query.get('after');
  const go = (event) => {
    const at = Number(event.target.value);
    filter({ after: at > 0 ? at - 1 : null });
  };
  return html`<${Section} title=${t('Results')} aside=${t('in index order')} end=${html`
      <label class="row"><span class="soft">${t('from item')}</span><input type="number" min="0" key=${after} defaultValue=${after ? Number(after) + 1 : 0} onChange=${go} /></label>
      <a class="button" download href=${`/v1/tasks/${task.id}/results?format=csv`}><${Icon} name="down" />CSV</a>
      <a class="button" download href=${`/v1/tasks/${task.id}/results?format=ndjson`}><${Icon} name="down" />NDJSON</a>`}>
    <${Shown} task=${task} after=${after} /><//>`;
}
