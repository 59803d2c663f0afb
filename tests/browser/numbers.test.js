/** @file Numbers on a task's page are the node's, and correct for tasks that don't run. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, devNode, until, watch } from './support.js';
import { furnish, handler } from './things.js';

let node, chrome, served, things;

before(async () => {
  [node, chrome, served] = await Promise.all([devNode(), browser(), handler()]);
  things = await furnish(node, served.url);
});

after(async () => {
  await chrome?.close();
  served?.close();
  await node?.remove();
});

async function open(path) {
  const page = await (await chrome.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-US' })).newPage();
  page.faults = watch(page, node.url);
  await page.goto(node.url + path);
  await page.waitForSelector('section.head, table');
  return page;
}

const read = (id) => node.call('GET', `/v1/tasks/${id}`);
const make = (members) => node.call('POST', '/v1/tasks', { business: 'push', rate: '200/s', start: true, ...members });
const shows = (page, text) => page.getByText(text).first().waitFor();

test('the plot of a task that is stopped has the rate that it is set to', async () => {
  const page = await open(`/tasks/${things.canary}`);
  const legend = page.getByRole('figure', { name: 'Throughput against target' }).locator('.legend');
  await until('the legend', async () => /target\s*200\/s/.test(await legend.innerText()));
  assert.doesNotMatch(await legend.innerText(), /unlimited/);
  await page.context().close();
});

test('an open task that waits for items is no fault', async () => {
  const { id } = await make({ open: true });
  await until('it waits', async () => (await read(id)).live?.stall === 'items');
  const page = await open(`/tasks/${id}`);
  await shows(page, 'waiting for items');
  await shows(page, 'All added items have been sent.');
  assert.equal(await page.locator('.head .warn, .head .bad, #why .warn, #why .bad').count(), 0);
  await page.context().close();
});

test('a task that never ran says when it starts', async () => {
  const { id } = await make({ source: { type: 'range', total: 5 }, start_at: '2999-01-01T00:00:00Z' });
  const page = await open(`/tasks/${id}`);
  await shows(page.locator('.sentence'), /Starts at 2999-01-01/);
  assert.doesNotMatch(await page.locator('.where').innerText(), /started/);
  await page.context().close();
});

test('a task that was finished early is as far as the node says', async () => {
  const { id } = await make({ source: { type: 'range', total: 100_000 } });
  await until('some are settled', async () => (await read(id)).counts.succeeded > 0);
  await node.call('POST', `/v1/tasks/${id}/finish`, {});
  await until('it is finished', async () => (await read(id)).status === 'finished');
  const { progress } = await read(id);
  const page = await open(`/tasks/${id}`);
  await until('the percentage', async () => (await page.locator('.percent').innerText()) === '100%');
  assert.equal(progress.percent, 100);
  await shows(page, `${progress.settled.toLocaleString('en-US')} of ${progress.of.toLocaleString('en-US')} items`);
  await page.context().close();
});

test('as many runs are counted as are listed', async () => {
  await node.call('POST', `/v1/tasks/${things.canary}/start`, {});
  await until('it runs again', async () => (await read(things.canary)).status !== 'stopped');
  const page = await open(`/tasks/${things.canary}/runs`);
  const section = page.getByRole('region', { name: 'Runs' }).filter({ has: page.locator('table') });
  const rows = section.locator('tbody tr');
  await until('both runs', async () => (await rows.count()) === 2);
  assert.equal(await section.locator('header .aside').innerText(), '2');
  await page.context().close();
});

test('how many items are in flight stands in one place', async () => {
  const page = await open(`/tasks/${things.running}`);
  await page.locator('summary', { hasText: 'In-flight window' }).click();
  await page.locator('.strip-legend .legend').waitFor();
  assert.doesNotMatch(await page.locator('.strip-legend').innerText(), /\d/);
  await page.context().close();
});
