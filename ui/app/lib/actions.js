/** @file Actions on a task: request, equivalent command, texts and undo. No side effects. */
import { part } from './api.js';
import { count } from './format.js';
import { t } from './i18n.js';
import { flag, sh } from './command.js';

const taskPath = (task, verb) => `/v1/tasks/${part(task.id)}${verb ? `/${verb}` : ''}`;
const called = (task) => (task.name ? `${task.id} ${task.business}/${task.name}` : `${task.id} ${task.business}`);
const post = (task, verb) => ({ method: 'POST', path: taskPath(task, verb), cli: sh`windrow task ${verb} ${task.id}` });

/** Starts or resumes a task. */
export const start = (task) => ({
  ...post(task, 'start'),
  title: t('Start {task}?', { task: called(task) }),
  text: task.stop_reason === 'canary_done' ? t('The canary is done. The remaining items follow.') : undefined,
  verb: task.status === 'stopped' ? t('Resume') : t('Start'),
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
  undo: stop,
});

/** Stops a task after the calls in flight finish. */
export const stop = (task) => ({
  ...post(task, 'stop'),
  title: t('Stop {task}?', { task: called(task) }),
  text: t('No new calls are sent. Calls in flight finish, progress is saved, and a later start resumes from there.'),
  verb: t('Stop'),
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
  undo: start,
});

/** Stops a task without waiting for calls in flight. */
export const stopNow = (task) => ({
  ...post(task, 'stop'),
  cli: sh`windrow task stop ${task.id} --now`,
  title: t('Stop {task} now?', { task: called(task) }),
  text: t('{n:call|calls} in flight will be aborted; their items may be handled again later.', { n: count(task.counts.in_flight) }),
  verb: t('Stop now'),
  isDanger: true,
  body: () => ({ now: true }),
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
});

/** Cancels a task permanently. */
export const cancel = (task) => ({
  ...post(task, 'cancel'),
  title: t('Cancel {task} permanently?', { task: called(task) }),
  text: t('It can never be started again. {n:item|items} will not be processed.', { n: count(task.counts.pending + task.counts.parked) }),
  verb: t('Cancel task'),
  isDanger: true,
  typed: task.id,
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
});

/** Finishes a task early, with the items dispatched so far. */
export const finish = (task) => ({
  ...post(task, 'finish'),
  title: t('Finish {task} early?', { task: called(task) }),
  text: t('Items not sent yet are excluded; the task counts as finished.'),
  verb: t('Finish early'),
  isDanger: true,
  typed: task.id,
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
});

/** Retries a recovering task at once. */
export const recover = (task) => ({
  ...post(task, 'recover'),
  title: t('Retry {task} now?', { task: called(task) }),
  text: t('The task is retried at once, without the remaining wait.'),
  verb: t('Retry now'),
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
});

/** Seals an open task: no more items can be appended. */
export const seal = (task) => ({
  ...post(task, 'seal'),
  title: t('Seal {task}?', { task: called(task) }),
  text: t('No more items can be appended. The task finishes when its items are settled.'),
  verb: t('Seal'),
  done: (now) => t('{id} is sealed', { id: now.id }),
});

/** Deletes a task that has ended. */
export const remove = (task) => ({
  method: 'DELETE',
  path: taskPath(task),
  cli: sh`windrow task delete ${task.id}`,
  title: t('Delete {task}?', { task: called(task) }),
  text: t('Its failures, log and results are deleted too. This cannot be undone.'),
  verb: t('Delete'),
  isDanger: true,
  typed: task.id,
  noReason: true,
  isForStaff: true,
  done: () => t('{id} deleted', { id: task.id }),
  next: () => '/tasks',
});

/** Moves a running task to another node. */
export const move = (task, nodes) => ({
  ...post(task, 'move'),
  title: t('Move {task}', { task: called(task) }),
  text: t('Its run stops cleanly here and resumes on the other node.'),
  verb: t('Move'),
  isForStaff: true,
  fields: [{ name: 'to', label: t('Target node'), value: nodes[0], options: nodes.map((node) => [node, node]) }],
  body: (values) => ({ to: values.to }),
  flags: (values) => sh`--to ${values.to}`,
  done: (now) => t('{id} is {status}', { id: now.id, status: t(now.status) }),
});

/** Clones a task. */
export const clone = (task) => ({
  ...post(task, 'clone'),
  title: t('Clone {task}', { task: called(task) }),
  text: t('Creates a task with the same items and settings, a new ID and new item keys.'),
  verb: t('Clone'),
  fields: [
    { name: 'name', label: t('Name (optional)'), value: '' },
    { name: 'start', label: t('Start immediately'), type: 'checkbox', value: false },
  ],
  body: (values) => ({ ...(values.name ? { name: values.name } : {}), ...(values.start ? { start: true } : {}) }),
  flags: (values) => [values.name && sh`--name ${values.name}`, values.start && sh`--start`],
  done: (now) => t('{id} created', { id: now.id }),
  next: (now) => `/tasks/${now.id}`,
});

const FLAGS = { timeout: 'call-timeout' };

/** Changes settings of a task; undo restores the previous values. */
export function change(task, members, words) {
  const flags = Object.entries(members).map(([name, value]) => flag(FLAGS[name] ?? name, value));
  const before = Object.fromEntries(Object.keys(members).map((name) => [name, task[name]]));
  return {
    method: 'PATCH',
    path: taskPath(task),
    cli: sh`windrow task set ${task.id} ${flags}`,
    title: words?.title ?? t('Change {task}?', { task: called(task) }),
    text: words?.text ?? Object.entries(members).map(([name, value]) => `${name}: ${task[name] ?? '–'} → ${value}`).join(', '),
    verb: words?.verb ?? t('Apply'),
    body: () => members,
    done: () => t('{id}: {changes}', { id: task.id, changes: Object.entries(members).map(([name, value]) => `${name} ${value}`).join(', ') }),
    undo: words?.isUndo ? undefined : (now) => change(now, before, { isUndo: true }),
  };
}

/** Adds a label to a task and keeps the others. */
function label(task, name, value) {
  const before = task.labels ?? {};
  const set = (labels) => ({ method: 'PATCH', path: taskPath(task), body: () => ({ labels }), cli: sh`windrow task set ${task.id} --label ${`${name}=${value}`}` });
  return { ...set({ ...before, [name]: value }), undo: () => set(before) };
}

/** One dialog for several tasks. */
const several = (tasks, title, verb, each, more = {}) => ({
  title, verb, each: (values) => tasks.map((task) => each(task, values)), text: tasks.map((task) => task.id).join(', '), ...more,
});

/** Starts several tasks. */
export const startAll = (tasks, after) => several(tasks, t('Start {n:task|tasks}?', { n: tasks.length }), t('Start'), start, { after });

/** Stops several tasks. */
export const stopAll = (tasks, after) => several(tasks, t('Stop {n:task|tasks}?', { n: tasks.length }), t('Stop'), stop, { after });

/** Sets one rate on several tasks. */
export const rateAll = (tasks, after) => several(tasks, t('Set the rate of {n:task|tasks}', { n: tasks.length }), t('Apply'), (task, values) => change(task, { rate: values.rate }), {
  after, fields: [{ name: 'rate', label: t('Rate'), value: tasks[0].rate, required: true, hint: t('500/s, 30/m, unlimited, or auto (found by the autopilot)') }],
});

/** Adds one label to several tasks. */
export const labelAll = (tasks, after) => several(tasks, t('Add a label to {n:task|tasks}', { n: tasks.length }), t('Apply'), (task, values) => label(task, values.name.trim(), values.value.trim()), {
  after, fields: [{ name: 'name', label: t('Label'), required: true, hint: 'team' }, { name: 'value', label: t('Value'), hint: 'growth' }],
});

/** Redrives failed items as a separate task. */
export function redrive(task, filter, number) {
  const isAll = !Object.keys(filter).length;
  const chosen = isAll ? sh`--all` : filter.codes ? sh`--code ${filter.codes.join(',')}` : filter.indexes ? sh`--indexes ${filter.indexes}` : sh`--unconfirmed`;
  return {
    ...post(task, 'redrives'),
    cli: sh`windrow task redrive ${task.id} ${chosen}`,
    title: t('Redrive {n:item|items} of {id}', { n: count(number), id: task.id }),
    text: t('Creates a separate task for these items. Handlers see the same indexes and, by default, the same item keys.'),
    verb: t('Create and start'),
    typed: isAll ? task.id : undefined,
    fields: [
      { name: 'rate', label: t('Rate'), value: task.rate, hint: t('500/s, 30/m, unlimited, or auto (found by the autopilot)') },
      { name: 'canary', label: t('Canary items'), value: '', hint: t('pauses for review after this many items; leave empty for no canary') },
      { name: 'new_keys', label: t('New item keys (the business treats them as new items)'), type: 'checkbox', value: false },
    ],
    body: (values) => ({
      ...(isAll ? {} : { filter }),
      rate: values.rate,
      start: true,
      if_empty: 'error', // So that the dialog shows why there is no new task.
      ...(values.canary ? { canary: { items: Number(values.canary), then: 'stop' } } : {}),
      ...(values.new_keys ? { new_keys: true } : {}),
    }),
    flags: (values) => [sh`--rate ${values.rate} --start`, values.canary && sh`--canary ${values.canary}`, values.new_keys && sh`--new-keys`],
    done: (now) => t('{id} created', { id: now.id }),
    next: (now) => `/tasks/${now.id}`,
  };
}

/** Sends one settled item again as a separate task. */
export const replay = (task, index) => ({
  ...post(task, 'replays'),
  cli: sh`windrow task replay ${task.id} --index ${index}`,
  title: t('Send item {index} of {id} again', { index: count(index), id: task.id }),
  text: t('Creates a separate task for this item. This task keeps its result.'),
  verb: t('Create and start'),
  fields: [{ name: 'same_keys', label: t('Same item key (the business may do nothing)'), type: 'checkbox', value: false }],
  body: (values) => ({ indexes: String(index), start: true, ...(values.same_keys ? { same_keys: true } : {}) }),
  flags: (values) => [values.same_keys && sh`--same-key`],
  done: (now) => t('{id} created', { id: now.id }),
  next: (now) => `/tasks/${now.id}`,
});

/** Fails the items that are retrying with a code. */
export const fail = (task, code, number) => ({
  ...post(task, 'fail'),
  cli: sh`windrow task fail ${task.id} --code ${code}`,
  title: t('Fail the items of {id} that are retrying with {code}?', { id: task.id, code }),
  text: number ? t('{n:item|items} will be marked failed. A redrive can run them again.', { n: count(number) }) : t('They will be marked failed. A redrive can run them again.'),
  verb: t('Mark failed'),
  isDanger: true,
  body: () => ({ code }),
  done: () => t('{id}: items with {code} marked failed', { id: task.id, code }),
});
