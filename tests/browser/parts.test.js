/** @file Tests without a browser: the strip's arithmetic, sums, attention, translations, vendored files. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { causes } from '../../ui/app/lib/attention.js';
import { byDay } from '../../ui/app/lib/calendar.js';
import * as axes from '../../ui/app/lib/axes.js';
import { patchOf, taskPatch } from '../../ui/app/lib/patch.js';
import { flag, sh } from '../../ui/app/lib/command.js';
import * as strip from '../../ui/app/lib/strip.js';
import words from '../../ui/app/words/zh-CN.js';
import { ROOT } from './support.js';

const UI = join(ROOT, 'ui');

function files(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

const sources = files(join(UI, 'app')).map((path) => [relative(UI, path), readFileSync(path, 'utf8')]);

test('cells are read as the API writes them', () => {
  assert.deepEqual([...strip.parse('F1S3P2K1R1A1')], [2, 0, 0, 0, 1, 1, 3, 4, 5]);
  assert.deepEqual([...strip.parse('')], []);
});

test('a change is sent as what differs, and one source whole', () => {
  assert.deepEqual(patchOf({ a: 1, b: { c: 2, d: 3 }, e: [1] }, { b: { c: 2, d: 4 }, e: [1, 2] }), { a: null, b: { d: 4 }, e: [1, 2] });
  assert.deepEqual(patchOf({ a: 1 }, { a: 1 }), {});
  const before = { source: { type: 'range', total: 5 }, name: 'b-{fire_time}' };
  assert.deepEqual(taskPatch(before, { source: { type: 'inline', items: [1] } }), { name: null, source: { type: 'inline', items: [1] } });
  assert.deepEqual(taskPatch(before, { ...before, rate: '5/s' }), { rate: '5/s' });
  assert.equal(taskPatch(before, 'no JSON'), 'no JSON');
});

test('the worst of several cells is shown', () => {
  const { cells, size } = strip.merge(strip.parse('S9A1S9F1P20'), 4);
  assert.equal(size, 10);
  assert.deepEqual([...cells], [5, 2, 1, 1]);
});

test('merging loses no kind of trouble', () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (let round = 0; round < 200; round += 1) {
    const cells = Uint8Array.from({ length: 1 + Math.floor(random() * 500) }, () => Math.floor(random() * 6));
    const { cells: merged } = strip.merge(cells, 1 + Math.floor(random() * 60));
    assert.equal(Math.max(...merged), Math.max(...cells));
  }
});

test('cells are as large as all have room, and do not flicker', () => {
  assert.equal(strip.layout(1000, 60, 500).pitch, 10);
  assert.equal(strip.layout(1000, 60, 700).pitch, 8);
  assert.equal(strip.layout(1000, 60, 590, 8).pitch, 8);
  assert.equal(strip.layout(1000, 60, 290, 8).pitch, 10);
  assert.equal(strip.layout(1000, 60, 1_000_000).pitch, 3);
});

test('what is shown of a window begins at watermark and ends with free places', () => {
  const found = strip.shown({ cells: 'R1S2F1P96', watermark: 40, high_water: 44, capacity: 100, items_per_cell: 1 }, 20);
  assert.deepEqual([...found.cells.subarray(0, 5)], [4, 0, 0, 2, 1]);
  assert.equal(found.cells.length, 20);
  assert.deepEqual(found.counts, [2, 0, 1, 0, 1, 0]);
});

test('several shards share a strip, and a cell leads to its item', () => {
  const shard = (number, watermark, cells) => ({ shard: number, cells, watermark, high_water: watermark + 3, capacity: 3, items_per_cell: 1 });
  const picture = strip.together([shard(0, 40, 'F1S2'), shard(1, 900, 'R1F2')], 20);
  assert.deepEqual([...picture.cells], [2, 0, 0, strip.GAP, 4, 2, 2]);
  assert.deepEqual(picture.counts, [2, 0, 3, 0, 1, 0]);
  const at = (cell) => { const found = strip.itemsAt(picture, cell); return found && [found.shard.shard, found.first, found.size]; };
  assert.deepEqual([at(0), at(2), at(3), at(4), at(6)], [[0, 40, 1], [0, 42, 1], null, [1, 900, 1], [1, 902, 1]]);
  const many = Array.from({ length: 64 }, (_, number) => shard(number, number * 10, 'F3'));
  assert.ok(strip.together(many, 200).cells.length <= 200);
});

test('only what needs a person is a cause, and the same causes are one', () => {
  const since = new Date(0).toISOString();
  const task = (members) => ({ id: 't1', business: 'push', since, ...members });
  const of = (tasks, more = {}) => causes({ tasks, schedules: [], reasons: [], ...more }, 600_000);
  const kinds = (members) => of([task(members)]).map((one) => one.kind);
  assert.deepEqual(kinds({ status: 'stopped', stop_reason: 'operator' }), []);
  assert.deepEqual(kinds({ status: 'stopped', stop_reason: 'canary_done' }), ['canary']);
  assert.deepEqual(kinds({ status: 'stopped', stop_reason: 'error_budget' }), ['stopped']);
  assert.deepEqual(kinds({ status: 'queued' }), ['queued']);
  assert.deepEqual(kinds({ status: 'queued', start_at: since }), []);
  assert.deepEqual(kinds({ status: 'awaiting_business' }), ['awaited']);
  assert.deepEqual(kinds({ status: 'running', handler_down: {} }), ['outage']);
  for (const byItself of [{ status: 'running' }, { status: 'running', last_error: {}, status_text: 'calls fail' }, { status: 'recovering' }, { status: 'finished', result: 'with_failures' }]) assert.deepEqual(kinds(byItself), []);
  const published = (generation, withheld) => task({ status: 'finished', publish: { dataset: 'board', generation, withheld } });
  assert.deepEqual(of([published(3, true), published(2, false)]).map((one) => one.about), ['board']);
  assert.deepEqual(of([published(3, true), published(4, false)]), [], 'a later generation is out');
  const canary = (id) => task({ id, status: 'stopped', stop_reason: 'canary_done' });
  const down = (id, business) => task({ id, business, status: 'running', handler_down: {} });
  const found = of([canary('t1'), down('t2', 'push'), canary('t3'), down('t4', 'mail'), down('t5', 'push')], { schedules: [{ id: 's1', trouble: 'late' }, { id: 's2', trouble: 'late', paused: true }, { id: 's3' }] });
  assert.deepEqual(found.map((one) => [one.kind, one.about, one.members.map((member) => member.id).join()]), [['outage', 'push', 't2,t5'], ['outage', 'mail', 't4'], ['schedule', '', 's1'], ['canary', '', 't1,t3']]);
});

test('the state of a task is one sentence', async () => {
  globalThis.navigator ??= { language: 'en' };
  globalThis.localStorage ??= { getItem: () => null };
  const { sentence, tone } = await import('../../ui/app/lib/sentence.js');
  const noon = Date.parse('2026-11-20T12:00:00');
  const ago = (seconds) => new Date(noon - seconds * 1000).toISOString();
  const task = (members) => ({ id: 't1', business: 'push', rate: '20/s', total: 100, since: ago(60), counts: { failed: 0, parked: 0, in_flight: 2 }, progress: { settled: 40, of: 100 }, ...members });
  const said = (members) => sentence(task(members), noon);
  assert.equal(said({ status: 'created' }), 'Not started: 100 items');
  assert.equal(said({ status: 'running', actual_rate: 19.94 }), '40 of 100 items, 19.9 of 20/s');
  assert.match(said({ status: 'running', actual_rate: 20, eta_seconds: 180 }), /^40 of 100 items, 20 of 20\/s; 3m left, done at about (\S+ )?12:03$/);
  assert.equal(said({ status: 'running', handler_down: { since: ago(90), code: 'CONNECT' } }), 'The handler has been down for 1m 30s: CONNECT');
  assert.equal(said({ status: 'stopping' }), '2 calls in flight finish first');
  assert.equal(said({ status: 'stopped', stop_reason: 'error_budget' }), 'stopped: error budget (1m ago), at 40 of 100 items');
  assert.equal(said({ status: 'finished', started_at: ago(90), finished_at: ago(60), counts: { failed: 3 }, redriven: { recovered: 1 } }), '40 of 100 items, 3 failed, 1 recovered by redrives, ended 1m ago after 30s');
  const tones = [{ status: 'running' }, { status: 'running', handler_down: {} }, { status: 'queued' }, { status: 'stopped', stop_reason: 'operator' }, { status: 'stopped', stop_reason: 'deadline' }];
  assert.deepEqual(tones.map(tone), [null, 'bad', 'warn', null, 'bad']);
});

test('a business is registered as the command line does, which never shows a secret', async () => {
  const { BLANK, bodyOf, commandOf } = await import('../../ui/app/lib/registration.js');
  const request = { ...BLANK, name: 'orders', kind: 'request', call: 'POST https://push.internal/{id}', json: '{"id": {id}}', headers: 'authorization: Bearer {secret.KEY}\nx-a: b:c', secrets: 'KEY=s3=cret', hooks: ['prepare'], hookUrl: 'http://push.internal/h' };
  assert.deepEqual(bodyOf(request), {
    name: 'orders', request: { call: 'POST https://push.internal/{id}', headers: { authorization: 'Bearer {secret.KEY}', 'x-a': 'b:c' }, json: '{"id": {id}}' },
    request_secrets: { KEY: 's3=cret' }, hooks: { prepare: { url: 'http://push.internal/h' } },
  });
  assert.equal(commandOf(request), `windrow biz register orders --request 'POST https://push.internal/{id}' --json '{"id": {id}}' --header 'authorization: Bearer {secret.KEY}' --header 'x-a: b:c' --secret KEY=@KEY.txt --hook prepare=http://push.internal/h`);
  const url = { ...BLANK, name: 'push', url: 'http://push.internal/', secret_headers: 'x-key: hidden', hooks: ['finished'], rate: '5/s' };
  assert.deepEqual(bodyOf(url), { name: 'push', url: 'http://push.internal/', secret_headers: { 'x-key': 'hidden' }, hooks: { finished: {} }, defaults: { rate: '5/s' } });
  assert.ok(!commandOf(url).includes('hidden'));
});

test('what is left is what the node says, and only while it runs', async () => {
  globalThis.navigator ??= { language: 'en' };
  globalThis.localStorage ??= { getItem: () => null };
  const { isLeast, secondsLeft, timeLeft } = await import('../../ui/app/lib/task.js');
  const at = (status, eta_seconds) => secondsLeft({ status, eta_seconds });
  assert.deepEqual([at('running', 30), at('running', null), at('stopped', 30)], [30, null, null]);
  const told = (parked) => timeLeft({ status: 'running', counts: { parked }, eta_seconds: 30 });
  assert.deepEqual([told(0), told(10)], ['30s', '30s+']);
  assert.deepEqual([0, 10].map((parked) => isLeast({ counts: { parked } })), [false, true]);
});

test('the grounds of a failure are a sentence', async () => {
  globalThis.navigator ??= { language: 'en' };
  globalThis.localStorage ??= { getItem: () => null };
  const { judgement } = await import('../../ui/app/lib/judgement.js');
  const told = (charged, attempts, unconfirmed, others_answered) => judgement({ charged, attempts, unconfirmed, others_answered });
  assert.equal(told(5, 5, false, 1214), '5 attempts, all counted: 1,214 other calls were answered meanwhile');
  assert.equal(told(1, 3, false, 1), '1 of 3 attempts counted: 1 other call was answered meanwhile');
  assert.deepEqual([told(1, 1, false, 0), told(0, 4, false, 0), told(2, 3, false, null)], ['1 attempt, counted', 'no attempt counts', '2 of 3 attempts counted']);
  assert.equal(told(0, 5, true, 0), 'unconfirmed: no other call was answered to compare it with');
  assert.equal(told(3, 5, true, 3), 'unconfirmed: 3 other calls were answered meanwhile, too few to tell');
});

test('a redrive is asked for as the command line does', async () => {
  const { redrive } = await import('../../ui/app/lib/actions.js');
  const task = { id: 't1', business: 'push', rate: '5/s' };
  const asked = (filter) => {
    const { cli, typed, body } = redrive(task, filter, 3);
    return [String(cli), typed, body({ rate: '5/s' }).filter];
  };
  assert.deepEqual(asked({ unconfirmed: true }), ['windrow task redrive t1 --unconfirmed', undefined, { unconfirmed: true }]);
  assert.deepEqual(asked({ codes: ['A', 'B'] }), ['windrow task redrive t1 --code A,B', undefined, { codes: ['A', 'B'] }]);
  assert.deepEqual(asked({}), ['windrow task redrive t1 --all', 't1', undefined], 'all want the name typed');
});

test('an end has its day unless that is today', async () => {
  const { near, percentOf, rate } = await import('../../ui/app/lib/format.js');
  assert.deepEqual([0, 5 / 3600, 0.25, 12.34].map(rate), ['0', '0.0014', '0.25', '12.3']);
  const noon = Date.parse('2026-11-20T12:00:00');
  assert.equal(near(noon + 3_600_000, noon), '13:00');
  assert.equal(near(noon + 38 * 86_400_000, noon), '2026-12-28 12:00');
  assert.deepEqual([0, 38.9, 100, null].map(percentOf), ['0.0%', '38.9%', '100%', '–']);
});

test('spans have the form that they have elsewhere', async () => {
  const { span } = await import('../../ui/app/lib/format.js');
  const forms = [null, 0, 0.0003, 0.45, 1, 2.4, 12, 60, 125, 3599, 3600, 12_000, 86_400, 367_200].map(span);
  assert.deepEqual(forms, ['–', '0s', '0.3ms', '450ms', '1s', '2.4s', '12s', '1m', '2m 05s', '59m 59s', '1h', '3h 20m', '1d', '4d 6h']);
});

test('a rate that the autopilot finds is shown as such, and nothing is slower than it', async () => {
  const { isSlow, mostRate, wantedRate } = await import('../../ui/app/lib/task.js');
  const { BLANK, summary } = await import('../../ui/app/lib/draft.js');
  const of = (rate) => [wantedRate({ rate }), mostRate({ rate }), isSlow({ status: 'running', rate }, 1)];
  assert.deepEqual(of('auto'), ['auto', null, false]);
  assert.deepEqual(of('auto up to 500/s'), ['auto, at most 500/s', 500, false]);
  assert.deepEqual(of('500/s'), ['500', 500, true]);
  assert.deepEqual(of('unlimited'), ['∞', null, false]);
  const said = (rate) => summary({ ...BLANK, rate }, 0).pace;
  assert.deepEqual(['auto', 'auto up to 5/s', '5/s', 'unlimited'].map(said),
    ['at the rate that the autopilot finds', 'at the rate that the autopilot finds, at most 5/s', 'at 5/s', 'as fast as the handler can']);
});

test('an open task that waits for items is not slow', async () => {
  const { isSlow, waitsForItems } = await import('../../ui/app/lib/task.js');
  const task = (stall) => ({ status: 'running', rate: '300/s', live: { stall } });
  assert.deepEqual(['items', null].map((stall) => [waitsForItems(task(stall)), isSlow(task(stall), 0)]), [[true, false], [false, true]]);
});

test('fires stand on their days', () => {
  const rows = byDay([{ at: 0 }, { at: 43_200_000 }, { at: 86_400_000 }, { at: -1 }, { at: 172_800_000 }], [0, 86_400_000, 172_800_000], true);
  assert.deepEqual(rows.map((row) => row.moments.map((moment) => moment.part)), [[0, 0.5], [0]]);
  const short = byDay([{ at: 82_799_000 }, { at: 82_800_000 }], [0, 82_800_000, 169_200_000], true);
  assert.deepEqual(short.map((row) => row.moments.length), [1, 1], 'a day of 23 hours');
});

test('axes have round numbers, as many as there is room for', () => {
  assert.deepEqual(axes.numbers(108, 4), [0, 50, 100]);
  assert.deepEqual(axes.numbers(1.08, 4), [0, 0.5, 1]);
  assert.deepEqual(axes.numbers(0.0108, 4), [0, 0.005, 0.01]);
  assert.deepEqual(axes.numbers(0, 4), [0]);
  let seed = 11;
  for (let round = 0; round < 500; round += 1) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    const [top, most] = [(seed / 1000) ** 2, 1 + (seed % 7)];
    const found = axes.numbers(top, most);
    assert.ok(found.length <= most + 1 && found.at(-1) <= top * 1.000001, `${top} ${most} ${found}`);
  }
});

test('axes have round times by the clock that is shown', () => {
  assert.deepEqual(axes.times(1001, 1300, 5), { step: 60, at: [1020, 1080, 1140, 1200, 1260] });
  assert.deepEqual(axes.times(0, 86_400, 4, 19_800), { step: 21_600, at: [1800, 23_400, 45_000, 66_600] });
  assert.deepEqual(axes.times(5, 5, 3), { step: 1, at: [5] });
  assert.equal(axes.times(0, 400 * 86_400, 5).at.length, 6);
});

test('the nearest point is found, and where a line breaks', () => {
  assert.deepEqual([-1, 0, 4, 6, 99].map((at) => axes.nearest([0, 5, 7], at)), [0, 0, 1, 1, 2]);
  assert.equal(axes.nearest([], 3), null);
  assert.deepEqual(axes.stretches([null, 1, 2, null, 3, null]), [[1, 2], [4, 4]]);
});

test('every text is there in Chinese, with the same places for values', () => {
  const places = (text) => [...text.matchAll(/\{(\w+)[^}]*\}/g)].map((found) => found[1]).sort().join();
  const faults = sources.filter(([name]) => !name.includes('words')).flatMap(([name, text]) => [...text.matchAll(/\bt\('((?:[^'\\]|\\.)*)'/g)]
    .map((found) => found[1])
    .filter((key) => words[key] === undefined || places(words[key]) !== places(key))
    .map((key) => `${name}: ${key}`));
  assert.deepEqual(faults, []);
});

test('nothing is ever shown as HTML, and no token is kept', () => {
  for (const [name, text] of sources) {
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function|srcdoc/, name);
    if (name !== 'app/lib/kept.js') assert.doesNotMatch(text, /localStorage|sessionStorage|indexedDB|document\.cookie/, name);
  }
});

test('files are short and say what they are', () => {
  for (const [name, text] of sources) {
    assert.ok(text.split('\n').length <= 400, name);
    assert.match(text, /^\/\*\* @file /, name);
  }
});

test('what is needed at first is fetched at once', () => {
  const needed = new Set();
  const follow = (path) => {
    if (needed.has(path)) return;
    needed.add(path);
    for (const [, to] of readFileSync(path, 'utf8').matchAll(/^import .*?from '(\.[^']+)';/gm)) follow(join(path, '..', to));
  };
  follow(join(UI, 'app/main.js'));
  needed.delete(join(UI, 'app/main.js'));
  const index = readFileSync(join(UI, 'index.html'), 'utf8');
  const preloaded = [...index.matchAll(/rel="modulepreload" href="\/ui\/([^"]+)"/g)].map((found) => join(UI, found[1]));
  assert.deepEqual(preloaded.sort(), [...needed].sort());
});

test('no address of elsewhere stands in the pages', () => {
  const own = [...sources, ...['index.html', 'app.css', 'parts.css', 'pages.css', 'theme.js'].map((name) => [name, readFileSync(join(UI, name), 'utf8')])];
  for (const [name, text] of own) {
    const found = [...text.matchAll(/https?:\/\/[\w.-]+/g)].map(String).filter((one) => !/127\.0\.0\.1|push\.internal|www\.w3\.org/.test(one));
    assert.deepEqual(found, [], name);
  }
});

test('what is vendored is what VENDOR.md says', () => {
  const said = readFileSync(join(UI, 'vendor/VENDOR.md'), 'utf8');
  for (const path of files(join(UI, 'vendor')).filter((one) => !one.endsWith('.md'))) {
    const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
    assert.ok(said.includes(`\`${relative(join(UI, 'vendor'), path)}\``) && said.includes(hash), `${path} ${hash}`);
  }
});

test('a value stays one word of a command, whatever a handler or a person chose', () => {
  const hostile = "X;touch${IFS}/tmp/p;#`id`\n'";
  const line = sh`windrow task fail t1 --code ${hostile} ${[flag('call_timeout', '10s'), '', false, sh`--all`, 'a b']} ${''}`;
  const words = execFileSync('sh', ['-c', `for word in ${line}; do printf '%s\\0' "$word"; done`], { encoding: 'utf8' }).split('\0');
  assert.deepEqual(words, ['windrow', 'task', 'fail', 't1', '--code', hostile, '--call-timeout', '10s', '--all', 'a b', '', '']);
});

test('no command is put together but by the template that quotes', () => {
  const byHand = /(?<!sh)`(windrow|curl|--[a-z])[^`]*\$\{/;
  assert.deepEqual(sources.filter(([name, text]) => name !== 'app/lib/command.js' && byHand.test(text)).map(([name]) => name), []);
});
