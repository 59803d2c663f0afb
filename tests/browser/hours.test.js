/** @file Pages left open for hours must not accumulate memory. Hours pass as fast as the page can follow. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { record } from './replay.js';
import { browser, devNode, until, watch } from './support.js';
import { furnish, handler } from './things.js';

/** Time that each page is open, by its own clock. Unit: minutes. WINDROW_UI_MINUTES=480 is a working day. */
const MINUTES = Number(process.env.WINDROW_UI_MINUTES ?? 12);
/** Time until lists of the last minutes are full. Unit: minutes. */
const FULL_AFTER = 7;
/** Allowed growth of the page from begin to end, for lists of varying length. Unit: bytes. */
const GROWTH_MAX = 64 * 1024;
/** Heap snapshot node types of the browser itself: machine code of hot functions, timings. */
const NOT_OURS = new Set(['code', 'native', 'synthetic', 'hidden']);

/** Maximum number of DOM nodes: a page shows only a part of long lists. */
const NODES_MAX = 5000;

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

/** Bytes of objects, closures, arrays and strings: the heap without the browser's compiled code and measurements. */
async function bytesOfPage(session) {
  const chunks = [];
  const take = ({ chunk }) => chunks.push(chunk);
  session.on('HeapProfiler.addHeapSnapshotChunk', take);
  await session.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  session.off('HeapProfiler.addHeapSnapshotChunk', take);
  const { snapshot: { meta }, nodes } = JSON.parse(chunks.join(''));
  const [type, size] = ['type', 'self_size'].map((name) => meta.node_fields.indexOf(name));
  let bytes = 0;
  for (let node = 0; node < nodes.length; node += meta.node_fields.length) {
    if (!NOT_OURS.has(meta.node_types[type][nodes[node + type]])) bytes += nodes[node + size];
  }
  return bytes;
}

/** Memory left after garbage collection. */
async function held(session) {
  for (let round = 0; round < 3; round += 1) await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const { metrics } = await session.send('Performance.getMetrics');
  const of = (name) => metrics.find((one) => one.name === name).value;
  return { page: await bytesOfPage(session), heap: usedSize, nodes: of('Nodes'), listeners: of('JSEventListeners') };
}

/** Opens a page that replays recorded events, with a manual clock. */
async function replayed(path) {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.faults = watch(page, node.url);
  await page.clock.install({ time: Date.now() });
  await page.addInitScript(record);
  await page.goto(node.url + path);
  await page.waitForSelector('h1');
  await until('it is live', async () => {
    await page.clock.runFor(500);
    return (await page.locator('.chip').getAttribute('data-state')) === 'live' && !(await page.locator('.loading').count());
  });
  for (let round = 0; round < 12; round += 1) {
    await page.clock.runFor(500);
    await page.waitForTimeout(200).catch(() => {});
  }
  await page.evaluate(() => { globalThis.replay.isOn = true; });
  // Pause and resume, so that the next stream is the replay.
  for (const state of ['paused', 'live']) {
    await page.locator('body').press('r');
    await until(`it is ${state}`, async () => {
      await page.clock.runFor(500);
      return (await page.locator('.chip').getAttribute('data-state')) === state;
    });
  }
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  await session.send('HeapProfiler.enable');
  return { page, session, context };
}

/**
 * Lets minutes pass, a second at a time, so that responses arrive in between. The page advances its own clock: Playwright's
 * `runFor` leaves a script in the browser each time, whose growth is not the page's.
 */
async function pass(page, minutes) {
  for (let minute = 0; minute < minutes; minute += 1) {
    await page.evaluate(async () => {
      for (let second = 0; second < 60; second += 1) await globalThis.__pwClock.controller.runFor(1000);
    });
  }
}

async function stays(path) {
  const { page, session, context } = await replayed(path);
  await pass(page, FULL_AFTER);
  const begin = await held(session);
  await pass(page, MINUTES / 2);
  const middle = await held(session);
  await pass(page, MINUTES / 2);
  const end = await held(session);
  const replay = await page.evaluate(() => ({ ...globalThis.replay }));
  console.log(path, JSON.stringify({ begin, middle, end, replay }));
  assert.ok(replay.sent + replay.asked >= MINUTES * 30, `${replay.sent} events, ${replay.asked} answers`);
  assert.ok(end.page - begin.page <= GROWTH_MAX, `the page holds ${end.page - begin.page} bytes more`);
  assert.ok(end.nodes <= NODES_MAX, `${end.nodes} nodes are shown`);
  assert.ok(end.nodes <= begin.nodes * 1.2 + 100, `${begin.nodes} nodes became ${end.nodes}`);
  assert.ok(end.listeners <= begin.listeners * 1.2 + 20, `${begin.listeners} listeners became ${end.listeners}`);
  assert.equal(await page.locator('.chip').getAttribute('data-state'), 'live');
  assert.deepEqual(page.faults, []);
  await context.close();
}

test('a task’s page holds no more after hours', () => stays(`/tasks/${things.running}?span=5m`));
test('the overview holds no more after hours, though tasks come and go', () => stays('/'));
test('a log that is followed holds no more after hours', () => stays('/log'));

test('going from page to page leaves nothing behind', async () => {
  const { page, session, context } = await replayed('/');
  const links = ['/tasks', '/businesses', '/schedules', '/datasets', '/nodes', '/limits', '/statistics', '/log', '/audit', '/settings', '/'];
  const round = async () => {
    for (const link of links) {
      await page.locator(`nav a[href="${link}"]`).click();
      await page.clock.runFor(1000);
    }
  };
  for (let count = 0; count < 4; count += 1) await round();
  const begin = await held(session);
  for (let count = 0; count < 12; count += 1) await round();
  const end = await held(session);
  console.log('from page to page', JSON.stringify({ begin, end }));
  assert.ok(end.page - begin.page <= GROWTH_MAX, `the page holds ${end.page - begin.page} bytes more`);
  assert.ok(end.nodes <= begin.nodes * 1.2 + 100, `${begin.nodes} nodes became ${end.nodes}`);
  assert.ok(end.listeners <= begin.listeners * 1.2 + 20, `${begin.listeners} listeners became ${end.listeners}`);
  await context.close();
});
