/** @file Every page in each look: no browser errors, no foreign requests, no overflow, no axe findings, no text left in English. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe, browser, devNode, isFolder, overflow, shot, watch } from './support.js';
import { furnish, handler, pages } from './things.js';

const LOOKS = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US' },
  dark: { viewport: { width: 1440, height: 900 }, colorScheme: 'dark', locale: 'en-US' },
  narrow: { viewport: { width: 320, height: 700 }, colorScheme: 'light', locale: 'en-US' },
  chinese: { viewport: { width: 1280, height: 800 }, colorScheme: 'light', locale: 'zh-CN' },
};
const CHINESE = /\p{Script=Han}/u;
/** Names, numbers and code are the same in every language. */
const NAMES = /^(t\d|a-name|a-slug|push|gone|hello|board|smtp|nightly|dev|Windrow|TLS|API|[a-z_]+$|\d|$)/;

const english = (texts) => texts.map((text) => text.trim()).filter((text) => !CHINESE.test(text) && !NAMES.test(text));

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

/** Waits until a page has its title and has finished loading. */
async function settle(page) {
  await page.waitForSelector('h1');
  await page.waitForFunction(() => !document.querySelector('.loading'), undefined, { timeout: 15_000 });
  await page.waitForTimeout(400);
}

/** Widths of a phone, a tablet and a desk. */
const WIDTHS = [390, 1024, 1440];

/** Overflow at each width; one at the look's own. */
async function wideAt(page, lookName, name) {
  if (lookName !== 'light') return overflow(page);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    // Plots and the strip follow the width in the next frame.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const wide = await overflow(page);
    if (wide) return `at ${width}: ${wide}`;
    if (width !== 1440) await shot(page, `${name}-${width}`, { fullPage: true });
  }
  return null;
}

/** Chinese dictionary that records the texts or codes that it lacks. */
const recording = (file) => `import words from './${file}?whole';
globalThis.missed ??= new Set();
export default new Proxy(words, { get(all, text) { if (!Object.hasOwn(all, text)) globalThis.missed.add(text); return all[text]; } });`;
const DICTIONARY = /words\/([\w.]*zh-CN\.js)$/;

async function look(context, name, path, lookName) {
  const page = await context.newPage();
  const faults = watch(page, node.url);
  if (lookName === 'chinese') await page.route(DICTIONARY, (route) => route.fulfill({ contentType: 'text/javascript', body: recording(DICTIONARY.exec(route.request().url())[1]) }));
  await page.goto(node.url + path);
  await settle(page);
  const expected = path.includes('t999999') ? [/404/] : [];
  const wide = await wideAt(page, lookName, name);
  // Widths and languages make no difference to axe, themes do.
  const found = ['light', 'dark'].includes(lookName) ? await axe(page) : [];
  await shot(page, `${name}-${lookName}`, { fullPage: lookName === 'narrow' });
  const texts = await page.locator('h1, h2, thead th, nav a:not([lang="en"])').allInnerTexts();
  const missed = lookName === 'chinese' ? await page.evaluate(() => [...globalThis.missed]) : [];
  await page.close();
  return { missed, faults: faults.filter((fault) => !expected.some((known) => known.test(fault))), wide, found, texts };
}

for (const [lookName, options] of Object.entries(LOOKS)) {
  test(`every page is in order: ${lookName}`, async () => {
    const context = await chrome.newContext({ ...options, timezoneId: 'Europe/Berlin' });
    const problems = [];
    for (const [name, path] of Object.entries(pages(things, 'dev'))) {
      const { faults, wide, found, texts, missed } = await look(context, name, path, lookName);
      if (options.locale === 'zh-CN') problems.push(...english([...texts, ...missed]).map((text) => `${name}: not Chinese: ${text}`));
      problems.push(...faults.map((fault) => `${name}: ${fault}`), ...found.map((one) => `${name}: axe ${one}`), ...(wide ? [`${name}: too wide: ${wide}`] : []));
    }
    await context.close();
    assert.deepEqual(problems, []);
  });
}

test('at 400 % nothing is lost to the side', async () => {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 1024 }, deviceScaleFactor: 1 });
  const page = await context.newPage();
  await page.setViewportSize({ width: 320, height: 256 });
  for (const path of ['/', '/tasks', `/tasks/${things.running}`, '/tasks/new']) {
    await page.goto(node.url + path);
    await settle(page);
    assert.equal(await overflow(page), null, path);
  }
  await context.close();
});

test('what handlers write is shown as text', async () => {
  const context = await chrome.newContext(LOOKS.light);
  const page = await context.newPage();
  let alerted = false;
  page.on('dialog', () => { alerted = true; });
  for (const path of [`/tasks/${things.finished}/failures`, `/tasks/${things.finished}/results`]) {
    await page.goto(node.url + path);
    await settle(page);
    assert.equal(await page.locator('main td b:not(:text-matches("^[0-9,]+$"))').count() + await page.locator('main img').count(), 0);
  }
  await page.goto(`${node.url}/tasks/${things.finished}/failures`);
  await settle(page);
  assert.ok(await page.getByText('<b>item').first().isVisible());
  assert.equal(alerted, false);
  await context.close();
});

test('a page costs little at first', { skip: isFolder && 'the pages of a folder are not packed' }, async () => {
  const context = await chrome.newContext(LOOKS.light);
  for (const path of ['/', '/tasks', `/tasks/${things.running}`, '/tasks/new']) {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Network.enable');
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    let bytes = 0;
    const files = new Map();
    session.on('Network.responseReceived', ({ requestId, response }) => files.set(requestId, response.url));
    session.on('Network.dataReceived', ({ requestId, encodedDataLength }) => {
      if (!/^\/(v1|version|healthz)/.test(new URL(files.get(requestId) ?? node.url).pathname)) bytes += encodedDataLength;
    });
    await page.goto(node.url + path);
    await settle(page);
    assert.ok(bytes <= 100 * 1024, `${path}: ${bytes} bytes`);
    const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    console.log(`${path}: ${(bytes / 1024).toFixed(1)} KiB, painted after ${painted?.toFixed(0)} ms`);
    await page.close();
  }
  await context.close();
});
