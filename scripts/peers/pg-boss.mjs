// pg-boss over PostgreSQL. insert of 5,000; two loops of fetch(5,000) and complete. Its own `work()` polls at most twice
// a second, which would be slower. The pool and the queue are as they come; nothing else was tuned.
import pg from 'pg';
import PgBoss from 'pg-boss';
import { batches, postgres, postgresBytes, report, seconds } from './measure.mjs';

const BATCH = 5000;
const LOOPS = 2;

const pool = new pg.Pool({ connectionString: postgres });
// Neither cron nor upkeep, which would run beside what is measured.
const boss = new PgBoss({ connectionString: postgres, schedule: false, supervise: false });
await boss.start();
await boss.createQueue('noop');
const empty = await postgresBytes(pool);

const enqueue_s = await seconds(async () => {
  for (const batch of batches(BATCH)) {
    await boss.insert(batch.map((index) => ({ name: 'noop', data: { index } })));
  }
});
const bytes = (await postgresBytes(pool)) - empty;

async function drain() {
  for (;;) {
    const jobs = await boss.fetch('noop', { batchSize: BATCH });
    if (jobs.length === 0) return;
    await boss.complete('noop', jobs.map((job) => job.id));
  }
}
const drain_s = await seconds(() => Promise.all(Array.from({ length: LOOPS }, drain)));

const left = await pool.query("SELECT count(*) FROM pgboss.job WHERE name = 'noop' AND state <> 'completed'");
if (Number(left.rows[0].count) > 0) throw new Error(`${left.rows[0].count} jobs are not done`);
report({ peer: 'pg-boss', enqueue_s, drain_s, bytes });
process.exit(0);
