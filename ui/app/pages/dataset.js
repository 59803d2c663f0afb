/** @file One dataset: generations, lookup, pinning and rollback. */
import { html, useState } from '../../vendor/preact-htm.js';
import { keepGenerations, pin, removeDataset, rollBack } from '../lib/actions_more.js';
import { get, part, path } from '../lib/api.js';
import { count, stamp } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Empty, Json, Pairs, Problem, Section, Whole } from '../parts/basic.js';
import { Icon } from '../parts/icon.js';
import { Page } from '../parts/shell.js';
import { Mark } from '../parts/status.js';
import { Pager, Table } from '../parts/table.js';

const STATES = {
  pending: ['clock', 'run', 'in progress'],
  published: ['check', 'ok', 'published'],
  withheld: ['cross', 'bad', 'withheld'],
};

function columns(name, reload) {
  const then = (action) => ({ ...action, after: reload });
  const isPublished = (one) => one.state === 'published';
  return [
    { head: t('Generation'), class: 'nowrap', cell: (one) => html`<b>${one.generation}</b> ${one.current && html`<${Mark} icon="play" tone="run" text=${t('current')} />`} ${one.pinned && html`<${Mark} icon="seal" tone="soft" text=${t('pinned')} />`}` },
    { head: t('State'), cell: (one) => html`<${Mark} icon=${STATES[one.state][0]} tone=${STATES[one.state][1]} text=${t(STATES[one.state][2])} />` },
    { head: t('Results'), class: 'num', cell: (one) => count(one.results) },
    { head: t('Task'), cell: (one) => html`<a class="link" href=${`/tasks/${one.task}`}>${one.task}</a>` },
    { head: t('Published'), cell: (one) => one.published_at && html`<span class="nowrap">${stamp(one.published_at)}</span>` },
    { head: t('Reason'), class: 'fill main-cell', cell: (one) => html`<span class="soft">${one.why}</span>` },
    { head: t('Actions'), bare: true, class: 'num nowrap', cell: (one) => isPublished(one) && html`<span class="row">
      <a class="button is-small" download href=${`/v1/datasets/${part(name)}/generations/${one.generation}/results?format=csv`}><${Icon} name="down" />CSV</a>
      <${ActButton} class="is-small" action=${then(pin(name, one))} /> ${!one.current && html`<${ActButton} class="is-small" action=${then(rollBack(name, one.generation))} />`}</span>` },
  ];
}

/** Lookup of one item in a generation, by index or, if there is one, by key. */
function LookUp({ name, current }) {
  const [state, setState] = useState({ found: null, error: null });
  const [what, setWhat] = useState('');
  const [by, setBy] = useState(current.key ? 'keys' : 'items');
  const look = async (event) => {
    event.preventDefault();
    try {
      setState({ found: await get(`/v1/datasets/${part(name)}/generations/${current.generation}/${by}/${part(what.trim())}`), error: null });
    } catch (error) {
      setState({ found: null, error });
    }
  };
  return html`<form class="filters" onSubmit=${look}>
    <select aria-label=${t('Look up by')} onChange=${(event) => setBy(event.target.value)}>
      ${current.key && html`<option value="keys" selected=${by === 'keys'}>${current.key}</option>`}<option value="items" selected=${by === 'items'}>${t('index')}</option></select>
    <input type="text" value=${what} required aria-label=${t('Value')} onInput=${(event) => setWhat(event.target.value)} /><button type="submit" class="button">${t('Look up')}</button></form>
    ${state.error && html`<${Problem} error=${state.error} />`}${state.found && html`<${Json} value=${state.found.items ?? state.found} label=${t('Result')} />`}`;
}

function Current({ name, one }) {
  const read = useResource(one.generation == null ? null : `/v1/datasets/${part(name)}/generations/${one.generation}`, { every: 10_000 });
  if (one.generation == null) return html`<${Empty} say=${t('Nothing published yet: readers see no data.')} />`;
  return html`<${Whole} of=${read}>${(current) => html`<${Section} title=${t('Current generation')} aside=${current.generation}>
    <${Pairs} of=${[[t('Results'), count(current.results)], [t('Published'), html`<${Ago} at=${current.published_at} isSaid=${true} />`], [t('Lookup key'), current.key ?? t('index')], [t('Task'), html`<a class="link" href=${`/tasks/${current.task}`}>${current.task}</a>`]]} />
    ${current.summary != null && html`<h3>${t('Summary')}</h3><${Json} value=${current.summary} label=${t('Summary')} />`}<//>
    <${Section} title=${t('Look up an item')}><${LookUp} name=${name} current=${current} /><//>`}<//>`;
}

/** Page of a dataset. */
export function Dataset({ dataset: name }) {
  const read = useResource(`/v1/datasets/${part(name)}`, { every: 5000 });
  const list = useResource(path(`/v1/datasets/${part(name)}/generations`, { limit: 50, cursor: route.value.query.get('cursor') }), { every: 5000, keep: true });
  const reload = () => { read.reload(); list.reload(); };
  const acts = read.data && html`<${ActButton} action=${{ ...keepGenerations(read.data), after: reload }}>${t('Change retention')}<//><${ActButton} class="is-danger" action=${removeDataset(read.data)} />`;
  return html`<${Page} title=${name} up=${[['/datasets', t('Datasets')]]} acts=${acts}><${Whole} of=${read}>${(one) => html`
    <${Current} name=${name} one=${one} />
    <${Section} title=${t('Generations')} aside=${t('the newest {n} are kept', { n: one.keep })}><${Whole} of=${list}>${(page) => html`
      <${Table} columns=${columns(name, reload)} rows=${page.items} id=${(each) => String(each.generation)} label=${t('Generations')} /><${Pager} next=${page.next_cursor} />`}<//><//>`}<//><//>`;
}
