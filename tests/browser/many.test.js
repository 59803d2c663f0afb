/** @file Tasks with very many failures and results: pages of them load quickly and are released. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { Node, browser, serve, shot, until, watch } from './support.js';

/** Number of items. WINDROW_UI_MANY=1000000 takes some minutes to run. */
const MANY = Number(process.env.WINDROW_UI_MANY ?? 60_000);
/** Maximum number of rows per page. */
const ROWS_MAX = 50;
/** Maximum time from a click to its rows. Unit: milliseconds. */
const WITHIN_MS = Number(process.env.WINDROW_BUDGETS ? 1000 : 5000);
const PAGES = 30;
/** Allowed heap growth after these pages: browsers keep some requests and code. Unit: bytes. */
const GROWTH_MAX = 1024 * 1024;

let node, chrome, served, failures, results;

/** Handler for batches in which all items fail, or all have an output. */
function handler() {
  const verdict = (fails) => ({ index }) => (fails
    ? { index, result: 'fail', code: `CODE_${index % 3}`, message: `item ${index} is not wanted` }
    : { index, result: 'ok', output: { doubled: index * 2, note: 'x'.repeat(40) } });
  const server = createServer((request, reply) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString());
      reply.setHeader('content-type', 'application/json');
      reply.end(JSON.stringify({ results: (body.items ?? [body.item]).map(verdict(body.task.name === 'failures')) }));
    });
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

async function made(name, more) {
  const settings = { batch: 1000, rate: 'unlimited', window: 100_000, concurrency: 8000 };
  const { id } = await node.call('POST', '/v1/tasks', { business: 'push', name, source: { type: 'range', total: MANY }, start: true, ...settings, ...more });
  await until(`${name} are made`, async () => (await node.call('GET', `/v1/tasks/${id}`)).status === 'finished', 1_500_000);
  return id;
}

before(async () => {
  [node, chrome, served] = await Promise.all([
    new Node(serve, { WINDROW_AUTH__MODE: 'off', WINDROW_NODE__ALLOW_UNLIMITED: 'true' }).start(), browser(), handler(),
  ]);
  await node.call('POST', '/v1/businesses?check=skip', { name: 'push', url: `http://127.0.0.1:${served.address().port}/`, defaults: { error_budget: 'none' } });
  failures = await made('failures', {});
  results = await made('results', { results: 'keep' });
});

after(async () => {
  await chrome?.close();
  served?.closeAllConnections();
  served?.close();
  await node?.remove();
});

async function open(path) {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.faults = watch(page, node.url);
  const session = await context.newCDPSession(page);
  await session.send('HeapProfiler.enable');
  const begun = Date.now();
  await page.goto(node.url + path);
  return { page, session, begun, context };
}

async function held(session) {
  for (let round = 0; round < 3; round += 1) await session.send('HeapProfiler.collectGarbage');
  return (await session.send('Runtime.getHeapUsage')).usedSize;
}

const first = (rows) => rows.first().locator('a').first().innerText({ timeout: 2000 }).catch(() => '');

/** Browses page by page; returns the first item of each page and the slowest time. */
async function goThrough(page, rows, pages) {
  const begins = [await first(rows)];
  let slowest = 0;
  for (let count = 0; count < pages; count += 1) {
    const begun = Date.now();
    await page.getByRole('button', { name: 'next ›' }).click();
    await until('the next page', async () => ![begins.at(-1), ''].includes(await first(rows)));
    slowest = Math.max(slowest, Date.now() - begun);
    assert.ok((await rows.count()) <= ROWS_MAX);
    begins.push(await first(rows));
  }
  return { begins, slowest };
}

async function paged(path, table, prepare) {
  const { page, session, begun, context } = await open(path);
  await prepare?.(page);
  const rows = page.getByRole('table', { name: table }).locator('tbody tr');
  await rows.first().waitFor();
  const opened = Date.now() - begun;
  assert.equal(await rows.count(), ROWS_MAX);
  await goThrough(page, rows, 10);
  const before = await held(session);
  const { begins, slowest } = await goThrough(page, rows, PAGES);
  const after = await held(session);
  console.log(`${path}: first page after ${opened} ms, slowest of ${PAGES} ${slowest} ms, heap ${before} then ${after}`);
  assert.equal(new Set(begins).size, PAGES + 1, 'each page is another one');
  assert.ok(opened <= 2 * WITHIN_MS && slowest <= WITHIN_MS, `${opened} ms, then ${slowest} ms`);
  assert.ok(after - before < GROWTH_MAX, `the heap grew by ${after - before} bytes`);
  assert.deepEqual(page.faults, []);
  await shot(page, `many-${table.split(' ')[0].toLowerCase()}-light`);
  return { page, rows, context };
}

test('failures are browsed code by code and page by page, whatever their number', async () => {
  const { context } = await paged(`/tasks/${failures}/failures`, 'Items failed with CODE_1', async (page) => {
    await page.getByRole('button', { name: 'CODE_1', exact: true }).click();
  });
  await context.close();
});

test('results are browsed page by page, and from any item on', async () => {
  const { page, rows, context } = await paged(`/tasks/${results}/results`, 'Results');
  const from = page.getByLabel('from item');
  await from.fill(String(MANY - 10));
  const begun = Date.now();
  await from.press('Enter');
  await until('the last ones', async () => (await rows.count()) === 10);
  assert.ok(Date.now() - begun <= WITHIN_MS);
  assert.equal(await page.getByRole('button', { name: 'next ›' }).count(), 0);
  await context.close();
});

test('the log and the runs of such a task are pages too', async () => {
  const { page, context } = await open(`/tasks/${failures}/log`);
  await page.getByRole('table', { name: 'Data log' }).locator('tbody tr').first().waitFor();
  assert.ok((await page.locator('tbody tr').count()) <= 100);
  await page.goto(`${node.url}/tasks/${failures}/runs`);
  await page.getByRole('table', { name: 'Runs' }).locator('tbody tr').first().waitFor();
  assert.ok((await page.locator('tbody tr').count()) <= 100);
  await context.close();
});
