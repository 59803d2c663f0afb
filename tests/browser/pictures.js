/** @file Pictures of the documentation: pages of a busy node as WebP in docs/pictures. Run by scripts/test-ui.sh --pictures. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { furnish, handler } from './busy.js';
import { browser, Node, ROOT, serve, sleep } from './support.js';

const PLACE = join(ROOT, 'docs/pictures');
const WIDTH = 1200;
/** Maximum size of a picture. Unit: bytes. */
const BYTES_MAX = 250 * 1000;

/** Pixels of a picture per pixel of the page. */
const SCALE = 2;
const FONT = 'Inter, "WenQuanYi Micro Hei", sans-serif';

async function take(page, name) {
  const bytes = await page.screenshot({ type: 'webp', quality: 75 });
  assert.ok(bytes.length <= BYTES_MAX, `${name}: ${bytes.length} bytes`);
  writeFileSync(join(PLACE, `${name}.webp`), bytes);
}

/** Fills the form for a new task, so that the side shows what will happen. */
async function fillTask(page) {
  await page.getByLabel('Name (optional)').fill('cyber-monday');
  await page.getByText('Number range').click();
  await page.getByLabel('Number of items').fill('26000');
}

/** Looks up an item of a dataset. */
async function lookUp(page) {
  await page.getByLabel('Value', { exact: true }).fill('u_10007');
  await page.getByRole('button', { name: 'Look up' }).click();
}

/** Pages by the name of their picture, with the height that shows what matters. */
function tour({ done, running, schedule }) {
  return {
    task: { path: `/tasks/${running}`, height: 900, isDarkToo: true }, overview: { path: '/', height: 960 }, tasks: { path: '/tasks', height: 960 },
    failures: { path: `/tasks/${done}/failures`, height: 780, act: (page) => page.getByText('TOKEN_EXPIRED').first().click() },
    'new-task': { path: '/tasks/new?business=push', height: 780, act: fillTask },
    schedule: { path: `/schedules/${schedule}`, height: 740 }, dataset: { path: '/datasets/ranking', height: 760, act: lookUp },
    node: { path: '/nodes/n1', height: 780 }, statistics: { path: '/statistics?by=business', height: 520 },
  };
}

/** Opens a browser window that shows the pages in one colour scheme. */
async function open(chrome, colorScheme) {
  const context = await chrome.newContext({ deviceScaleFactor: SCALE, colorScheme, locale: 'en-US', timezoneId: 'Europe/Berlin' });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.addInitScript((font) => addEventListener('DOMContentLoaded', () => document.documentElement.style.setProperty('--font', font)), FONT);
  return page;
}

test('the pictures of the documentation', async () => {
  mkdirSync(PLACE, { recursive: true });
  const environment = { WINDROW_AUTH__MODE: 'off', WINDROW_NODE__ID: 'n1', WINDROW_NODE__CAPACITY_RATE: '500/s', WINDROW_NODE__UNLIMITED_RESERVES: '100/s' };
  const [node, chrome, served] = await Promise.all([new Node(serve, environment).start(), browser(), handler()]);
  try {
    const pages = tour(await furnish(node, served));
    const [light, dark] = [await open(chrome, 'light'), await open(chrome, 'dark')];
    for (const [name, { path, height, isDarkToo, act }] of Object.entries(pages)) {
      for (const page of isDarkToo ? [light, dark] : [light]) {
        await page.setViewportSize({ width: WIDTH, height });
        await page.goto(node.url + path);
        await page.waitForSelector('h1');
        await page.waitForFunction(() => !document.querySelector('.loading'));
        await act?.(page);
        await sleep(isDarkToo ? 8000 : 2000);
        await take(page, page === dark ? `${name}-dark` : name);
      }
    }
  } finally {
    await chrome.close();
    served.close();
    await node.remove();
  }
});
