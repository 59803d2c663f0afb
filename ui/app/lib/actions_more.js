/** @file What can be done to businesses, nodes, schedules, datasets, limits and tokens. Does nothing itself. */
import { part } from './api.js';
import { t } from './i18n.js';

const verb = (noun, command, name, word) => ({ method: 'POST', path: `/v1/${noun}/${part(name)}/${word}`, cli: `windrow ${command} ${word} ${name}` });

/** Hides a business, or shows it again. */
export const archive = (business) => (business.archived_at
  ? { ...verb('businesses', 'biz', business.name, 'unarchive'), role: 'admin', title: t('Show {name} again?', { name: business.name }), verb: t('Show again'), done: () => t('{name} is shown again', { name: business.name }) }
  : { ...verb('businesses', 'biz', business.name, 'archive'), role: 'admin', title: t('Archive {name}?', { name: business.name }), text: t('It takes no new tasks; those that it has go on.'), verb: t('Archive'), done: () => t('{name} is archived', { name: business.name }) });

/** Gives a business a new signing secret. */
export const rotate = (business, show) => ({
  ...verb('businesses', 'biz', business.name, 'rotate-secret'), role: 'admin', title: t('New signing secret for {name}?', { name: business.name }),
  text: t('It is shown once. The old one stays valid for 24 hours.'), verb: t('Make a new secret'), after: show, done: () => t('{name} has a new secret', { name: business.name }),
});

/** Lets a node hand its work over, or take work again. */
export const drain = (node) => (node.state === 'serving'
  ? { ...verb('nodes', 'node', node.id, 'drain'), role: 'admin', title: t('Drain {name}?', { name: node.id }), text: t('It takes no new work and hands over what it has. Its runs go on elsewhere.'), verb: t('Drain'), done: () => t('{name} drains', { name: node.id }), undo: () => drain({ ...node, state: 'draining' }) }
  : { ...verb('nodes', 'node', node.id, 'undrain'), role: 'admin', title: t('Let {name} take work again?', { name: node.id }), verb: t('Undrain'), done: () => t('{name} takes work again', { name: node.id }) });

/** Changes what a node may hold, until it is restarted. */
export const capacity = (node) => ({
  method: 'PATCH', path: `/v1/nodes/${part(node.id)}`, cli: `windrow node set ${node.id}`, role: 'admin', title: t('Capacity of {name}', { name: node.id }),
  text: t('The sum of the rates of the tasks that it may run. It holds until the node is restarted.'), verb: t('Apply'),
  fields: [{ name: 'rate', label: t('Items per second'), value: node.capacity_rate }],
  body: (values) => ({ capacity_rate: values.rate }), flags: (values) => `--capacity ${values.rate}`, done: (now) => t('{name} may hold {rate}', { name: node.id, rate: now.capacity_rate }),
});

const scheduled = (one, word) => verb('schedules', 'schedule', one.id, word);

/** Pauses a schedule, or lets it go on. */
export const pauseSchedule = (one) => (one.paused
  ? { ...scheduled(one, 'resume'), title: t('Let {name} fire again?', { name: one.name }), text: t('From its next time on; what it missed meanwhile is not made up for.'), verb: t('Resume'), done: () => t('{name} fires again', { name: one.name }), undo: pauseSchedule }
  : { ...scheduled(one, 'pause'), title: t('Pause {name}?', { name: one.name }), text: t('It fires no more by itself. Tasks that run go on.'), verb: t('Pause'), done: () => t('{name} is paused', { name: one.name }), undo: pauseSchedule });

/** Fires a schedule at once. */
export const trigger = (one) => ({ ...scheduled(one, 'trigger'), title: t('Fire {name} now?', { name: one.name }), text: t('One task is made, besides those of its times.'), verb: t('Fire now'), done: () => t('{name} fires', { name: one.name }) });

/** Removes a schedule. */
export const removeSchedule = (one) => ({
  method: 'DELETE', path: `/v1/schedules/${part(one.id)}`, cli: `windrow schedule delete ${one.id}`, title: t('Delete {name}?', { name: one.name }),
  text: t('With what is known of its fires; its tasks stay.'), verb: t('Delete'), isDanger: true, typed: one.name, done: () => t('{id} is gone', { id: one.name }), next: () => '/schedules',
});

/** Makes an earlier generation current again. */
export const rollBack = (dataset, generation) => ({
  method: 'POST', path: `/v1/datasets/${part(dataset)}/rollback`, cli: `windrow dataset rollback ${dataset} ${generation}`, title: t('Make generation {n} of {name} current again?', { n: generation, name: dataset }),
  text: t('Readers see it at once. Generations after it stay where they are.'), verb: t('Roll back'), isDanger: true, body: () => ({ generation }), done: () => t('generation {n} is current', { n: generation }),
});

/** Keeps a generation, or lets it go. */
export const pin = (dataset, one) => {
  const word = one.pinned ? 'unpin' : 'pin';
  return { method: 'POST', path: `/v1/datasets/${part(dataset)}/generations/${one.generation}/${word}`, cli: `windrow dataset ${word} ${dataset} ${one.generation}`,
    title: one.pinned ? t('Let generation {n} go once it is old?', { n: one.generation }) : t('Keep generation {n}, however many come after it?', { n: one.generation }),
    verb: one.pinned ? t('Unpin') : t('Pin'), done: () => (one.pinned ? t('generation {n} is unpinned', { n: one.generation }) : t('generation {n} is pinned', { n: one.generation })) };
};

/** Changes what a limit allows. */
export const setLimit = (limit) => ({
  method: 'PATCH', path: `/v1/limits/${part(limit.name)}`, cli: `windrow limit set ${limit.name}`, role: 'admin', title: t('Change the limit {name}', { name: limit.name }),
  text: t('Tasks under way obey within seconds.'), verb: t('Apply'),
  fields: [{ name: 'rate', label: t('Rate'), value: limit.rate ?? '' }, { name: 'concurrency', label: t('Concurrency'), value: limit.concurrency ?? '' }],
  body: (values) => ({ rate: values.rate.trim() || null, concurrency: values.concurrency === '' ? null : Number(values.concurrency) }),
  flags: (values) => [values.rate && `--rate ${values.rate}`, values.concurrency !== '' && `--concurrency ${values.concurrency}`].filter(Boolean).join(' '),
  done: () => t('{name} is changed', { name: limit.name }),
});

/** Makes a limit. */
export const newLimit = () => ({
  method: 'POST', path: '/v1/limits', cli: 'windrow limit create', role: 'admin', title: t('New limit'), text: t('What all who name it may do together, on all nodes.'), verb: t('Create'),
  fields: [{ name: 'name', label: t('Name'), required: true }, { name: 'rate', label: t('Rate'), hint: '300/s' }, { name: 'concurrency', label: t('Concurrency'), type: 'number' }],
  body: (values) => ({ name: values.name, ...(values.rate ? { rate: values.rate } : {}), ...(values.concurrency ? { concurrency: Number(values.concurrency) } : {}) }),
  flags: (values) => [values.name, values.rate && `--rate ${values.rate}`, values.concurrency && `--concurrency ${values.concurrency}`].filter(Boolean).join(' '),
  done: (now) => t('{name} was made', { name: now.name }),
});

/** Makes a token; the answer holds it, once. */
export const newToken = (show) => ({
  method: 'POST', path: '/v1/tokens', cli: 'windrow token create', role: 'admin', title: t('New token'), verb: t('Create'),
  fields: [
    { name: 'name', label: t('Who will hold it'), required: true },
    { name: 'role', label: t('Role'), value: 'viewer', options: ['viewer', 'operator', 'admin', 'business', 'reader'].map((role) => [role, t(role)]) },
    { name: 'business', label: t('Business (for the roles business and reader)') },
  ],
  body: (values) => ({ name: values.name, role: values.role, ...(values.business ? { business: values.business } : {}) }),
  flags: (values) => [`--role ${values.role}`, `--name ${values.name}`, values.business && `--business ${values.business}`].filter(Boolean).join(' '), after: show,
});

/** Signs a browser out. */
export const endSession = (one) => ({
  method: 'DELETE', path: `/v1/sessions/${one.id}`, cli: `windrow api DELETE /v1/sessions/${one.id}`, role: 'admin', title: t('Sign the browser of {name} out?', { name: one.name }),
  text: t('It has to give a token again.'), verb: t('Sign out'), done: () => t('the browser of {name} is signed out', { name: one.name }),
});

/** Takes a token's validity away. */
export const revoke = (token) => ({
  method: 'DELETE', path: `/v1/tokens/${token.id}`, cli: `windrow token revoke ${token.id}`, role: 'admin', title: t('Revoke the token of {name}?', { name: token.name }),
  text: t('At once and for good.'), verb: t('Revoke'), isDanger: true, typed: token.name, done: () => t('the token of {name} is revoked', { name: token.name }),
});
