/** @file What needs a person and how it is reached: causes, one strip, registration, previews, help, silent nodes. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { axe, browser, devNode, overflow, shot, until, watch } from './support.js';
import { furnish, handler } from './things.js';

let node, chrome, served, things, page;

before(async () => {
  [node, chrome, served] = await Promise.all([devNode(), browser(), handler()]);
  things = await furnish(node, served.url);
  page = await (await chrome.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US' })).newPage();
  page.faults = watch(page, node.url);
});

after(async () => {
  await chrome?.close();
  served?.close();
  await node?.remove();
});

const open = async (path) => {
  await page.goto(node.url + path);
  await page.waitForSelector('h1');
};
const read = (path) => node.call('GET', path);
const make = (members) => node.call('POST', '/v1/tasks', { business: 'push', rate: '200/s', start: true, ...members });
const range = (total) => ({ type: 'range', total });

/** Server that records the calls of a request and echoes its body. */
async function echo() {
  const calls = [];
  const server = createServer((request, reply) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
      const body = Buffer.concat(chunks).toString();
      calls.push({ path: request.url, method: request.method, authorization: request.headers.authorization, body });
      reply.setHeader('content-type', 'application/json').end(body || '{}');
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { calls, url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

test('the overview has figures, the plot, then the causes; what retries by itself is none', async () => {
  const second = await make({ name: 'second-canary', source: range(500), canary: { items: 5 } });
  await until('its canary is done', async () => (await read(`/v1/tasks/${second.id}`)).status === 'stopped');
  await open('/');
  const rows = page.locator('.needs li');
  await rows.filter({ hasText: 'gone: handler down' }).waitFor();
  const canaries = rows.filter({ hasText: 'Canary done' });
  await canaries.getByRole('link', { name: things.canary }).waitFor();
  await canaries.getByRole('link', { name: second.id }).waitFor();
  assert.ok((await rows.count()) <= 5);
  assert.equal(await rows.filter({ hasText: things.finished }).count(), 0, 'failed items that are done need nobody');
  const tops = await page.evaluate(() => ['.figures', '.plot', '.needs'].map((one) => document.querySelector(one).getBoundingClientRect().top));
  assert.deepEqual(tops, [...tops].sort((a, b) => a - b));
  await canaries.getByRole('button', { name: 'Resume 2' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Start' }).click();
  await until('both run', async () => (await Promise.all([things.canary, second.id].map((id) => read(`/v1/tasks/${id}`)))).every((one) => one.status !== 'stopped'));
  await canaries.waitFor({ state: 'detached' });
});

test('all shards share one strip, which is folded while nearly empty and works by keyboard', async () => {
  await open(`/tasks/${things.running}`);
  const strip = page.getByRole('slider');
  await page.locator('summary', { hasText: /\d+ items? in it/ }).waitFor();
  assert.equal(await strip.count(), 0);
  const shard = (number, watermark) => ({ shard: number, node: 'dev', watermark, high_water: watermark + 4, capacity: 4, items_per_cell: 1, head: null, cells: 'F2R1F1' });
  await page.route('**/v1/tasks/*/window*', (route) => route.fulfill({ json: { shards: [shard(0, 10), shard(1, 700)], reason: null, unreachable: [] } }));
  await strip.waitFor();
  assert.equal(await strip.count(), 1);
  assert.match(await strip.getAttribute('aria-label'), /6 in flight, 2 retrying/);
  await strip.focus();
  assert.equal(await strip.getAttribute('aria-valuetext'), '#10 · in flight · shard 0');
  await page.keyboard.press('End');
  assert.equal(await strip.getAttribute('aria-valuetext'), '#703 · in flight · shard 1');
  for (let times = 0; times < 3; times += 1) await page.keyboard.press('ArrowLeft');
  assert.equal(await strip.getAttribute('aria-valuetext'), '#700 · in flight · shard 1');
  await page.keyboard.press('ArrowLeft');
  assert.equal(await strip.getAttribute('aria-valuetext'), '#13 · in flight · shard 0', 'the blank cell is passed over');
  await shot(page, 'strip-light');
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/tasks/${things.running}/items/13`);
  await page.unroute('**/v1/tasks/*/window*');
});

test('an item shows its key, its request and its last attempts', async () => {
  const item = await read(`/v1/tasks/${things.finished}/items/3`);
  await open(`/tasks/${things.finished}/items/3?from=failures`);
  const drawer = page.locator('dialog.is-drawer');
  await drawer.getByText(item.key, { exact: true }).waitFor();
  await drawer.getByText(item.trace_id, { exact: true }).waitFor();
  await drawer.getByRole('heading', { name: 'Request' }).waitFor();
  await drawer.getByRole('table', { name: 'Failed attempts' }).waitFor();
});

test('an API is registered with a secret and hooks, and called once', async () => {
  const api = await echo();
  await open('/businesses/new');
  await page.getByLabel('Name', { exact: true }).fill('orders');
  await page.getByLabel('Request to any API').check();
  await page.getByLabel('Method and URL').fill(`POST ${api.url}/orders/{id}`);
  await page.getByLabel(/^JSON body/).fill('{"amount": {amount:number}}');
  await page.getByLabel(/^Headers/).fill('authorization: Bearer {secret.KEY}');
  await page.getByLabel(/^Secrets/).fill('KEY=very-secret');
  await page.locator('summary', { hasText: 'Hooks' }).click();
  await page.getByLabel('finishes', { exact: true }).check();
  await page.getByLabel('Hook URL').fill(`${api.url}/hook`);
  await page.getByLabel('Check the contract before saving').uncheck();
  assert.equal(await overflow(page), null);
  assert.deepEqual(await axe(page), []);
  await shot(page, 'register-request-light', { fullPage: true });
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByRole('heading', { name: 'orders is registered' }).waitFor();
  const { request, request_secrets: secrets, hooks } = await read('/v1/businesses/orders');
  assert.deepEqual([request.headers, secrets, hooks.finished.url], [{ authorization: 'Bearer {secret.KEY}' }, { KEY: '***' }, `${api.url}/hook`]);
  const trial = page.getByRole('region', { name: 'Test call' });
  await trial.getByLabel(/^Data \(JSON/).fill('{"id": "o_7", "amount": 3}');
  await trial.getByRole('button', { name: 'Send test call' }).click();
  await trial.getByRole('status').getByText('succeeded').waitFor();
  assert.deepEqual(api.calls.map((one) => [one.method, one.path, one.authorization, JSON.parse(one.body)]), [['POST', '/orders/o_7', 'Bearer very-secret', { amount: 3 }]]);
  api.close();
});

test('a new task previews its first three items before it is created', async () => {
  const number = (await read('/v1/tasks')).items.length;
  await open('/tasks/new?business=push');
  await page.locator('option', { hasText: /^push$/ }).waitFor({ state: 'attached' });
  const preview = page.getByRole('button', { name: 'Preview 3 items' });
  assert.ok(await preview.isDisabled(), 'there is no file yet');
  await page.locator('input[type=file]').setInputFiles({ name: 'users.csv', mimeType: 'text/csv', buffer: Buffer.from('user_id\nu_1\nu_2\nu_3\nu_4\n') });
  await preview.click();
  const rows = page.getByRole('table', { name: 'Preview' }).locator('tbody tr');
  await until('three replies', async () => (await rows.count()) === 3);
  assert.match(await rows.nth(2).innerText(), /#2\s+succeeded/);
  assert.match(await rows.nth(2).innerText(), /"doubled":4/);
  assert.equal((await read('/v1/tasks')).items.length, number);
});

test('a schedule shows the outcome of its latest fire', async () => {
  await node.call('POST', `/v1/schedules/${things.schedule}/trigger`, {});
  const task = await until('its task', async () => (await read(`/v1/schedules/${things.schedule}`)).last_fire?.task);
  await open('/schedules');
  const row = page.getByRole('row', { name: /nightly/ });
  await row.getByText('task created').waitFor();
  await row.getByRole('link', { name: task, exact: true }).click();
  await page.waitForURL(`**/tasks/${task}`);
});

test('single keys are switched off, and on again', async () => {
  await open('/settings');
  await page.getByLabel('Single-key shortcuts').uncheck();
  await page.locator('h1').press('c');
  await page.locator('h1').press('?');
  await page.getByRole('button', { name: 'Help' }).click();
  const help = page.getByRole('dialog', { name: 'Help' });
  await help.getByText('retrying outside the window').waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, 'help-light');
  assert.equal(new URL(page.url()).pathname, '/settings');
  await help.getByLabel('Single-key shortcuts').check();
  await page.keyboard.press('Escape');
  await page.locator('h1').press('c');
  await page.waitForURL('**/tasks/new');
});

test('a page without a stream says too that its data are old, and continues', async () => {
  await open('/limits');
  await page.getByRole('link', { name: 'smtp' }).waitFor();
  await node.stop('SIGKILL');
  const bar = page.locator('.stale');
  await bar.getByText('Disconnected').waitFor({ timeout: 30_000 });
  assert.equal(await page.locator('main > table').evaluate((one) => getComputedStyle(one).filter), 'grayscale(1)');
  assert.deepEqual(await axe(page), []);
  await shot(page, 'stale-light');
  await node.start();
  await bar.waitFor({ state: 'detached', timeout: 30_000 });
  assert.deepEqual(page.faults.filter((fault) => !/net::ERR|status of/.test(fault)), []);
});
