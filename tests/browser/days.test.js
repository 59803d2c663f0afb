/** @file Days with a fixed clock: their start, and today, in browsers east and west of UTC. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, devNode, shot, until } from './support.js';

const DAY = 86_400_000;
/** Ten seconds before midnight of UTC. */
const LATE = Date.parse('2026-03-09T23:59:50Z');
const day = (time) => new Date(time).toISOString().slice(0, 10);

let node, chrome;

before(async () => {
  [node, chrome] = await Promise.all([devNode(), browser()]);
  await node.call('POST', '/v1/businesses?check=skip', { name: 'push', url: 'http://127.0.0.1:9/' });
});

after(async () => {
  await chrome?.close();
  await node?.remove();
});

/** Opens a page in a zone at a fixed time. Statistics are mocked, because the node only knows its own day. */
async function open(path, timezoneId, time, answers = {}) {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 }, timezoneId, locale: 'en-US' });
  const page = await context.newPage();
  const asked = [];
  await page.clock.install({ time });
  for (const [pattern, answer] of Object.entries(answers)) {
    await page.route(pattern, (route) => {
      const url = new URL(route.request().url());
      asked.push(url.searchParams);
      return route.fulfill({ json: answer(url.searchParams) });
    });
  }
  await page.goto(node.url + path);
  await page.waitForSelector('h1');
  return { page, asked, context };
}

const row = (at, settled) => ({ day: at, items: { succeeded: settled, skipped: 0, failed: 0 }, tasks: { created: 1, finished: 1, cancelled: 0 } });

/** Mocked statistics: each day since `since`, newest first, up to the page's current time. */
const daily = (present) => (query) => {
  const items = [];
  for (let at = Date.parse(query.get('since')), number = 1; at <= present(); at += DAY, number += 1) items.unshift(row(day(at), number * 1000));
  return { items, next_cursor: null };
};

for (const [zone, midnight] of [['Pacific/Kiritimati', '14:00:00'], ['UTC', '00:00:00'], ['America/Los_Angeles', '17:00:00']]) {
  test(`days of statistics are those of UTC, seen from ${zone}`, async () => {
    let present = LATE;
    const { page, asked, context } = await open('/statistics?span=7d', zone, LATE, { '**/v1/statistics?*': daily(() => present) });
    const rows = page.getByRole('table', { name: 'Statistics' }).locator('tbody tr');
    await until('seven days', async () => (await rows.count()) === 7);
    assert.equal(asked[0].get('since'), '2026-03-03T00:00:00Z');
    assert.match(await rows.first().innerText(), /2026-03-09\s+today/);
    assert.equal(await page.getByText('today', { exact: true }).count(), 1);
    await shot(page, `statistics-${zone.split('/').pop()}`);
    present = LATE + 20_000;
    await page.clock.runFor(20_000);
    await until('the next day', async () => {
      await page.clock.runFor(1000);
      return /2026-03-10\s+today/.test(await rows.first().innerText());
    });
    assert.equal(asked.at(-1).get('since'), '2026-03-04T00:00:00Z');
    assert.equal(await rows.count(), 7);
    await context.close();
  });

  test(`the overview says since when today is, seen from ${zone}`, async () => {
    const { page, asked, context } = await open('/', zone, LATE, { '**/v1/statistics?*': daily(() => LATE) });
    const figure = page.locator('.figures a', { hasText: 'Settled today' });
    await until('today is counted', async () => {
      await page.clock.runFor(1000);
      return /1,000/.test(await figure.innerText({ timeout: 1000 }).catch(() => ''));
    });
    assert.equal(asked[0].get('since'), '2026-03-09T00:00:00Z');
    assert.ok((await figure.getAttribute('title')).includes(` ${midnight}`), await figure.getAttribute('title'));
    await page.clock.runFor(20_000);
    await until('the next day is asked for', async () => {
      await page.clock.runFor(1000);
      return asked.at(-1).get('since') === '2026-03-10T00:00:00Z';
    });
    await context.close();
  });
}

/** Noon of days next to the start and end of daylight saving time. */
const SHIFTS = [['Europe/Berlin', '2026-03-30T10:00:00Z', '03-30'], ['Europe/Berlin', '2026-10-24T10:00:00Z', '10-24'], ['America/Los_Angeles', '2026-03-09T19:00:00Z', '03-09'], ['Pacific/Kiritimati', '2026-03-09T23:00:00Z', '03-10'], ['UTC', '2026-03-09T23:00:00Z', '03-09']];
for (const [zone, time, today] of SHIFTS) {
  test(`a calendar has the days of ${zone} around ${time}`, async () => {
    const at = Date.parse(time);
    const schedule = await node.call('POST', '/v1/schedules', { business: 'push', name: `daily-${SHIFTS.findIndex((one) => one[1] === time)}-${zone.length}`, cron: '0 12 * * *', zone, task: { source: { type: 'range', total: 5 }, rate: '5/s' } });
    // Noon of each day in the zone, as the node would send it.
    const noon = (number) => {
      const guess = new Date(Date.parse(`2026-${today}T12:00:00Z`) + number * DAY);
      const shown = new Date(`${guess.toLocaleString('sv-SE', { timeZone: zone }).replace(' ', 'T')}Z`);
      return new Date(guess.getTime() - (shown - guess)).toISOString();
    };
    const { page, context } = await open(`/schedules/${schedule.id}`, zone, at, {
      '**/v1/schedules/*/next*': () => ({ items: [1, 2, 3].map(noon), times: [1, 2, 3].map(noon) }),
      '**/v1/schedules/*/fires*': () => ({ items: [-3, -2, -1].map((number) => ({ time: noon(number), outcome: 'made', kind: 'time', count: 1, decided_at: noon(number) })), next_cursor: null }),
    });
    const lanes = page.locator('.calendar .lane:has(svg)');
    await until('seven days', async () => {
      await page.clock.runFor(500);
      return (await lanes.count()) === 7;
    });
    assert.equal(await page.locator('.calendar .lane .strong').innerText(), today);
    const days = await lanes.locator('span').allInnerTexts();
    assert.equal(new Set(days).size, 7, days.join());
    const places = await lanes.locator('rect').evaluateAll((all) => all.map((one) => Number(one.getAttribute('x'))));
    assert.ok(places.length >= 5, `${places.length} fires`);
    for (const place of places) assert.ok(Math.abs(place + 2 - 500) < 1, `noon is at ${place}`);
    await shot(page, `calendar-${zone.split('/').pop()}-${today}`);
    await context.close();
  });
}
