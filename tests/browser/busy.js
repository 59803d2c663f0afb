/** @file Busy node for the pictures: eight businesses and some twenty tasks in every state. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { sleep, until } from './support.js';

const HOUR_MS = 3_600_000;
const FINISHED_WITHIN_MS = 180_000;
const range = (total) => ({ type: 'range', total });

/** Number in 0..1 that depends on the index alone, so that pictures resemble each other. */
const chance = (index, salt) => ((Math.imul(index + 1, 2_654_435_761) ^ Math.imul(index + 77, salt * 40_503)) >>> 8) / 2 ** 24;

/** Failures by business: their share, code and message. */
const FAILURES = {
  push: [
    [0.018, 'NO_USER', () => 'nobody has this number any more'],
    [0.009, 'BLOCKED', () => 'the user wants no messages'],
    [0.004, 'TOKEN_EXPIRED', (index) => `device token of u_${10_000 + index} expired`],
  ],
  geocoding: [[0.012, 'NOT_FOUND', () => 'no such street in this city']],
  images: [[0.01, 'CORRUPT_FILE', (index) => `IMG_${20_000 + index}.jpg ends early`]],
  loyalty: [[0.9, 'SCHEMA', () => 'member "points" is missing in version 3']],
};
/** Codes of items that succeed when they are redriven. */
const RECOVERED = ['TOKEN_EXPIRED', 'CORRUPT_FILE'];
/** Share of items that a business answers at their second attempt. */
const BUSY = { geocoding: 0.02, images: 0.03 };
/** Median call time by business. Unit: ms. */
const CALL_MS = { push: 190, crm: 60, geocoding: 120, embeddings: 420, images: 650, loyalty: 40 };

const outputs = {
  embeddings: (index) => ({ model: 'embed-3', tokens: 380 + Math.floor(240 * chance(index, 3)) }),
  ranking: (index) => ({ user: `u_${10_000 + index}`, place: 1 + index, points: 98_400 - 37 * index }),
};

/** Response to an item; keys that came before are in `seen`. */
function answer(business, { index, key }, seen) {
  const isFirst = !seen.has(key);
  seen.add(key);
  let left = chance(index, 7);
  for (const [share, code, message] of FAILURES[business] ?? []) {
    left -= share;
    if (left < 0) return isFirst || !RECOVERED.includes(code) ? { result: 'fail', code, message: message(index) } : { result: 'ok' };
  }
  if (isFirst && chance(index, 5) < (BUSY[business] ?? 0)) return { result: 'retry', code: 'BUSY', message: 'try again shortly' };
  return { result: 'ok', output: outputs[business]?.(index) ?? { id: `m-${index}`, state: 'sent' } };
}

/** Handler of every business that is up, at a path of its name. */
export function handler() {
  const seen = new Set();
  const server = createServer((request, reply) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const business = request.url.slice(1);
      const call = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      const items = call.items ?? (call.item ? [call.item] : []);
      const answers = items.map((item) => ({ index: item.index, ...answer(business, item, seen) }));
      const slow = 0.6 + chance(items[0]?.index ?? 0, 1) ** 3 * 2.2;
      setTimeout(() => {
        reply.setHeader('content-type', 'application/json');
        reply.end(JSON.stringify(call.items ? { results: answers } : answers[0] ?? {}));
      }, (CALL_MS[business] ?? 1) * slow);
    });
  });
  server.keepAliveTimeout = 600_000;
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() })));
}

async function register(post, url) {
  await post('/v1/limits', { name: 'sms-gateway', rate: '24/s', concurrency: 40 });
  await post('/v1/limits', { name: 'maps-api', rate: '26/s' });
  const businesses = {
    push: 'Push messages', crm: 'CRM sync', geocoding: 'Geocoding', embeddings: 'Embeddings', images: 'Image resizing', loyalty: 'Loyalty points', ranking: 'Ranking',
  };
  for (const [name, display_name] of Object.entries(businesses)) await post('/v1/businesses?check=skip', { name, display_name, url: url + name });
  await post('/v1/businesses?check=skip', { name: 'billing', display_name: 'Invoices', url: 'http://127.0.0.1:8443/invoices' });
}

/** Uploads a list of users and returns the upload's ID. */
async function users(node, number) {
  const rows = Array.from({ length: number }, (_, n) => JSON.stringify({ user_id: `u_${10_000 + n}`, locale: ['en-US', 'de-DE', 'ja-JP', 'pt-BR'][n % 4] }));
  const reply = await fetch(`${node.url}/v1/uploads`, { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body: rows.join('\n') });
  assert.ok(reply.ok, `upload: ${reply.status}`);
  return (await reply.json()).id;
}

/** Creates tasks that are over when it returns; they leave failures, redrives, a dataset and the fires of a schedule. */
async function past({ node, post, make, ends }) {
  const upload = await users(node, 2400);
  const done = await make('push', 'newsletter-november', null, { source: { type: 'file', upload }, rate: '120/s', labels: { team: 'growth' } });
  const thumbnails = await make('images', 'thumbnails-spring', 900, { rate: '60/s', labels: { team: 'shop' } });
  for (const [day, total] of [['28', 640], ['29', 648], ['30', 655]]) {
    await ends(await make('ranking', `ranking-11-${day}`, total, { rate: '100/s', batch: 10, results: 'keep', publish: 'ranking', publish_if: 'any', publish_key: 'user' }));
  }
  const schedule = await post('/v1/schedules', { business: 'crm', name: 'digest', cron: '0 7,12,18 * * *', zone: 'Europe/Berlin', task: { name: 'digest-{fire_time}', source: range(300), rate: '60/s' } });
  await post(`/v1/schedules/${schedule.id}/backfill`, { from: new Date(Date.now() - 40 * HOUR_MS).toISOString() });
  await Promise.all([done, thumbnails].map((id) => ends(id)));
  for (const [id, filter] of [[done, { codes: ['TOKEN_EXPIRED'] }], [thumbnails, {}]]) await post(`/v1/tasks/${id}/redrives`, { filter, rate: '60/s', start: true });
  return { done, schedule: schedule.id };
}

/** Creates tasks that run, at several rates. */
async function present({ post, make }) {
  const running = await make('push', 'price-drop', 12_000, {
    rate: '15/s', limits: ['sms-gateway'], labels: { team: 'growth' }, metering: { limits: ['88 eur'], cost: ['eur = 0.014'], cost_from: ['eur = 0.014'] },
  });
  await make('crm', 'accounts-backfill', 60_000, { rate: '80/s', batch: 20 });
  await make('geocoding', 'customer-addresses', 14_000, { rate: '25/s', limits: ['maps-api'] });
  await make('embeddings', 'product-texts', 9000, { rate: '8/s', metering: { limits: ['1.5M tokens'], cost: ['tokens = 500'], cost_from: ['tokens = {answer./output/tokens}'] } });
  await make('images', 'product-photos', 9500, { rate: '12/s', labels: { team: 'shop' } });
  await make('billing', 'invoices-november', 8000, { rate: '50/s' });
  const signups = await make('crm', 'signups', null, { open: true, rate: '20/s' });
  await post(`/v1/tasks/${signups}/items`, { items: Array.from({ length: 240 }, (_, n) => ({ account: `a-${7000 + n}` })) });
  return running;
}

/** Creates tasks that stand still: for review, by hand, for want of capacity, or until a time. Returns the one to stop. */
async function waiting({ post, make }) {
  await make('push', 'welcome-series', 12_000, { rate: '50/s', canary: { items: 50 }, labels: { team: 'growth' } });
  await make('loyalty', 'points-recalculation', 40_000, { rate: '40/s', error_budget: '2%' });
  const cancelled = await make('push', 'price-drop-draft', 12_000, { rate: '15/s' });
  await post(`/v1/tasks/${cancelled}/cancel`, { reason: 'wrong list' });
  await make('push', 'black-friday', 90_000, { rate: '100/s', start_at: new Date(Date.now() + 6 * HOUR_MS).toISOString() });
  await make('crm', 'archive-2019', 52_000, { rate: '400/s' });
  await make('geocoding', 'store-locations', 700, { rate: '10/s', start: false });
  return make('images', 'avatars', 4000, { rate: '30/s' });
}

/** Creates everything and lets the node run until its plots have shape. */
export async function furnish(node, { url }) {
  const post = (path, body) => node.call('POST', path, body);
  const read = (id) => node.call('GET', `/v1/tasks/${id}`);
  const ends = (id) => until(`${id} is finished`, async () => (await read(id)).status === 'finished', FINISHED_WITHIN_MS);
  const make = async (business, name, total, members) => {
    const source = total == null ? {} : { source: range(total) };
    return (await post('/v1/tasks', { business, name, start: true, error_budget: 'none', ...source, ...members })).id;
  };
  const tools = { node, post, make, ends };
  await register(post, url);
  const { done, schedule } = await past(tools);
  const running = await present(tools);
  const stopped = await waiting(tools);
  const runsFor = Number(process.env.WINDROW_PICTURES_AFTER_MS ?? 250_000);
  await sleep(runsFor / 3);
  await post(`/v1/tasks/${stopped}/stop`, { reason: 'wait for the new camera profile' });
  await node.call('PATCH', `/v1/tasks/${running}`, { rate: '30/s', reason: 'ends before the shops close' });
  await sleep(runsFor * 2 / 3);
  return { done, running, schedule };
}
