/** @file Actions on businesses, nodes, schedules, datasets, limits and tokens. No side effects. */
import { part } from './api.js';
import { localTime, stamp } from './format.js';
import { t } from './i18n.js';
import { taskPatch } from './patch.js';
import { flag, sh } from './command.js';

const verb = (noun, command, name, word) => ({ method: 'POST', path: `/v1/${noun}/${part(name)}/${word}`, cli: sh`windrow ${command} ${word} ${name}` });

/** Archives or unarchives a business. */
export const archive = (business) => (business.archived_at
  ? { ...verb('businesses', 'biz', business.name, 'unarchive'), role: 'admin', title: t('Unarchive {name}?', { name: business.name }), verb: t('Unarchive'), done: () => t('{name} unarchived', { name: business.name }) }
  : { ...verb('businesses', 'biz', business.name, 'archive'), role: 'admin', title: t('Archive {name}?', { name: business.name }), text: t('It accepts no new tasks; existing ones continue.'), verb: t('Archive'), done: () => t('{name} archived', { name: business.name }) });

/** Rotates the signing secret of a business. */
export const rotate = (business, show) => ({
  ...verb('businesses', 'biz', business.name, 'rotate-secret'), role: 'admin', title: t('Rotate the signing secret of {name}?', { name: business.name }),
  text: t('The new secret is shown once. The old one stays valid for 24 hours.'), verb: t('Rotate secret'), after: show, done: () => t('secret of {name} rotated', { name: business.name }),
});

/** Drains or undrains a node. */
export const drain = (node) => (node.state === 'serving'
  ? { ...verb('nodes', 'node', node.id, 'drain'), role: 'admin', title: t('Drain {name}?', { name: node.id }), text: t('It accepts no new work and hands its runs over to other nodes, where they continue.'), verb: t('Drain'), done: () => t('{name} is draining', { name: node.id }), undo: () => drain({ ...node, state: 'draining' }) }
  : { ...verb('nodes', 'node', node.id, 'undrain'), role: 'admin', title: t('Undrain {name}?', { name: node.id }), verb: t('Undrain'), done: () => t('{name} accepts work again', { name: node.id }) });

/** Changes the capacity of a node until it restarts. */
export const capacity = (node) => ({
  method: 'PATCH', path: `/v1/nodes/${part(node.id)}`, cli: sh`windrow node set ${node.id}`, role: 'admin', title: t('Capacity of {name}', { name: node.id }),
  text: t('The total rate of the tasks that the node may run. Applies until the node restarts.'), verb: t('Apply'),
  fields: [{ name: 'rate', label: t('Items per second'), value: node.capacity_rate }],
  body: (values) => ({ capacity_rate: values.rate }), flags: (values) => sh`--capacity ${values.rate}`, done: (now) => t('capacity of {name}: {rate}', { name: node.id, rate: now.capacity_rate }),
});

const scheduled = (one, word) => verb('schedules', 'schedule', one.id, word);

/** Pauses or resumes a schedule. */
export const pauseSchedule = (one) => (one.paused
  ? { ...scheduled(one, 'resume'), title: t('Resume {name}?', { name: one.name }), text: t('It fires again at its next scheduled time. Missed fires are not caught up.'), verb: t('Resume'), done: () => t('{name} resumed', { name: one.name }), undo: pauseSchedule }
  : { ...scheduled(one, 'pause'), title: t('Pause {name}?', { name: one.name }), text: t('It stops firing. Running tasks continue.'), verb: t('Pause'), done: () => t('{name} paused', { name: one.name }), undo: pauseSchedule });

/** Parses JSON; invalid JSON stays text, so that the node reports the error. */
function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Members of the API for `0 3 * * *` or `20m`. */
const timesOf = ({ times, zone }) => (/\s/.test(times.trim()) ? { cron: times.trim(), ...(zone.trim() ? { zone: zone.trim() } : {}) } : { every: times.trim() });
const scheduleOf = (values) => ({ ...timesOf(values), overlap: values.overlap, missed: values.missed.trim(), task: json(values.task) });
const OVERLAPS = ['skip', 'queue', 'cancel_running', 'allow'];

const scheduleFields = (one) => [
  { name: 'times', label: t('Times'), value: one.cron ?? one.every, required: true, hint: t('20m, or minute, hour, day, month and weekday: 0 3 * * *') },
  { name: 'zone', label: t('Time zone'), value: one.zone ?? '', hint: t('e.g. Europe/Berlin; UTC if empty') },
  { name: 'overlap', label: t('Overlap'), value: one.overlap, options: OVERLAPS.map((word) => [word, t(word)]) },
  { name: 'missed', label: t('Missed fires'), value: one.missed, hint: 'latest, none, all 10' },
  { name: 'task', label: t('Task template'), value: JSON.stringify(one.task, null, 2), type: 'json' },
];
const foresee = ({ next_fires: next, warnings }) => [
  next?.length ? t('Next fires: {times}', { times: next.map(stamp).join(', ') }) : t('No more fires.'),
  ...(warnings ?? []).map(warningText),
].join(' · ');

/** Text of a node's warning, with its advice. */
export const warningText = ({ detail, advice }) => (advice ? t('{warning}; try {advice}', { warning: detail, advice }) : detail);

/** Creates a schedule. */
export const newSchedule = (businesses) => ({
  method: 'POST', path: '/v1/schedules', cli: sh`windrow api POST /v1/schedules`, title: t('New schedule'), verb: t('Create'), foresee,
  fields: [{ name: 'business', label: t('Business'), value: businesses[0], options: businesses.map((name) => [name, name]) }, { name: 'name', label: t('Name'), required: true },
    ...scheduleFields({ every: '1h', overlap: 'skip', missed: 'latest', task: { source: { type: 'range', total: 1000 }, rate: '50/s' } })],
  body: (values) => ({ business: values.business, name: values.name.trim(), ...scheduleOf(values) }),
  flags: (values) => sh`-d ${JSON.stringify({ business: values.business, name: values.name.trim(), ...scheduleOf(values) })}`,
  done: (now) => t('{name} created', { name: now.name }), next: (now) => `/schedules/${now.id}`,
});

/** Changes the times and the task of a schedule; undo restores the previous ones. */
export const editSchedule = (one) => ({
  method: 'PATCH', path: `/v1/schedules/${part(one.id)}`, cli: sh`windrow schedule set ${one.id}`, title: t('Change {name}', { name: one.name }), verb: t('Apply'), foresee,
  fields: scheduleFields(one), body: (values) => ({ ...scheduleOf(values), task: taskPatch(one.task, json(values.task)) }), done: () => t('{name} changed', { name: one.name }),
  flags: (values) => { const { task, ...rest } = scheduleOf(values); return [...Object.entries(rest).map(([name, value]) => flag(name, value)), sh`--task ${JSON.stringify(taskPatch(one.task, task))}`]; },
  undo: (now) => ({ method: 'PATCH', path: `/v1/schedules/${part(one.id)}`, body: () => ({ ...(one.cron ? { cron: one.cron, zone: one.zone } : { every: one.every }), overlap: one.overlap, missed: one.missed, task: taskPatch(now.task, one.task) }) }),
});

/** Skips fires that are queued or whose task can't be created yet. */
export const skipFires = (one) => ({
  ...scheduled(one, 'skip'), title: t('Skip the open fires of {name}?', { name: one.name }), text: t('Queued fires, and fires whose task is not created yet, create no task.'), verb: t('Skip pending fires'),
  done: ({ items }) => t('{n:fire|fires} skipped', { n: items?.length ?? '' }),
});

const utc = (local) => (local ? new Date(local).toISOString() : undefined);

/** Backfills the fires of a past period. */
export const backfill = (one) => ({
  ...scheduled(one, 'backfill'), title: t('Backfill {name}', { name: one.name }), text: t('Creates one task after another. Times that already have a task are skipped.'), verb: t('Backfill'),
  fields: [{ name: 'from', label: t('From'), type: 'datetime-local', required: true, value: localTime(Date.now() - 86_400_000) }, { name: 'to', label: t('To (empty: now)'), type: 'datetime-local' },
    { name: 'publish', label: t('Publish results as the schedule does'), type: 'checkbox', value: false }],
  body: (values) => ({ from: utc(values.from), ...(values.to ? { to: utc(values.to) } : {}), ...(values.publish ? { publish: true } : {}) }),
  flags: (values) => [sh`--from ${utc(values.from)}`, values.to && sh`--to ${utc(values.to)}`, values.publish && sh`--publish`],
  foresee: ({ items }) => t('{n:fire|fires}: {times}', { n: items.length, times: items.slice(0, 5).map((fire) => stamp(fire.time)).join(', ') + (items.length > 5 ? ' …' : '') }),
  done: ({ items }) => t('backfilling {n:fire|fires}', { n: items?.length ?? '' }),
});

/** Fires a schedule at once. */
export const trigger = (one) => ({ ...scheduled(one, 'trigger'), title: t('Fire {name} now?', { name: one.name }), text: t('Creates one task in addition to the scheduled ones.'), verb: t('Fire now'), done: () => t('{name} fired', { name: one.name }) });

/** Deletes a schedule. */
export const removeSchedule = (one) => ({
  method: 'DELETE', path: `/v1/schedules/${part(one.id)}`, cli: sh`windrow schedule delete ${one.id}`, title: t('Delete {name}?', { name: one.name }),
  text: t('Its fire history is deleted too. Its tasks stay.'), verb: t('Delete'), isDanger: true, typed: one.name, done: () => t('{id} deleted', { id: one.name }), next: () => '/schedules',
});

/** Rolls a dataset back to an earlier generation. */
export const rollBack = (dataset, generation) => ({
  method: 'POST', path: `/v1/datasets/${part(dataset)}/rollback`, cli: sh`windrow dataset rollback ${dataset} ${generation}`, title: t('Roll {name} back to generation {n}?', { n: generation, name: dataset }),
  text: t('Readers see it at once. Later generations are kept.'), verb: t('Roll back'), isDanger: true, body: () => ({ generation }), done: () => t('generation {n} is current', { n: generation }),
});

/** Pins or unpins a generation. */
export const pin = (dataset, one) => {
  const word = one.pinned ? 'unpin' : 'pin';
  return { method: 'POST', path: `/v1/datasets/${part(dataset)}/generations/${one.generation}/${word}`, cli: sh`windrow dataset ${word} ${dataset} ${one.generation}`,
    title: one.pinned ? t('Unpin generation {n}?', { n: one.generation }) : t('Pin generation {n}?', { n: one.generation }),
    text: one.pinned ? t('It is deleted once enough newer generations exist.') : t('It is kept regardless of newer generations.'),
    verb: one.pinned ? t('Unpin') : t('Pin'), done: () => (one.pinned ? t('generation {n} unpinned', { n: one.generation }) : t('generation {n} pinned', { n: one.generation })) };
};

/** Changes the number of generations kept. */
export const keepGenerations = (one) => ({
  method: 'PATCH', path: `/v1/datasets/${part(one.name)}`, cli: sh`windrow dataset set ${one.name}`, title: t('Change the retention of {name}', { name: one.name }),
  text: t('Older generations are deleted, except pinned ones and the current one.'), verb: t('Apply'), fields: [{ name: 'keep', label: t('Generations kept'), type: 'number', value: one.keep, required: true }],
  body: (values) => ({ keep: Number(values.keep) }), flags: (values) => sh`--keep ${values.keep}`, done: (now) => t('{name} keeps {n:generation|generations}', { name: one.name, n: now.keep }),
});

/** Deletes a dataset. */
export const removeDataset = (one) => ({
  method: 'DELETE', path: `/v1/datasets/${part(one.name)}`, cli: sh`windrow dataset delete ${one.name}`, title: t('Delete {name}?', { name: one.name }),
  text: t('All its generations are deleted, and readers find nothing. This cannot be undone.'), verb: t('Delete'), isDanger: true, typed: one.name, done: () => t('{id} deleted', { id: one.name }), next: () => '/datasets',
});

/** Deletes a limit. */
export const removeLimit = (limit) => ({
  method: 'DELETE', path: `/v1/limits/${part(limit.name)}`, cli: sh`windrow limit delete ${limit.name}`, role: 'admin', title: t('Delete {name}?', { name: limit.name }),
  text: t('This fails while a business or a task uses it.'), verb: t('Delete'), isDanger: true, typed: limit.name, done: () => t('{id} deleted', { id: limit.name }), next: () => '/limits',
});

/** Editable members of a business, as form values. */
const businessForm = (one) => ({
  ...(one.url == null ? {} : { url: one.url }), ...(one.command == null ? {} : { command: one.command }), display_name: one.display_name ?? '', pool: one.pool,
  rate: one.defaults.rate ?? '', timeout: one.defaults.timeout ?? '', limit_rate: one.limits.rate ?? '', limit_concurrency: one.limits.concurrency ?? '', insecure_skip_verify: one.insecure_skip_verify,
});
const businessWords = () => ({
  url: t('URL'), command: t('Command'), display_name: t('Display name (optional)'), pool: t('Pool'), rate: t('Default task rate (optional)'), timeout: t('Call timeout (optional)'),
  limit_rate: t('Total rate of all tasks (optional)'), limit_concurrency: t('Total concurrency of all tasks (optional)'), insecure_skip_verify: t('Trust any certificate (test systems only)'),
});
const FLAGS = { timeout: 'call-timeout' };
const GROUPS = { rate: 'defaults', timeout: 'defaults', limit_rate: 'limits', limit_concurrency: 'limits' };

/** Merge patch of a business from the changed form values. */
function businessPatch(before, values) {
  const patch = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === before[name]) continue;
    const group = GROUPS[name];
    const sent = value === '' ? null : name === 'limit_concurrency' ? Number(value) : value;
    if (group) (patch[group] ??= {})[name.replace('limit_', '')] = sent;
    else patch[name] = sent;
  }
  return patch;
}

/** Changes a business. */
export function editBusiness(one) {
  const [before, words] = [businessForm(one), businessWords()];
  const patch = (body) => ({ method: 'PATCH', path: `/v1/businesses/${part(one.name)}`, role: 'admin', body });
  return {
    ...patch((values) => businessPatch(before, values)), cli: sh`windrow biz edit ${one.name}`, title: t('Change {name}', { name: one.name }), text: t('Running tasks apply it within seconds.'), verb: t('Apply'),
    fields: Object.entries(before).map(([name, value]) => ({ name, label: words[name], value, type: typeof value === 'boolean' ? 'checkbox' : 'text' })),
    flags: (values) => Object.entries(values).filter(([name, value]) => value !== before[name]).map(([name, value]) => flag(FLAGS[name] ?? name, value)),
    done: () => t('{name} changed', { name: one.name }), undo: (now) => patch(() => businessPatch(businessForm(now), before)),
  };
}

/** Changes a limit. */
export const setLimit = (limit) => ({
  method: 'PATCH', path: `/v1/limits/${part(limit.name)}`, cli: sh`windrow limit set ${limit.name}`, role: 'admin', title: t('Change limit {name}', { name: limit.name }),
  text: t('Running tasks follow it within seconds.'), verb: t('Apply'),
  fields: [{ name: 'rate', label: t('Rate'), value: limit.rate ?? '' }, { name: 'concurrency', label: t('Concurrency'), value: limit.concurrency ?? '' }],
  body: (values) => ({ rate: values.rate.trim() || null, concurrency: values.concurrency === '' ? null : Number(values.concurrency) }),
  flags: (values) => [values.rate && sh`--rate ${values.rate}`, values.concurrency !== '' && sh`--concurrency ${values.concurrency}`],
  done: () => t('{name} changed', { name: limit.name }),
});

/** Creates a limit. */
export const newLimit = () => ({
  method: 'POST', path: '/v1/limits', cli: sh`windrow limit create`, role: 'admin', title: t('New limit'), text: t('A limit is shared by all tasks that name it, across all nodes.'), verb: t('Create'),
  fields: [{ name: 'name', label: t('Name'), required: true }, { name: 'rate', label: t('Rate'), hint: '300/s' }, { name: 'concurrency', label: t('Concurrency'), type: 'number' }],
  body: (values) => ({ name: values.name, ...(values.rate ? { rate: values.rate } : {}), ...(values.concurrency ? { concurrency: Number(values.concurrency) } : {}) }),
  flags: (values) => [values.name, values.rate && sh`--rate ${values.rate}`, values.concurrency && sh`--concurrency ${values.concurrency}`],
  done: (now) => t('{name} created', { name: now.name }),
});

/** Creates a token; only the response to this request contains it. */
export const newToken = (show) => ({
  method: 'POST', path: '/v1/tokens', cli: sh`windrow token create`, role: 'admin', title: t('New token'), verb: t('Create'),
  fields: [
    { name: 'name', label: t('Holder'), required: true },
    { name: 'role', label: t('Role'), value: 'viewer', options: ['viewer', 'operator', 'admin', 'business', 'reader'].map((role) => [role, t(role)]) },
    { name: 'business', label: t('Business (for the business and reader roles)') },
  ],
  body: (values) => ({ name: values.name, role: values.role, ...(values.business ? { business: values.business } : {}) }),
  flags: (values) => [sh`--role ${values.role}`, sh`--name ${values.name}`, values.business && sh`--business ${values.business}`], after: show,
});

/** Signs a browser out. */
export const endSession = (one) => ({
  method: 'DELETE', path: `/v1/sessions/${one.id}`, cli: sh`windrow api DELETE /v1/sessions/${one.id}`, role: 'admin', title: t('Sign out the browser of {name}?', { name: one.name }),
  text: t('It must sign in with a token again.'), verb: t('Sign out'), done: () => t('browser of {name} signed out', { name: one.name }),
});

/** Revokes a token. */
export const revoke = (token) => ({
  method: 'DELETE', path: `/v1/tokens/${token.id}`, cli: sh`windrow token revoke ${token.id}`, role: 'admin', title: t('Revoke the token of {name}?', { name: token.name }),
  text: t('Takes effect at once and cannot be undone.'), verb: t('Revoke'), isDanger: true, typed: token.name, done: () => t('token of {name} revoked', { name: token.name }),
});
