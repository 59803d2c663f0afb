/** @file Three nodes on one database, one of which is killed: the pages of that node and of the others. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Postgres, nodesOn } from './cluster.js';
import { browser, overflow, shot, until } from './support.js';
import { handler } from './things.js';

let postgres, nodes, forget, chrome, served;

before(async () => {
  [postgres, chrome, served] = await Promise.all([new Postgres().start(), browser(), handler()]);
  ({ nodes, forget } = await nodesOn(postgres, ['n1', 'n2', 'n3']));
});

after(async () => {
  await chrome?.close();
  served?.close();
  for (const node of nodes ?? []) await node.remove();
  await postgres?.remove();
  forget?.();
});

const chip = (page) => page.locator('.chip');
const state = (page) => chip(page).getAttribute('data-state');
const number = async (page, term) => Number((await page.locator('.sum li', { hasText: term }).locator('b').innerText()).replaceAll(',', ''));

async function open(node, path) {
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US' });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(node.url + path);
  await page.waitForSelector('h1');
  return page;
}

/** Running task, the node that owns it, and another node. */
async function runningTask() {
  const [node] = nodes;
  await node.call('POST', '/v1/businesses?check=skip', { name: 'push', url: served.url, defaults: { error_budget: 'none' } });
  const { id } = await node.call('POST', '/v1/tasks', { business: 'push', name: 'taken-over', source: { type: 'range', total: 1_000_000 }, rate: '20/s', start: true });
  const owner = await until('somebody runs it', async () => (await node.call('GET', `/v1/tasks/${id}/runs`)).items[0]?.node, 60_000);
  const lost = nodes[['n1', 'n2', 'n3'].indexOf(owner)];
  return { id, owner, lost, other: nodes.find((one) => one !== lost) };
}

test('a node is killed: its page says since when it is cut off, another shows who took over, and the first finds back by itself', async () => {
  const { id, owner, lost, other } = await runningTask();
  const [mine, theirs] = [await open(lost, `/tasks/${id}`), await open(other, `/tasks/${id}/runs`)];
  await mine.evaluate(() => { globalThis.wasHere = true; });
  await until('both are live', async () => (await state(mine)) === 'live' && (await state(theirs)) === 'live', 60_000);
  await until('items are done', async () => (await number(mine, 'succeeded')) > 10, 60_000);
  const ink = () => mine.locator('.sum b').first().evaluate((one) => getComputedStyle(one).color);
  const fresh = await ink();
  const begun = Date.now();
  await lost.stop('SIGKILL');

  await until('it says that it is cut off', async () => (await state(mine)) === 'lost');
  const bar = await mine.locator('.stale').innerText();
  const said = /since (\d\d):(\d\d):(\d\d): the data is \d+s old/.exec(bar);
  assert.ok(said, bar);
  const since = await mine.evaluate(([hours, minutes, seconds]) => new Date().setHours(hours, minutes, seconds, 0), said.slice(1).map(Number));
  assert.ok(Math.abs(since - begun) < 15_000, `${said[0]}, killed at ${new Date(begun)}`);
  assert.notEqual(await ink(), fresh, 'numbers are grey');
  const old = await number(mine, 'succeeded');
  await shot(mine, 'cut-off-light');
  await mine.setViewportSize({ width: 320, height: 700 });
  assert.equal(await overflow(mine), null);
  await shot(mine, 'cut-off-narrow');
  await mine.setViewportSize({ width: 1440, height: 900 });

  const rows = theirs.getByRole('table', { name: 'Runs' }).locator('tbody tr');
  await until('the timeline names who took over', async () => (await rows.count()) === 2 && !(await rows.first().innerText()).includes(owner), 90_000);
  const [now, then] = await rows.allInnerTexts();
  const heir = /\bn[123]\b/.exec(now)[0];
  assert.notEqual(heir, owner);
  assert.match(now, /running/);
  assert.ok(then.includes(owner) && /node lost|failed, recovering/.test(then), then);
  assert.equal(await theirs.locator('.lane svg rect[fill]').count(), 3, 'the base line, and one bar a run');
  assert.equal(await state(theirs), 'live');
  await shot(theirs, 'taken-over-light');

  assert.equal(await state(mine), 'lost', 'nothing tells it anything');
  assert.equal(await number(mine, 'succeeded'), old);
  await lost.start();
  await until('it found back', async () => (await state(mine)) === 'live', 90_000);
  assert.equal(await ink(), fresh);
  await until('it shows what happened meanwhile', async () => (await number(mine, 'succeeded')) > old, 60_000);
  await mine.locator(`main a[href="/nodes/${heir}"]`).first().waitFor();
  await mine.getByRole('link', { name: /^Runs/ }).click();
  const mended = mine.getByRole('table', { name: 'Runs' }).locator('tbody tr');
  await until('it has the same timeline', async () => (await mended.allInnerTexts()).filter((text) => text.includes(heir) || text.includes(owner)).length >= 2);
  assert.equal(await mine.evaluate(() => globalThis.wasHere), true, 'without loading anew');
});
