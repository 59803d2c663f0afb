/** @file Changes from the pages: bulk actions, schedules, datasets, limits, businesses, audit export. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { families } from '../../ui/app/lib/families.js';
import { axe, browser, devNode, overflow, shot, until, watch } from './support.js';
import { furnish, handler } from './things.js';

let node, chrome, served, things, page;

before(async () => {
  [node, chrome, served] = await Promise.all([devNode(), browser(), handler()]);
  things = await furnish(node, served.url);
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US', acceptDownloads: true });
  page = await context.newPage();
  page.setDefaultTimeout(60_000);
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
const dialog = () => page.locator('dialog');
const press = (name) => page.getByRole('button', { name, exact: true }).first().click();
/** Clicks a button, and retries if a busy node rejects the request. */
const confirm = async (name) => {
  await until(`the dialog is gone after ${name}`, async () => {
    const button = dialog().getByRole('button', { name, exact: true });
    if (await button.isEnabled({ timeout: 500 }).catch(() => false)) await button.click({ timeout: 5000 }).catch(() => {});
    return dialog().waitFor({ state: 'detached', timeout: 5000 }).then(() => true, () => false);
  }, 90_000);
};
const read = (path) => node.call('GET', path);

test('redrives stand below the task whose failures they do again', () => {
  const task = (id, parent) => ({ id, parent });
  const ids = (list) => families(list).map((one) => one.id).join(' ');
  assert.equal(ids([task('t5'), task('t4', 't3'), task('t3', 't1'), task('t2'), task('t1')]), 't5 t1 t3 t4 t2');
  assert.equal(ids([task('t9', 't1'), task('t8')]), 't9 t8');
});

test('failures that a redrive recovered are told as that', async () => {
  let answer = { result: 'fail', code: 'GONE', message: 'not there yet' };
  const server = createServer((request, reply) => {
    request.resume().on('end', () => reply.setHeader('content-type', 'application/json').end(JSON.stringify(answer)));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  await node.call('POST', '/v1/businesses?check=skip', { name: 'mending', url: `http://127.0.0.1:${server.address().port}/`, defaults: { error_budget: 'none' } });
  const ended = (id) => until(`${id} ended`, async () => (await read(`/v1/tasks/${id}`)).status === 'finished', 60_000);
  const { id } = await node.call('POST', '/v1/tasks', { business: 'mending', name: 'to-be-mended', source: { type: 'range', total: 4 }, start: true });
  await ended(id);
  answer = { result: 'ok' };
  const redrive = await node.call('POST', `/v1/tasks/${id}/redrives`, { filter: { codes: ['GONE'] }, start: true });
  await ended(redrive.id);
  await open('/tasks?q=to-be-mended');
  await page.getByText('finished, failures recovered').waitFor();
  await open(`/tasks/${id}`);
  await page.getByText('4 recovered by redrives').waitFor();
  await open('/');
  await page.locator('section', { hasText: 'Recently ended' }).last().getByText('finished, failures recovered').waitFor();
  server.close();
});

test('several tasks are stopped with one reason, which can be undone, and get one rate and one label', async () => {
  const made = [];
  for (const name of ['many-a', 'many-b']) {
    made.push((await node.call('POST', '/v1/tasks', { business: 'push', name, source: { type: 'range', total: 100_000 }, rate: '5/s', start: true })).id);
  }
  const all = (isSo) => until(`all of ${made}`, async () => (await Promise.all(made.map((id) => read(`/v1/tasks/${id}`)))).every(isSo), 60_000);
  await all((task) => task.status === 'running');
  await open('/tasks?q=many');
  for (const id of made) await page.getByLabel(`Select ${id}`).check();
  await press('Stop 2');
  await dialog().getByLabel(/Reason/).fill('maintenance');
  assert.deepEqual(await axe(page), []);
  await shot(page, 'bulk-light');
  await confirm('Stop');
  await all((task) => task.status === 'stopped');
  const { items } = await read(`/v1/audit?action=task.stop&task=${made[0]}`);
  assert.equal(items[0].reason, 'maintenance');
  await press('Undo');
  await all((task) => ['queued', 'running'].includes(task.status));
  for (const id of made) await page.getByLabel(`Select ${id}`).check();
  await press('Rate 2');
  await dialog().getByLabel('Rate').fill('7/s');
  await confirm('Apply');
  await all((task) => task.rate === '7/s');
  for (const id of made) await page.getByLabel(`Select ${id}`).check();
  await press('Label 2');
  await dialog().getByLabel('Label').fill('team');
  await dialog().getByLabel('Value').fill('growth');
  await confirm('Apply');
  await all((task) => task.labels.team === 'growth');
});

test('a schedule is made, changed and backfilled with the fires that would come', async () => {
  await open('/schedules');
  await press('New schedule');
  await dialog().getByLabel('Name').fill('hourly');
  await dialog().getByLabel('Times').fill('61 * * * *');
  await dialog().locator('.problem').waitFor();
  await dialog().getByLabel('Times').fill('0 3 * * *');
  await dialog().getByText('Next fires:').waitFor();
  assert.equal(await overflow(page), null);
  assert.deepEqual(await axe(page), []);
  await shot(page, 'schedule-new-light');
  await confirm('Create');
  await page.getByRole('heading', { name: 'hourly' }).waitFor();
  const id = page.url().split('/').pop();
  await press('Change');
  await dialog().getByLabel('Times').fill('1h');
  await dialog().getByText('Next fires:').waitFor();
  await confirm('Apply');
  await until('it is hourly', async () => (await read(`/v1/schedules/${id}`)).every === '1h');
  await press('Undo');
  await until('it is nightly again', async () => (await read(`/v1/schedules/${id}`)).cron === '0 3 * * *');
  await press('Backfill');
  await dialog().getByText(/^1 fire: /).waitFor();
  await confirm('Backfill');
  await until('it was backfilled', async () => (await read(`/v1/schedules/${id}/fires`)).items.some((fire) => fire.kind === 'backfilled'));
});

test('a dataset keeps more, and is gone when its name was typed; so is a limit', async () => {
  await open('/datasets/board');
  await press('Change retention');
  await dialog().getByLabel('Generations kept').fill('9');
  await confirm('Apply');
  assert.equal((await read('/v1/datasets/board')).keep, 9);
  await press('Delete');
  assert.ok(await dialog().getByRole('button', { name: 'Delete', exact: true }).isDisabled());
  await dialog().getByLabel(/to confirm/).fill('board');
  await confirm('Delete');
  await until('it is gone', async () => !(await read('/v1/datasets')).items.some((one) => one.name === 'board'));
  await node.call('POST', '/v1/limits', { name: 'spare', rate: '1/s' });
  await open('/limits/spare');
  await press('Delete');
  await dialog().getByLabel(/to confirm/).fill('spare');
  await confirm('Delete');
  await until('it is gone', async () => !(await read('/v1/limits')).items.some((one) => one.name === 'spare'));
});

test('a business is changed, and back', async () => {
  await open('/businesses/push');
  await press('Change');
  await dialog().getByLabel(/Display name/).fill('Push');
  await dialog().getByLabel(/Default task rate/).fill('40/s');
  await shot(page, 'business-change-light');
  await confirm('Apply');
  const now = await read('/v1/businesses/push');
  assert.deepEqual([now.display_name, now.defaults.rate], ['Push', '40/s']);
  await press('Undo');
  await until('it is as it was', async () => {
    const one = await read('/v1/businesses/push');
    return one.display_name === 'Push messages' && !one.defaults.rate && one.url === now.url;
  });
  await open('/businesses');
  await page.getByRole('row', { name: /^gone/ }).getByText('handler down').waitFor();
  await page.getByRole('row', { name: /^push/ }).getByText('responding').waitFor();
});

test('a business is called once, and the page shows what went and what came', async () => {
  await open('/businesses/push');
  const trial = page.getByRole('region', { name: 'Test call' });
  await trial.getByLabel('Item #').fill('6');
  await trial.getByLabel(/^Data \(JSON/).fill('{"id": 12345678901234567890');
  await trial.getByRole('button', { name: 'Send test call' }).click();
  await trial.locator('.problem', { hasText: 'The data is not valid JSON' }).waitFor();
  await trial.getByLabel(/^Data \(JSON/).fill('{"id": 12345678901234567890}');
  await trial.getByRole('button', { name: 'Send test call' }).click();
  const said = trial.getByRole('status');
  await said.waitFor();
  const text = await said.innerText();
  assert.match(text, /succeeded/);
  assert.match(text, /\dm?s\b/);
  assert.ok(text.includes(served.url) && text.includes('"doubled": 12') && text.includes('12345678901234567890'), text);
  assert.deepEqual(await axe(page), []);
  assert.equal(await overflow(page), null);
  await shot(page, 'tried-light', { fullPage: true });
  await trial.getByLabel('Item #').fill('3');
  await trial.getByRole('button', { name: 'Send test call' }).click();
  await trial.getByText('NO_USER').waitFor();
  assert.match(await said.innerText(), /failed/);
  assert.ok((await read('/v1/tasks?business=push')).items.every((one) => one.source.type !== 'inline' || one.name === 'created'));
  assert.deepEqual((await read('/v1/audit?action=handler.try')).items.map((one) => one.source), ['ui', 'ui']);
});

test('a business that was just registered is tried beside its secret', async () => {
  await open('/businesses/new');
  await page.getByLabel('Name', { exact: true }).fill('fresh');
  await page.getByLabel('URL', { exact: true }).fill(served.url);
  await page.getByLabel('Check the contract before saving').uncheck();
  await press('Register');
  await page.getByRole('heading', { name: 'fresh is registered' }).waitFor();
  const trial = page.getByRole('region', { name: 'Test call' });
  await trial.getByRole('button', { name: 'Send test call' }).click();
  await trial.getByRole('status').getByText('succeeded').waitFor();
  assert.match(await page.locator('.command code').first().innerText(), /^whsec_/);
});

test('the audit is loaded as a file that no spreadsheet computes', async () => {
  await node.call('POST', `/v1/tasks/${things.running}/stop`, { reason: '=1+1' });
  await open('/audit?action=task.stop');
  const loading = page.waitForEvent('download');
  await press('CSV');
  const text = readFileSync(await (await loading).path(), 'utf8');
  const [head, ...rows] = text.trim().split('\r\n');
  assert.match(head, /^id,at,actor,/);
  assert.ok(rows.length >= 1 && rows.every((row) => row.includes('"task.stop"')), text);
  assert.ok(text.includes(`"'=1+1"`), text);
});

test('the audit is narrowed to an object and to a time', async () => {
  await open(`/audit?object=task:${things.running}`);
  await page.getByText('task.create', { exact: true }).first().waitFor();
  const objects = await page.locator('td[data-head="Object"]').allInnerTexts();
  assert.ok(objects.length > 0 && objects.every((text) => text.includes(things.running)), objects.join());
  await page.getByLabel('until', { exact: true }).last().fill('2020-01-01T00:00');
  await page.getByText('No matching changes.').waitFor();
});

test('an alert about tasks that are not named singly leads to the list', async () => {
  await open('/tasks/other/failures');
  await page.getByRole('heading', { name: 'Tasks', exact: true }).waitFor();
  // Browsers log each rejected request: here invalid times and a busy node.
  assert.deepEqual(page.faults.filter((fault) => !/status of (422|503)/.test(fault)), []);
});
