// BullMQ over Redis. addBulk of 5,000; 100 jobs at once, which did as well as 20 and 500; jobs removed once done.
import { Queue, Worker } from 'bullmq';
import Redis from 'ioredis';
import { batches, items, redis, redisBytes, report, seconds } from './measure.mjs';

const BATCH = 5000;
const CONCURRENCY = 100;

const connection = new Redis(redis, { maxRetriesPerRequest: null });
const queue = new Queue('noop', { connection });
await queue.waitUntilReady();
const empty = await redisBytes(connection);

const enqueue_s = await seconds(async () => {
  for (const batch of batches(BATCH)) {
    await queue.addBulk(batch.map((index) => ({ name: 'noop', data: { index }, opts: { removeOnComplete: true } })));
  }
});
const bytes = (await redisBytes(connection)) - empty;

const worker = new Worker('noop', async () => {}, { connection, concurrency: CONCURRENCY, autorun: false });
await worker.waitUntilReady();
const drain_s = await seconds(async () => {
  let done = 0;
  // It is told once Redis has recorded that the job is done.
  const all = new Promise((resolve) => worker.on('completed', () => ++done === items && resolve()));
  worker.run();
  await all;
});

report({ peer: 'bullmq', enqueue_s, drain_s, bytes });
process.exit(0);
