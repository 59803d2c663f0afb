/** @file Sign-in, sign-out, roles, and the traces of a session in a browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe, browser, overflow, serveNode, shot, until, watch } from './support.js';
import { furnish, handler, pages } from './things.js';

const SIZE = { viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US' };

let node, chrome, served, things, viewer, owner;

before(async () => {
  [node, chrome, served] = await Promise.all([serveNode(), browser(), handler()]);
  things = await furnish(node, served.url, node.admin);
  const token = async (members) => (await node.call('POST', '/v1/tokens', members, node.admin)).token;
  viewer = await token({ name: 'vera', role: 'viewer' });
  owner = await token({ name: 'push-team', role: 'business', business: 'push' });
});

after(async () => {
  await chrome?.close();
  served?.close();
  await node?.remove();
});

/** Signs in with a fresh browser context. */
async function enter(path, token) {
  const context = await chrome.newContext(SIZE);
  const page = await context.newPage();
  await page.goto(node.url + path);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('.side');
  page.faults = watch(page, node.url);
  return page;
}

test('who is not known is asked for a token, and arrives where they wanted to go', async () => {
  const context = await chrome.newContext(SIZE);
  const page = await context.newPage();
  await page.goto(`${node.url}/tasks/${things.finished}/failures`);
  await page.getByLabel('Token').waitFor();
  assert.deepEqual(await axe(page), []);
  assert.equal(await overflow(page), null);
  await shot(page, 'login-light');
  await page.getByLabel('Token').fill('wrk_nobody');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('.problem').waitFor();
  await shot(page, 'login-refused-light');
  await page.getByLabel('Token').fill(node.admin);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Failures by code').waitFor();
  await context.close();
});

test('no script can read what a browser keeps of a session', async () => {
  const page = await enter('/', node.admin);
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!kept.includes('wrk_') && !kept.includes(node.admin));
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies.map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite })), [{ name: 'windrow_session', httpOnly: true, sameSite: 'Strict' }]);
  assert.ok(!cookies[0].value.includes(node.admin));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  const reply = await fetch(`${node.url}/v1/whoami`, { headers: { cookie: `windrow_session=${cookies[0].value}` } });
  assert.equal(reply.status, 401);
  await page.context().close();
});

test('a page of somebody else writes nothing with the session', async () => {
  const page = await enter('/', node.admin);
  const [{ value }] = await page.context().cookies();
  const stop = (headers) => fetch(`${node.url}/v1/tasks/${things.running}/stop`, { method: 'POST', headers: { cookie: `windrow_session=${value}`, 'content-type': 'application/json', ...headers }, body: '{}' });
  for (const headers of [{ origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'cross-site' }, {}]) assert.equal((await stop(headers)).status, 403, JSON.stringify(headers));
  await page.context().close();
});

test('a viewer sees every page, and may do nothing', async () => {
  const page = await enter('/', viewer);
  const problems = [];
  for (const [name, path] of Object.entries(pages(things, 'dev'))) {
    page.faults.length = 0;
    await page.goto(node.url + path);
    await page.waitForSelector('h1');
    await page.waitForFunction(() => !document.querySelector('.loading'));
    await page.waitForTimeout(300);
    const found = await axe(page);
    const faults = path.includes('t999999') ? [] : page.faults;
    problems.push(...faults.map((fault) => `${name}: ${fault}`), ...found.map((one) => `${name}: axe ${one}`));
    await shot(page, `${name}-viewer`);
  }
  assert.deepEqual(problems, []);
  await page.goto(`${node.url}/tasks/${things.running}`);
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await stop.waitFor();
  assert.equal(await stop.getAttribute('aria-disabled'), 'true');
  assert.equal(await stop.getAttribute('title'), 'requires the operator role');
  await stop.click({ force: true });
  assert.equal(await page.locator('dialog').count(), 0);
  await page.context().close();
});

test('a business sees its own tasks, and steers them', async () => {
  const page = await enter('/', owner);
  await page.getByRole('link', { name: /finished/ }).first().waitFor();
  assert.equal(await page.getByRole('link', { name: 'Nodes' }).count(), 0);
  await page.goto(`${node.url}/tasks/${things.running}`);
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.locator('dialog').getByRole('button', { name: 'Stop' }).click();
  await until('it rests', async () => (await node.call('GET', `/v1/tasks/${things.running}`, undefined, node.admin)).status === 'stopped');
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a token is made, shown once and revoked', async () => {
  const page = await enter('/settings', node.admin);
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('Holder').fill('ada');
  await page.locator('dialog').getByRole('button', { name: 'Create' }).click();
  await page.locator('.command code').waitFor();
  const token = await page.locator('.command code').innerText();
  assert.equal((await node.call('GET', '/v1/whoami', undefined, token)).name, 'ada');
  await page.getByRole('row', { name: /ada/ }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByLabel(/to confirm/).fill('ada');
  await page.locator('dialog').getByRole('button', { name: 'Revoke' }).click();
  await until('it is refused', async () => (await fetch(`${node.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status === 401);
  await page.context().close();
});
