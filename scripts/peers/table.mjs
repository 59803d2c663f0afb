// Makes the table of what the rounds measured: `table.mjs LINES RESULT`, a file of JSON lines and the JSON file to write.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';

const [linesFile, resultFile] = process.argv.slice(2);
const runs = readFileSync(linesFile, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

// Windrow has no phase of enqueuing: its runs say the total.
const totalOf = (run) => run.total ?? run.n / (run.enqueue_s + run.drain_s);
const windrow = new Map(runs.filter((run) => run.peer === 'windrow').map((run) => [run.round, totalOf(run)]));

function spread(values) {
  const known = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (known.length === 0) return null;
  return { min: known[0], median: known[Math.floor(known.length / 2)], max: known.at(-1) };
}

function row(peer) {
  const of = runs.filter((run) => run.peer === peer);
  const { version, n } = of[0];
  return {
    peer,
    version,
    n,
    enqueue: spread(of.map((run) => run.n / run.enqueue_s)),
    drain: spread(of.map((run) => run.n / run.drain_s)),
    total: spread(of.map(totalOf)),
    bytes_per_item: spread(of.filter((run) => run.bytes !== null).map((run) => run.bytes / run.n)),
    // Of one round: both met the same mood of the machine.
    windrow_ratio: spread(of.map((run) => windrow.get(run.round) / totalOf(run))),
  };
}

const rows = [...new Set(runs.map((run) => run.peer))].map(row);

const whole = (value) => Math.round(value).toLocaleString('en-US').replaceAll(',', ' ');
const median = (of) => (of ? whole(of.median) : '-');
const bytes = (of) => (of ? (of.median < 1 ? of.median.toFixed(5) : whole(of.median)) : '-');
const ratio = (of) => (of ? (of.median < 10 ? of.median.toFixed(1) : whole(of.median)) : '-');
const cells = [
  ['peer', 'version', 'N', 'enqueue/s', 'drain/s', 'items/s min / median / max', 'bytes/item', 'Windrow ÷ it'],
  ...rows.map((row) => [
    row.peer,
    row.version,
    whole(row.n),
    median(row.enqueue),
    median(row.drain),
    [row.total.min, row.total.median, row.total.max].map(whole).join(' / '),
    bytes(row.bytes_per_item),
    ratio(row.windrow_ratio),
  ]),
];
const widths = cells[0].map((_, at) => Math.max(...cells.map((line) => line[at].length)));
for (const line of cells) {
  console.log(line.map((cell, at) => (at < 2 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join('  ').trimEnd());
}

const caveats = [
  'items/s is N / (time to enqueue + time to drain), one after the other, without the start of the workers.',
  'The peers store each item before it runs, acknowledge it one by one or in batches, and carry any payload. Windrow stores the',
  'progress of indexed items, whose size does not grow with their number, and after a crash repeats up to what was not yet saved.',
  'So the ratio says what that saves where items have an index; it says nothing about queues in general.',
  `Redis: nothing on disk. PostgreSQL: durable commits, shared_buffers ${process.env.SHARED_BUFFERS}; bytes without its log (WAL).`,
  'The settings of each peer are in its file in scripts/peers; a short sweep at most chose them.',
];
if (windrow.size === 0) caveats.push('Windrow was not measured in this run.');
console.log(`\n${caveats.join('\n')}`);

const machine = { cpu: cpus()[0].model, cores: cpus().length, node: process.version };
writeFileSync(resultFile, `${JSON.stringify({ machine, rows, caveats }, null, 2)}\n`);
