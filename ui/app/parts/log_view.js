/** @file Data log with search and follow, for one task or all. */
import { html, useState } from '../../vendor/preact-htm.js';
import { path } from '../lib/api.js';
import { clock, count, stamp } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { Empty, Section, Whole } from './basic.js';
import { Icon } from './icon.js';
import { Filter, Pager, Table } from './table.js';

const FILTERS = ['level', 'index', 'q', 'origin', 'code', 'cursor'];
const LEVELS = ['debug', 'info', 'warn', 'error'];

function Message({ line }) {
  const [isOpen, setOpen] = useState(false);
  const more = line.extra ?? line.data;
  return html`<div>${line.message}${more != null && html` <button type="button" class="tool" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}><code>{…}</code></button>
    ${isOpen && html`<pre class="json">${JSON.stringify(more, null, 2)}</pre>`}`}</div>`;
}

function columns(isGlobal) {
  return [
    { head: t('Time'), class: 'nowrap', cell: (line) => html`<time datetime=${line.at} title=${stamp(line.at)} class="soft mono">${clock(line.at)}.${line.at.slice(20, 23)}</time>` },
    { head: t('Level'), cell: (line) => html`<span class=${`level-${line.level}`}>${line.level}</span>` },
    { head: t('Task'), hidden: !isGlobal, cell: (line) => html`<a class="link" href=${`/tasks/${line.task}/log`}>${line.task}</a>` },
    { head: t('Item'), class: 'num', cell: (line) => line.index != null && html`<a class="link" data-row href=${`/tasks/${line.task}/items/${line.index}?from=log`}>#${count(line.index)}</a>` },
    { head: t('Origin'), class: 'soft', cell: (line) => t(line.origin) },
    { head: t('Code'), class: 'nowrap', cell: (line) => line.code && html`<code>${line.code}</code>` },
    { head: t('Message'), class: 'message main-cell', cell: (line) => html`<${Message} line=${line} />` },
  ];
}

function Filters({ at, isTail, setTail, exports }) {
  return html`<div class="filters">
    <${Filter} name="q" label=${t('text')} />
    <${Filter} name="level" label=${t('any level')} options=${LEVELS.map((level) => [level, t('{level} and above', { level })])} />
    <${Filter} name="origin" label=${t('any origin')} options=${[['business', t('business')], ['system', t('system')]]} />
    <${Filter} name="code" label=${t('code')} width="8rem" /><${Filter} name="index" label=${t('item')} width="6rem" />
    <span class="end"><button type="button" class="button" aria-pressed=${isTail} onClick=${() => setTail(!isTail)}><${Icon} name=${isTail ? 'pause' : 'play'} />${isTail ? t('Pause') : t('Follow')}</button>${exports}</span></div>`;
}

function Dropped({ dropped }) {
  const found = Object.entries(dropped ?? {}).filter(([, number]) => number > 0);
  return found.length > 0 && html`<p class="soft">${t('Dropped:')} ${found.map(([why, number]) => `${count(number)} (${why})`).join(', ')}</p>`;
}

/** @param {{at: string, isGlobal?: boolean, exports?: any}} props at: the path of the lines */
export function LogView({ at, isGlobal = false, exports }) {
  const [isTail, setTail] = useState(true);
  const query = Object.fromEntries(FILTERS.map((name) => [name, route.value.query.get(name)]));
  const isNewest = !query.cursor;
  const read = useResource(path(at, { ...query, limit: 100 }), { every: isTail && isNewest ? 2000 : 0, keep: true });
  return html`<${Section} title=${isGlobal ? null : t('Data log')}>
    <${Filters} isTail=${isTail} setTail=${setTail} exports=${exports} />
    <${Whole} of=${read}>${(page) => (page.items.length
      ? html`<${Table} columns=${columns(isGlobal)} rows=${page.items} id=${(line) => `${line.task} ${line.number}`} label=${t('Data log')} isLoading=${read.isLoading} isDense=${true} />
        <${Dropped} dropped=${page.dropped} /><${Pager} next=${page.next_cursor} />`
      : html`<${Empty} say=${t('No matching lines.')}><p>${t('Handlers send lines in the "logs" of their responses; windrow adds one for each failed item.')}</p><//>`)}<//><//>`;
}
