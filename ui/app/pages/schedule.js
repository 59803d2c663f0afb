/** @file One schedule: past and future fires on a calendar, and their outcomes. */
import { html } from '../../vendor/preact-htm.js';
import { backfill, editSchedule, pauseSchedule, removeSchedule, skipFires, trigger, warningText } from '../lib/actions_more.js';
import { part, path } from '../lib/api.js';
import { byDay, clockPart, dayOf } from '../lib/calendar.js';
import { now } from '../lib/clock.js';
import { clock, count, day, stamp } from '../lib/format.js';
import { t } from '../lib/i18n.js';
import { zone } from '../lib/kept.js';
import { useResource } from '../lib/resource.js';
import { route } from '../lib/router.js';
import { ActButton } from '../parts/ask.js';
import { Ago, Empty, Json, Pairs, Section, Stamp, Whole } from '../parts/basic.js';
import { Page } from '../parts/shell.js';
import { FireStatus, fireLook } from '../parts/status.js';
import { Pager, Table } from '../parts/table.js';
import { LastFire, ScheduleState, times } from './schedules.js';

const FILLS = { made: 'ok-fill', pending: 'run-fill', queued: 'warn-fill', skipped: 'edge', missed: 'bad-fill', failed: 'bad-fill', next: 'accent' };

function Dot({ moment }) {
  const x = moment.part * 1000;
  const color = `var(--${FILLS[moment.kind]})`;
  const title = html`<title>${moment.text}</title>`;
  if (moment.kind === 'next') return html`<rect x=${x - 2} y="4" width="5" height="12" fill="none" stroke=${color} stroke-width="1.5" vector-effect="non-scaling-stroke">${title}</rect>`;
  return html`<rect x=${x - 2} y=${moment.kind === 'made' ? 4 : 1} width="5" height=${moment.kind === 'made' ? 12 : 18} fill=${color}>${title}</rect>`;
}

const DAYS_BEFORE = 3;
const DAYS = 7;

function Calendar({ fires, next }) {
  const isUtc = zone.value === 'UTC';
  const starts = Array.from({ length: DAYS + 1 }, (_, at) => dayOf(now.value, isUtc, at - DAYS_BEFORE));
  const moments = [
    ...fires.map((fire) => ({ at: Date.parse(fire.time), kind: fire.outcome, text: `${stamp(fire.time)} ${fireLook(fire.outcome).text}` })),
    ...next.map((time) => ({ at: Date.parse(time), kind: 'next', text: stamp(time) })),
  ];
  const rows = byDay(moments, starts, isUtc);
  const today = dayOf(now.value, isUtc);
  return html`<div class="times calendar">
    ${rows.map((row) => html`<div class="lane" key=${row.at}><span class=${row.at === today ? 'strong' : 'soft'}>${day(row.at + 43_200_000).slice(5)}</span>
      <svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=${t('{day}: {n:fire|fires}', { day: day(row.at + 43_200_000), n: row.moments.length })}>
        ${[0, 250, 500, 750, 1000].map((x) => html`<line key=${x} x1=${x} x2=${x} y1="0" y2="20" stroke="var(--line)" vector-effect="non-scaling-stroke" />`)}
        ${row.at === today && html`<line x1=${clockPart(now.value, isUtc) * 1000} x2=${clockPart(now.value, isUtc) * 1000} y1="0" y2="20" stroke="var(--accent)" vector-effect="non-scaling-stroke" />`}
        ${row.moments.map((moment) => html`<${Dot} key=${moment.kind + moment.at} moment=${moment} />`)}</svg></div>`)}
    <div class="lane soft"><span></span><span class="hours">${['00', '06', '12', '18', '24'].map((hour) => html`<span key=${hour}>${hour}</span>`)}</span></div>
    <p class="legend">${Object.entries({ made: 'task created', skipped: 'skipped', missed: 'missed or failed', next: 'upcoming' }).map(([kind, text]) => html`<span key=${kind}>
      <i class="key" style=${kind === 'next' ? { border: '1.5px solid var(--accent)' } : { background: `var(--${FILLS[kind]})` }}></i>${t(text)}</span>`)}</p></div>`;
}

function Fires({ page }) {
  const columns = [
    { head: t('Time'), class: 'nowrap', cell: (fire) => html`<${Stamp} at=${fire.time} />` },
    { head: t('Outcome'), cell: (fire) => html`<${FireStatus} fire=${fire} />${fire.count > 1 && ` ×${count(fire.count)}`}` },
    { head: t('Kind'), class: 'soft', cell: (fire) => t(fire.kind) },
    { head: t('Task'), cell: (fire) => (fire.task ? html`<a class="link" data-row href=${`/tasks/${fire.task}`}>${fire.task}</a>` : html`<span class="soft">${fire.name}</span>`) },
    { head: t('Reason'), class: 'fill main-cell', cell: (fire) => html`<span class="soft">${fire.text}</span>` },
    { head: t('Decided'), class: 'num', cell: (fire) => clock(fire.decided_at) },
  ];
  return html`<${Table} columns=${columns} rows=${page.items} id=${(fire) => fire.time + fire.kind + fire.decided_at} label=${t('Fires')} /><${Pager} next=${page.next_cursor} />`;
}

function Facts({ one }) {
  return html`<${Pairs} of=${[
    [t('State'), html`<${ScheduleState} one=${one} />`],
    [t('Times'), html`<code>${times(one)}</code>`],
    [t('Next'), one.next_fire && html`<${Stamp} at=${one.next_fire} /> (<${Ago} at=${one.next_fire} />)`],
    [t('Last'), html`<${LastFire} one=${one} />`],
    [t('Business'), html`<a class="link" href=${`/businesses/${one.business}`}>${one.business}</a>`],
    [t('Overlap'), t(one.overlap)],
    [t('Missed fires'), t(one.missed)],
    one.jitter !== '0s' && [t('Jitter'), one.jitter],
    one.pending > 0 && [t('Pending fires'), count(one.pending)],
    one.queued > 0 && [t('Queued'), count(one.queued)],
    one.end && [t('End'), html`<${Stamp} at=${one.end} />`],
  ]} />`;
}

/** Warnings about fires that would not happen as intended. */
function Warnings({ of }) {
  return of.length > 0 && html`<ul class="stack">${of.map((one) => html`<li key=${one.code + one.pointer} class="warn">${warningText(one)}</li>`)}</ul>`;
}

/** Page of a schedule. */
export function Schedule({ schedule: id }) {
  const read = useResource(`/v1/schedules/${part(id)}`, { every: 5000 });
  const next = useResource(`/v1/schedules/${part(id)}/next?count=100`, { every: 30_000 });
  const fires = useResource(path(`/v1/schedules/${part(id)}/fires`, { limit: 100, cursor: route.value.query.get('cursor') }), { every: 5000, keep: true });
  const then = (action) => ({ ...action, after: () => { read.reload(); fires.reload(); } });
  const acts = read.data && html`<${ActButton} action=${then(trigger(read.data))} /><${ActButton} action=${then(pauseSchedule(read.data))} />
    ${read.data.pending + read.data.queued > 0 && html`<${ActButton} action=${then(skipFires(read.data))} />`}
    <${ActButton} action=${then(editSchedule(read.data))}>${t('Change')}<//><${ActButton} action=${then(backfill(read.data))}>${t('Backfill')}<//><${ActButton} class="is-danger" action=${removeSchedule(read.data)} />`;
  return html`<${Page} title=${read.data?.name ?? id} up=${[['/schedules', t('Schedules')]]} acts=${acts}><${Whole} of=${read}>${(one) => html`
    <${Warnings} of=${one.warnings} />
    <${Facts} one=${one} />
    <${Section} title=${t('Calendar')}><${Calendar} fires=${fires.data?.items ?? []} next=${next.data?.items ?? one.next_fires} /><//>
    <${Section} title=${t('Fires')}><${Whole} of=${fires}>${(page) => (page.items.length ? html`<${Fires} page=${page} />` : html`<${Empty} say=${t('No fires yet.')} />`)}<//><//>
    <${Section} title=${t('Task template')}><${Json} value=${one.task} label=${t('Task template')} /><//>`}<//><//>`;
}
