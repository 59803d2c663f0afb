/** @file Sample data for a node, so that no page is empty. */
import { createServer } from 'node:http';
import { until } from './support.js';

const range = (total) => ({ type: 'range', total });
export const LONG = 'a-name-that-is-so-long-that-no-column-holds-it-and-that-somebody-gave-for-reasons';
/** Longest name of a business, a dataset or a limit. */
export const LONGEST = 'a-slug-of-forty-letters-that-is-the-most';

/** Handler that fails some items and returns an output for the others. */
export function handler() {
  const server = createServer((request, reply) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      const index = body.item?.index ?? body.index ?? 0;
      const isBad = index % 7 === 3;
      reply.setHeader('content-type', 'application/json');
      if (isBad) reply.end(JSON.stringify({ result: 'fail', code: index % 2 ? 'NO_USER' : 'BLOCKED', message: `<b>item ${index}</b> is not wanted` }));
      else reply.end(JSON.stringify({ result: 'ok', output: { doubled: index * 2, html: '<img src=x onerror=alert(1)>' } }));
    });
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() })));
}

/** Creates sample data on a node and returns its IDs. */
export async function furnish(node, url, token) {
  const post = (path, body) => node.call('POST', path, body, token);
  await post('/v1/businesses?check=skip', { name: 'push', display_name: 'Push messages', url, defaults: { error_budget: 'none' } });
  await post('/v1/businesses?check=skip', { name: 'gone', url: 'http://127.0.0.1:9/' });
  await post('/v1/limits', { name: 'smtp', rate: '300/s', concurrency: 40 });
  await post('/v1/limits', { name: LONGEST, rate: '300/s' });
  await post('/v1/businesses?check=skip', { name: LONGEST, display_name: LONG, url: `${url}${LONG}/${LONG}`, limits: { named: [LONGEST] } });
  const make = (members) => post('/v1/tasks', { business: 'push', start: true, rate: '200/s', ...members });
  const finished = await make({ name: 'finished', source: range(140), results: 'keep', publish: 'board', publish_if: 'any', labels: { team: 'growth' } });
  const running = await make({ name: LONG, source: range(100_000), rate: '20/s', limits: ['smtp'] });
  const canary = await make({ name: 'with-canary', source: range(5_000), canary: { items: 5 } });
  const down = await post('/v1/tasks', { business: 'gone', name: 'unreachable', start: true, rate: '50/s', source: range(1_000) });
  const created = await make({ name: 'created', source: { type: 'inline', items: [{ user: 'u_1' }, { user: 'u_2' }] }, start: false });
  await make({ business: LONGEST, name: LONG, source: range(5), publish: LONGEST, publish_if: 'any', labels: { [LONGEST.slice(0, 30)]: LONG.slice(0, 60) } });
  await post('/v1/schedules', { business: LONGEST, name: LONGEST, every: '20m', task: { source: range(5) } });
  await post('/v1/alerts', { name: 'ops', url, on: ['stopped', 'failed', 'handler_down'], form: 'slack' });
  await post('/v1/alerts/ops/test', {});
  const schedule = await post('/v1/schedules', { business: 'push', name: 'nightly', every: '20m', task: { source: range(50), rate: '50/s' } });
  await until('the first task is finished', async () => (await node.call('GET', `/v1/tasks/${finished.id}`, undefined, token)).status === 'finished', 120_000);
  await until('the canary is done', async () => (await node.call('GET', `/v1/tasks/${canary.id}`, undefined, token)).status === 'stopped', 120_000);
  const redrive = await post(`/v1/tasks/${finished.id}/redrives`, { filter: { codes: ['NO_USER'] }, rate: '100/s', start: true });
  return { finished: finished.id, running: running.id, canary: canary.id, down: down.id, created: created.id, schedule: schedule.id, redrive: redrive.id };
}

/** Paths of every page by the name of its screenshot. */
export function pages(things, nodeName) {
  const { finished, running, canary, down, created, schedule } = things;
  return {
    overview: '/', tasks: '/tasks', 'tasks-none': '/tasks?status=cancelled', 'new-task': '/tasks/new',
    task: `/tasks/${running}`, 'task-down': `/tasks/${down}`, 'task-canary': `/tasks/${canary}`, 'task-created': `/tasks/${created}`, 'task-finished': `/tasks/${finished}`,
    failures: `/tasks/${finished}/failures`, results: `/tasks/${finished}/results`, 'task-log': `/tasks/${finished}/log`, runs: `/tasks/${finished}/runs`, 'task-settings': `/tasks/${running}/settings`,
    item: `/tasks/${finished}/items/3?from=failures`, 'task-missing': '/tasks/t999999',
    businesses: '/businesses', business: '/businesses/push', 'business-long': `/businesses/${LONGEST}`, register: '/businesses/new', schedules: '/schedules', schedule: `/schedules/${schedule}`,
    datasets: '/datasets', dataset: '/datasets/board', nodes: '/nodes', node: `/nodes/${nodeName}`, limits: '/limits', limit: '/limits/smtp', alerts: '/alerts', alert: '/alerts/ops',
    statistics: '/statistics', 'statistics-tasks': '/statistics?by=task', log: '/log', audit: '/audit', settings: '/settings', guide: '/guide', 'guide-page': '/guide/jobs', 'guide-search': '/guide?q=resume', missing: '/nowhere',
  };
}
