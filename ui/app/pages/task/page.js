/** @file Page of a task: header, actions and tabs. */
import { html } from '../../../vendor/preact-htm.js';
import { count } from '../../lib/format.js';
import { t } from '../../lib/i18n.js';
import { route } from '../../lib/router.js';
import { title } from '../../lib/task.js';
import { useTask } from '../../lib/watch.js';
import { Copy, Loading, Problem, Tabs } from '../../parts/basic.js';
import { Fetched } from '../../parts/fetched.js';
import { Page } from '../../parts/shell.js';
import { TaskStatus } from '../../parts/status.js';
import { Head } from './head.js';

/** Tabs: path segment, text, export of the file, and count beside the text. */
const TABS = [
  ['', 'Live', 'Live'],
  ['failures', 'Failures', 'Failures', (task) => task.counts.failed],
  ['results', 'Results', 'Results'],
  ['log', 'Data log', 'Log'],
  ['runs', 'Runs', 'Runs'],
  ['settings', 'Settings and history', 'History'],
];

function TabLinks({ task, tab }) {
  return html`<${Tabs} label=${t('Task sections')} items=${TABS.map(([name, text, , tally]) => ({
    href: `/tasks/${task.id}${name ? `/${name}` : ''}`,
    isCurrent: name === tab,
    text: t(text),
    tally: tally?.(task) ? count(tally(task)) : null,
  }))} />`;
}

function Crumbs({ task }) {
  return html`<span class="row nowrap"><${Copy} text=${task.id} what=${t('Copy {id}', { id: task.id })} /><${TaskStatus} task=${task} /></span>`;
}

/** Page of a task. The address has the tab, or the open item. */
export function Task({ task: id, tab = '', index }) {
  const watched = useTask(id);
  const { task, error } = watched;
  const up = [['/tasks', t('Tasks')]];
  if (!task) return html`<${Page} title=${id} up=${up}>${error ? html`<${Problem} error=${error} retry=${watched.reload} />` : html`<${Loading} />`}<//>`;
  const shown = index == null ? tab : route.value.query.get('from') ?? '';
  const tabName = (TABS.find(([name]) => name === shown) ?? TABS[0])[2];
  const name = title(task) === task.id ? task.id : `${task.id} ${task.name}`;
  return html`<${Page} title=${name} up=${[...up, [`/businesses/${encodeURIComponent(task.business)}`, task.business]]}
      note=${html`<${Crumbs} task=${task} />`}>
    <${Head} task=${task} />
    <${TabLinks} task=${task} tab=${shown} />
    <${Fetched} file=${`task/${tabName.toLowerCase()}`} name=${tabName} props=${{ task, watched }} id=${`${id} ${shown}`} />
    ${index != null && html`<${Fetched} file="task/item" name="Item" props=${{ task, index, back: `/tasks/${id}${shown ? `/${shown}` : ''}` }} id=${id} />`}<//>`;
}
Task.keepsState = true;
