/** @file The guide: its search by keyboard, its headings, its languages, and the way to it from other pages. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe, browser, devNode, watch } from './support.js';

let node, chrome;

before(async () => {
  [node, chrome] = await Promise.all([devNode(), browser()]);
});

after(async () => {
  await chrome?.close();
  await node?.remove();
});

async function open(path, options = {}) {
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-US', ...options });
  const page = await context.newPage();
  const faults = watch(page, node.url);
  const files = [];
  page.on('request', (request) => files.push(new URL(request.url()).pathname.split('/guide/')[1]));
  await page.goto(node.url + path);
  await page.waitForSelector('h1');
  return { context, page, faults, files };
}

const search = (page) => page.getByRole('searchbox', { name: 'Search the guide' });
const results = (page) => page.locator('[data-result]');
/** Waits until the focused heading has this id and is in view. */
const isAt = (page, id) => page.waitForFunction((wanted) => {
  const { id: found, tagName } = document.activeElement;
  const { top } = document.activeElement.getBoundingClientRect();
  return found === wanted && /^H[234]$/.test(tagName) && top >= 40 && top < innerHeight;
}, id);

test('a search is answered by sections, and the arrow keys go to one', async () => {
  const { context, page, faults, files } = await open('/guide');
  assert.ok(!files.some((name) => /^(index|search)/.test(name)), `fetched before the first search: ${files}`);
  await page.keyboard.press('/');
  await page.keyboard.type('tokens per minute');
  await results(page).first().waitFor();
  const headings = await results(page).allInnerTexts();
  assert.match(headings[0], /^Recipes › .*tokens per minute/);
  assert.ok(headings.slice(0, 3).some((text) => /^Questions › Can I limit tokens per minute/.test(text)), String(headings));
  assert.deepEqual(await results(page).first().locator('mark').allInnerTexts(), ['tokens', 'per', 'minute']);
  await page.getByRole('status').filter({ hasText: `${headings.length} sections found` }).waitFor();
  assert.deepEqual(await axe(page), []);
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
  await isAt(page, 'can-i-limit-tokens-per-minute-or-money');
  assert.equal(await page.locator('h1').innerText(), 'Questions');
  await page.goBack();
  await results(page).first().waitFor();
  assert.equal(await search(page).inputValue(), 'tokens per minute');
  assert.ok(files.includes('index.json'), String(files));
  assert.deepEqual(faults, []);
  await context.close();
});

test('Enter opens the first result, and a word may be incomplete', async () => {
  const { context, page, faults } = await open('/guide/jobs', { colorScheme: 'dark' });
  await search(page).fill('resum');
  await results(page).first().waitFor();
  assert.match(await results(page).first().innerText(), /resum/i);
  assert.deepEqual(await axe(page), []);
  await search(page).fill('resume');
  await page.waitForFunction(() => document.querySelector('[data-result] mark')?.textContent === 'resume');
  await search(page).press('Enter');
  await isAt(page, 'how-do-i-resume');
  await search(page).fill('xylophone');
  await page.getByText('No section has all of these words.').waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('headings are listed, and links lead to them', async () => {
  const { context, page, faults } = await open('/guide/jobs');
  await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Resuming' }).click();
  await isAt(page, 'resuming');
  await page.goto(`${node.url}/guide/concepts#limits-in-units`);
  await isAt(page, 'limits-in-units');
  await page.goto(`${node.url}/guide/nothing`);
  await page.getByText('There is no page at this address.').waitFor();
  assert.ok(faults.every((fault) => /404/.test(fault)), String(faults));
  await context.close();
});

test('each page of the dashboard leads to the section about it', async () => {
  const { context, page, faults } = await open('/limits');
  await page.getByRole('link', { name: 'Guide to this page' }).click();
  await isAt(page, 'limits-in-units');
  await page.goto(`${node.url}/schedules`);
  await page.waitForSelector('h1');
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByRole('link', { name: 'Guide to this page' }).click();
  await page.getByRole('heading', { level: 1, name: 'Recurring work' }).waitFor();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.deepEqual(faults, []);
  await context.close();
});

test('translated pages are Chinese under the same addresses, others English', async () => {
  const { context, page, faults } = await open('/guide/jobs#resuming', { locale: 'zh-CN' });
  await isAt(page, 'resuming');
  assert.equal(await page.locator('#resuming').innerText(), '续跑');
  assert.equal(await page.locator('article').getAttribute('lang'), 'zh-CN');
  await page.getByRole('searchbox').fill('续跑');
  await results(page).first().waitFor();
  assert.equal(await results(page).first().innerText(), '作业 › 续跑');
  await page.getByRole('searchbox').fill('canary');
  await page.waitForFunction(() => document.querySelector('[data-result] mark')?.textContent.toLowerCase() === 'canary' || document.querySelector('.results li[lang="en"]'));
  await page.getByRole('navigation', { name: '指南' }).getByRole('link', { name: 'Concepts' }).click();
  await page.waitForFunction(() => document.querySelector('article')?.lang === 'en');
  assert.deepEqual(faults, []);
  await context.close();
});
