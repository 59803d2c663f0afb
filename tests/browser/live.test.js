/** @file The dashboard in use: watching, steering, the keyboard, a lost node, the strip's pixels. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, devNode, shot, until, watch } from './support.js';
import { furnish, handler } from './things.js';

const SIZE = { viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US' };

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
  const context = await chrome.newContext(SIZE);
  const page = await context.newPage();
  page.faults = watch(page, node.url);
  await page.goto(node.url + path);
  await page.waitForSelector('h1');
  return page;
}

const status = async (id) => (await node.call('GET', `/v1/tasks/${id}`)).status;

/** Mocks the window of a task. */
async function withWindow(page, shard, move = 0) {
  let moved = 0;
  await page.route('**/v1/tasks/*/window*', (route) => {
    moved += move;
    const { watermark: low, high_water: high } = shard;
    const now = { shard: 0, node: 'dev', items_per_cell: 1, head: null, ...shard, watermark: low + moved, high_water: high + moved };
    return route.fulfill({ json: { shards: [now], reason: null, unreachable: [] } });
  });
}

test('the strip paints each state in its colour', async () => {
  const page = await open('/settings');
  await withWindow(page, { watermark: 100, high_water: 106, capacity: 6, cells: 'S1F1R1A1K1S1' });
  await page.goto(`${node.url}/tasks/${things.running}`);
  const canvas = page.locator('canvas.cells');
  await canvas.waitFor();
  await until('it is painted', () => canvas.evaluate((one) => one.dataset.drawMs));
  const found = await canvas.evaluate((one) => {
    const context = one.getContext('2d');
    const at = (x, y) => [...context.getImageData(x, y, 1, 1).data.subarray(0, 3)];
    return { edges: [1, 2, 3, 4].map((cell) => at(cell * 10 + 1, 4)), middles: [1, 4].map((cell) => at(cell * 10 + 4, 4)), settled: at(54, 4), beyond: at(84, 4) };
  });
  const colour = (name) => page.evaluate((variable) => {
    const probe = document.createElement('i');
    probe.style.color = `var(--${variable})`;
    document.body.append(probe);
    const numbers = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    return numbers;
  }, name);
  assert.deepEqual(found.edges, await Promise.all(['run-fill', 'warn-fill', 'bad-fill', 'park-fill'].map(colour)));
  assert.deepEqual(found.middles, await Promise.all(['bg', 'bg'].map(colour)));
  assert.deepEqual([found.settled, found.beyond], await Promise.all(['ok-fill', 'bg'].map(colour)));
  assert.match(await canvas.getAttribute('aria-label'), /2 settled, 1 in flight, 1 parked, 1 retrying, 1 failed/);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a strip of 20,000 cells is painted within a frame', async () => {
  const page = await open('/settings');
  await withWindow(page, { watermark: 0, high_water: 20_000, capacity: 20_000, cells: 'S1F1R1A1K1'.repeat(4_000) }, 1);
  await page.goto(`${node.url}/tasks/${things.running}`);
  const canvas = page.locator('canvas.cells');
  await canvas.waitFor();
  const times = await canvas.evaluate((one) => new Promise((done) => {
    const seen = [];
    new MutationObserver(() => seen.push(Number(one.dataset.drawMs)) >= 7 && done(seen)).observe(one, { attributeFilter: ['data-draw-ms'] });
  }));
  const median = times.sort((a, b) => a - b)[3];
  console.log(`20,000 cells: ${median} ms, the median of 7`);
  // The budget is 8 ms on an idle machine.
  assert.ok(median <= (process.env.WINDROW_BUDGETS ? 8 : 80), `${times} ms`);
  await page.context().close();
});

test('numbers move by themselves, and add up', async () => {
  const page = await open(`/tasks/${things.running}`);
  const number = async (term) => Number((await page.locator('.sum li', { hasText: term }).locator('b').innerText()).replaceAll(',', ''));
  const first = await number('succeeded');
  await until('more succeeded', async () => (await number('succeeded')) > first);
  const terms = await page.evaluate(() => [...document.querySelectorAll('.sum b')].map((one) => Number(one.textContent.replaceAll(',', ''))));
  assert.equal(terms.reduce((sum, one) => sum + one, 0), 100_000);
  assert.equal(await page.locator('.chip').getAttribute('data-state'), 'live');
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('the rate is changed with a reason, and taken back', async () => {
  const page = await open(`/tasks/${things.running}`);
  const rate = async () => (await node.call('GET', `/v1/tasks/${things.running}`)).rate;
  await page.getByLabel('Rate', { exact: true }).fill('30/s');
  await page.getByRole('button', { name: 'Apply' }).first().click();
  await page.getByLabel(/^Reason/).fill('evening peak');
  await shot(page, 'dialog-light');
  await page.locator('dialog').getByRole('button', { name: 'Apply' }).click();
  await until('the rate is new', async () => (await rate()) === '30/s');
  const { items } = await node.call('GET', `/v1/tasks/${things.running}/revisions`);
  assert.deepEqual([items[0].reason, items[0].source], ['evening peak', 'ui']);
  await page.getByRole('button', { name: 'Undo' }).click();
  await until('the rate is as it was', async () => (await rate()) === '20/s');
  await page.context().close();
});

test('what is refused is explained, and can be mended', async () => {
  const page = await open(`/tasks/${things.running}`);
  await page.getByLabel('Rate', { exact: true }).fill('quick');
  await page.getByRole('button', { name: 'Apply' }).first().click();
  await page.locator('dialog').getByRole('button', { name: 'Apply' }).click();
  await page.locator('dialog .problem').waitFor();
  await shot(page, 'refused-light');
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.context().close();
});

test('with the keyboard alone: make, watch, change, stop, redrive', async () => {
  const page = await open('/');
  const type = (text) => page.keyboard.type(text);
  await page.keyboard.press('c');
  await page.waitForURL('**/tasks/new');
  await page.locator('option', { hasText: /^push$/ }).waitFor({ state: 'attached' });
  await page.getByLabel('Handled by').focus();
  await type('push');
  await page.getByRole('radio', { name: 'File' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByLabel('Number of items').focus();
  await page.keyboard.press('Control+A');
  await type('3000');
  await page.getByLabel('Rate', { exact: true }).focus();
  await page.keyboard.press('Control+A');
  await type('40/s');
  await page.getByText('The node accepts this task.').waitFor();
  await shot(page, 'new-task-filled-light');
  await page.getByRole('button', { name: 'Create and start' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/tasks\/t\d+$/);
  const id = new URL(page.url()).pathname.split('/').pop();
  await until('the canary is done', async () => (await status(id)) === 'stopped');
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  await page.locator('body').press('s');
  await page.locator('dialog').waitFor();
  await page.keyboard.press('Enter');
  await until('it runs', async () => (await status(id)) === 'running');
  await until('something failed', async () => (await node.call('GET', `/v1/tasks/${id}`)).counts.failed >= 3);
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
  await page.locator('body').press('s');
  await page.locator('dialog').waitFor();
  await page.keyboard.press('Enter');
  await until('it rests', async () => (await status(id)) === 'stopped');
  await page.getByRole('link', { name: /^Failures/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /Redrive all/ }).focus();
  await page.keyboard.press('Enter');
  // The dialog moves the focus when it opens.
  await page.locator('dialog[open]').waitFor();
  await page.getByLabel(/to confirm/).focus();
  await type(id);
  const go = page.locator('dialog').getByRole('button', { name: 'Create and start' });
  await go.click({ trial: true });
  await go.focus();
  await page.keyboard.press('Enter');
  await shot(page, 'redrive-light');
  await until('one is at the redrive', () => new URL(page.url()).pathname !== `/tasks/${id}/failures`);
  assert.equal((await node.call('GET', `/v1${new URL(page.url()).pathname}`)).parent, id);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('keys go to pages and rows', async () => {
  const page = await open('/');
  for (const [key, path] of [['t', '/tasks'], ['n', '/nodes'], ['l', '/log'], ['o', '/']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.waitForURL(node.url + path);
  }
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.locator('tbody [data-row]').first().waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const wanted = await page.evaluate(() => document.activeElement.getAttribute('href'));
  await page.keyboard.press('Enter');
  await page.waitForURL(node.url + wanted);
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Help' }).waitFor();
  await shot(page, 'keyboard-light');
  await page.keyboard.press('Escape');
  await page.goBack();
  await page.waitForURL(`${node.url}/tasks`);
  await page.context().close();
});

test('a file is sent, shown and made a task', async () => {
  const page = await open('/tasks/new?business=push');
  await page.locator('input[type=file]').setInputFiles({ name: 'users.csv', mimeType: 'text/csv', buffer: Buffer.from('user_id,locale\nu_1,zh-CN\nu_2,en\nu_3,<b>x</b>\n') });
  await page.getByText(/^users.csv 3 items/).waitFor();
  await page.getByText('The node accepts this task.').waitFor();
  await shot(page, 'upload-light');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.waitForURL(/\/tasks\/t\d+$/);
  await page.getByRole('button', { name: 'Run preview' }).click();
  await page.getByRole('table', { name: 'Preview' }).waitFor();
  await shot(page, 'preview-light');
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('rows keep still under the pointer', async () => {
  const page = await open('/tasks');
  const first = () => page.locator('tbody [data-row]').first().getAttribute('href');
  await page.locator('tbody tr').first().hover();
  const before = await first();
  await node.call('POST', '/v1/tasks', { business: 'push', name: `new-${Date.now()}`, source: { type: 'range', total: 10 } });
  await page.getByRole('button', { name: /new ▲/ }).waitFor();
  assert.equal(await first(), before);
  await page.getByRole('button', { name: /new ▲/ }).click();
  await until('the new one is first', async () => (await first()) !== before);
  await page.context().close();
});

test('a pause is kept, and ended by the same key', async () => {
  const page = await open(`/tasks/${things.running}`);
  await until('it is live', async () => (await page.locator('.chip').getAttribute('data-state')) === 'live');
  await page.locator('body').press('r');
  await until('it is paused', async () => (await page.locator('.chip').getAttribute('data-state')) === 'paused');
  assert.match(await page.locator('.stale').innerText(), /^Paused since /);
  await page.locator('body').press('r');
  await until('it is live', async () => (await page.locator('.chip').getAttribute('data-state')) === 'live');
  await page.context().close();
});

test('a node that goes away is missed, and found again without loading anew', async () => {
  const page = await open(`/tasks/${things.running}`);
  await page.evaluate(() => { globalThis.wasHere = true; });
  await until('it is live', async () => (await page.locator('.chip').getAttribute('data-state')) === 'live');
  await node.stop('SIGKILL');
  await until('it is missed', async () => (await page.locator('.chip').getAttribute('data-state')) === 'lost');
  await shot(page, 'lost-light');
  assert.match(await page.locator('.stale').innerText(), /^Disconnected since \d\d:\d\d:\d\d: the data is \d+s old/);
  await node.start();
  await until('it is live again', async () => (await page.locator('.chip').getAttribute('data-state')) === 'live', 40_000);
  const settled = async () => Number((await page.locator('.sum li', { hasText: 'succeeded' }).locator('b').innerText()).replaceAll(',', ''));
  const first = await settled();
  await until('numbers move again', async () => (await settled()) > first, 60_000);
  assert.equal(await page.evaluate(() => globalThis.wasHere), true);
  await page.context().close();
});
