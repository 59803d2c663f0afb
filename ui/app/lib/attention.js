/** @file Causes that need a person, in groups. Retries and recoveries proceed by themselves and are none. Pure. */

/** Queued for longer than this means that no node has free capacity. Seconds. */
const QUEUED_MAX = 30;
/** Maximum wait for a business to report ready before it needs attention. Seconds. */
const AWAITED_MAX = 120;

/** Reasons of stops that somebody requested. */
const CALM_STOPS = ['operator', 'business'];

/** Kinds of causes, most urgent first. */
const KINDS = ['cluster', 'outage', 'stopped', 'schedule', 'queued', 'awaited', 'withheld', 'canary'];

/** Kind of a task's cause, and what it is about: tasks with the same of both are one group. */
function causeOf(task, waited) {
  switch (task.status) {
    case 'running': return task.handler_down ? ['outage', task.business] : null;
    case 'queued': return waited > QUEUED_MAX && !task.start_at ? ['queued', ''] : null;
    case 'awaiting_business': return waited > AWAITED_MAX ? ['awaited', task.business] : null;
    case 'finished': return task.publish?.withheld ? ['withheld', task.publish.dataset] : null;
    case 'stopped':
      if (task.stop_reason === 'canary_done') return ['canary', ''];
      return CALM_STOPS.includes(task.stop_reason) ? null : ['stopped', task.business, task.stop_reason];
    default: return null;
  }
}

/** Datasets with the latest generation that their tasks published. */
function published(tasks) {
  const latest = new Map();
  for (const { status, publish } of tasks) {
    if (status === 'finished' && publish && !publish.withheld) latest.set(publish.dataset, Math.max(publish.generation, latest.get(publish.dataset) ?? 0));
  }
  return latest;
}

/**
 * Groups everything that needs a person by its cause, most urgent first.
 * @param {{tasks: any[], schedules: any[], reasons: {reason: string, text: string}[]}} of reasons: problems of the cluster
 * @param {number} nowMs
 * @returns {{kind: string, about: string, reason?: string, members: any[]}[]} members: tasks (longest waiting first), schedules or reasons
 */
export function causes({ tasks, schedules, reasons }, nowMs) {
  const latest = published(tasks);
  const groups = new Map();
  const add = (member, [kind, about = '', reason]) => {
    const key = [kind, about, reason].join(' ');
    if (!groups.has(key)) groups.set(key, { key, kind, about, reason, members: [] });
    groups.get(key).members.push(member);
  };
  reasons.forEach((one) => add(one, ['cluster']));
  schedules.filter((one) => one.trouble && !one.paused).forEach((one) => add(one, ['schedule']));
  for (const task of [...tasks].sort((a, b) => Date.parse(a.since) - Date.parse(b.since))) {
    const found = causeOf(task, (nowMs - Date.parse(task.since)) / 1000);
    const isReplaced = found?.[0] === 'withheld' && latest.get(found[1]) > task.publish.generation;
    if (found && !isReplaced) add(task, found);
  }
  return [...groups.values()].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}
