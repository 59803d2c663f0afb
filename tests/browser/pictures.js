/** @file Pictures of the documentation: pages of a busy node as WebP in docs/pictures. Run by scripts/test-ui.sh --pictures. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { browser, devNode, ROOT, sleep, until } from './support.js';

const PLACE = join(ROOT, 'docs/pictures');
const SIZE = { width: 1200, height: 780 };
/** Maximum size of a picture. Unit: bytes. */
const BYTES_MAX = 60 * 1024;

/** Realistic handler: mostly quick, sometimes slow, with a few unreachable users. */
function handler() {
  const server = createServer((request, reply) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const index = JSON.parse(Buffer.concat(chunks).toString() || '{}').item?.index ?? 0;
      const answer = index % 29 === 7
        ? { result: 'fail', ...(index % 2 ? { code: 'NO_USER', message: 'nobody has this number any more' } : { code: 'BLOCKED', message: 'the user wants no messages' }) }
        : { result: 'ok', output: { message: `m-${index}` } };
      setTimeout(() => {
        reply.setHeader('content-type', 'application/json');
        reply.end(JSON.stringify(answer));
      }, index % 23 ? 150 + ((index * 37) % 400) : 3000);
    });
  });
  server.keepAliveTimeout = 600_000;
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() })));
}

async function take(page, name) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  const bytes = Buffer.from(data, 'base64');
  assert.ok(bytes.length <= BYTES_MAX, `${name}: ${bytes.length} bytes`);
  writeFileSync(join(PLACE, `${name}.webp`), bytes);
}

async function furnish(node, url) {
  const post = (path, body) => node.call('POST', path, body);
  await post('/v1/businesses?check=skip', { name: 'push', display_name: 'Push messages', url });
  await post('/v1/businesses?check=skip', { name: 'billing', display_name: 'Invoices', url: 'http://127.0.0.1:9/' });
  await post('/v1/limits', { name: 'smtp', rate: '300/s', concurrency: 40 });
  const make = (members) => post('/v1/tasks', { business: 'push', start: true, error_budget: 'none', ...members });
  const source = (total) => ({ type: 'range', total });
  const done = await make({ name: 'newsletter', source: source(140), rate: '100/s', results: 'keep', publish: 'board', publish_if: 'any', labels: { team: 'growth' } });
  const running = await make({ name: 'price-drop', source: source(20_000), rate: '15/s', limits: ['smtp'] });
  await make({ name: 'welcome', source: source(5_000), rate: '50/s', canary: { items: 5 } });
  await make({ business: 'billing', name: 'invoices-november', source: source(1_000), rate: '50/s' });
  const schedule = await post('/v1/schedules', { business: 'push', name: 'digest', cron: '0 7,12,18 * * *', zone: 'Europe/Berlin', task: { source: source(500), rate: '50/s' } });
  await until('the first one is finished', async () => (await node.call('GET', `/v1/tasks/${done.id}`)).status === 'finished', 120_000);
  await post(`/v1/tasks/${done.id}/redrives`, { filter: { codes: ['NO_USER'] }, rate: '100/s', start: true });
  return { done: done.id, running: running.id, schedule: schedule.id };
}

test('the pictures of the documentation', async () => {
  mkdirSync(PLACE, { recursive: true });
  const [node, chrome, served] = await Promise.all([devNode(), browser(), handler()]);
  try {
    const { done, running, schedule } = await furnish(node, served.url);
    // Until the plots have data.
    await sleep(Number(process.env.WINDROW_PICTURES_AFTER_MS ?? 90_000));
    const tour = {
      task: `/tasks/${running}`, overview: '/', tasks: '/tasks', failures: `/tasks/${done}/failures`, 'new-task': '/tasks/new?business=push',
      schedule: `/schedules/${schedule}`, dataset: '/datasets/board', node: '/nodes/dev', statistics: '/statistics',
    };
    for (const colorScheme of ['light', 'dark']) {
      const context = await chrome.newContext({ viewport: SIZE, colorScheme, locale: 'en-US', timezoneId: 'Europe/Berlin' });
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      for (const [name, path] of Object.entries(tour)) {
        if (colorScheme === 'dark' && name !== 'task') continue;
        await page.goto(node.url + path);
        await page.waitForSelector('h1');
        await page.waitForFunction(() => !document.querySelector('.loading'));
        await sleep(name === 'task' ? 8000 : 2000);
        await take(page, colorScheme === 'dark' ? `${name}-dark` : name);
      }
      await context.close();
    }
  } finally {
    await chrome.close();
    served.close();
    await node.remove();
  }
});
