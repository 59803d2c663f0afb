/** @file List of schedules with their next fire and state. */
import { html } from '../../vendor/preact-htm.js';
import { newSchedule, pauseSchedule, trigger } from '../lib/actions_more.js';
import { path } from '../lib/api.js';
import { t } from '../lib/i18n.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { session } from '../lib/session.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Empty, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { FireStatus, Mark } from '../parts/status.js';
import { Pager, Table } from '../parts/table.js';

/** Times of a schedule as entered. */
export const times = (one) => (one.cron ? `${one.cron} ${one.zone ?? 'UTC'}` : t('every {span}', { span: one.every }));

/** State of a schedule: paused, failing, active or completed. */
export function ScheduleState({ one }) {
  if (one.paused) return html`<${Mark} icon="pause" tone="warn" text=${t('paused')} />`;
  if (one.trouble) return html`<${Mark} icon="warn" tone="bad" text=${t('failing')} title=${one.trouble} />`;
  return one.next_fire ? html`<${Mark} icon="clock" tone="ok" text=${t('active')} />` : html`<${Mark} icon="stop" tone="soft" text=${t('completed')} />`;
}

/** Outcome of the latest fire with its task, or the trouble that it is in. */
export function LastFire({ one: { last_fire: fire, trouble } }) {
  if (!fire) return html`<span class="soft">–</span>`;
  return html`<span class="row">${trouble ? html`<span class="bad cut" title=${trouble}>${trouble}</span>` : html`<${FireStatus} fire=${fire} />`}
    ${fire.task && html`<a class="link" href=${`/tasks/${fire.task}`}>${fire.task}</a>`}<span class="soft"><${Ago} at=${fire.time} /></span></span>`;
}

function columns(reload) {
  const then = (action) => ({ ...action, after: reload });
  return [
    { head: t('Schedule'), class: 'fill main-cell', cell: (one) => html`<a data-row class="cut" href=${`/schedules/${one.id}`}><span class="soft">${one.id}</span> ${one.name}</a>` },
    { head: t('Business'), class: 'name-cell', cell: (one) => html`<a class="soft" href=${`/businesses/${one.business}`}>${one.business}</a>` },
    { head: t('State'), cell: (one) => html`<${ScheduleState} one=${one} />` },
    { head: t('Times'), class: 'nowrap', cell: (one) => html`<code>${times(one)}</code>` },
    { head: t('Next'), class: 'num', cell: (one) => html`<${Ago} at=${one.next_fire} />` },
    { head: t('Last'), class: 'main-cell', cell: (one) => html`<${LastFire} one=${one} />` },
    { head: t('Actions'), bare: true, class: 'num nowrap', cell: (one) => html`<${ActButton} class="is-small" action=${then(trigger(one))} /> <${ActButton} class="is-small" action=${then(pauseSchedule(one))} />` },
  ];
}

/** All schedules. */
export function Schedules() {
  const read = useResource(path('/v1/schedules', { limit: 100, cursor: route.value.query.get('cursor') }), { every: 5000, keep: true });
  const businesses = useResource(session.value.role === 'business' ? null : '/v1/businesses?limit=200');
  const names = session.value.business ? [session.value.business] : (businesses.data?.items ?? []).map((one) => one.name);
  const acts = names.length > 0 && html`<${ActButton} isMain=${true} hotkey="c" action=${newSchedule(names)}>${t('New schedule')}<//>`;
  return html`<${Page} title=${t('Schedules')} acts=${acts}><${Whole} of=${read}>${(page) => (page.items.length
    ? html`<${Table} columns=${columns(read.reload)} rows=${page.items} id=${(one) => one.id} label=${t('Schedules')} /><${Pager} next=${page.next_cursor} />`
    : html`<${Empty} say=${t('No schedules yet. A schedule creates a task at each of its times.')} commands=${["windrow schedule create hello nightly --cron '0 3 * * *' --zone Europe/Berlin --total 1000 --rate 50/s"]} />`)}<//><//>`;
}
