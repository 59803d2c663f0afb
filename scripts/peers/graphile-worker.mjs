// graphile-worker over PostgreSQL. addJobs of 5,000; 96 jobs at once from a local queue of 2,000; what is done is written in
// batches without a delay. These were the best of a short sweep.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { batches, postgres, postgresBytes, report, seconds, untilNoneIsLeft } from './measure.mjs';

const BATCH = 5000;
const CONCURRENCY = 96;
const LOCAL_QUEUE = 2000;

// A line a job would cost more than the job.
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString: postgres });
const utils = await makeWorkerUtils({ connectionString: postgres, logger });
await utils.migrate();
const empty = await postgresBytes(pool);

const enqueue_s = await seconds(async () => {
  for (const batch of batches(BATCH)) {
    await utils.addJobs(batch.map((index) => ({ identifier: 'noop', payload: { index } })));
  }
});
const bytes = (await postgresBytes(pool)) - empty;

const worker = {
  connectionString: postgres,
  concurrentJobs: CONCURRENCY,
  localQueue: { size: LOCAL_QUEUE },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const drain_s = await seconds(async () => {
  await run({ preset: { worker: { ...worker, logger } }, taskList: { noop: async () => {} }, noHandleSignals: true });
  // A job that is done is deleted.
  await untilNoneIsLeft(pool, 'SELECT count(*) FROM graphile_worker._private_jobs');
});

report({ peer: 'graphile-worker', enqueue_s, drain_s, bytes });
process.exit(0);
