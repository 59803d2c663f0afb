// The way of River and its kind: a table of jobs in PostgreSQL that workers lock with SELECT … FOR UPDATE SKIP LOCKED.
// River itself is a Go library, which this script can't install. As River does, a job is first taken (one UPDATE of a batch
// to running) and then completed (one UPDATE of the batch), each durable, so a job is on disk before it runs.
// Left out is what River does besides: unique jobs, the args and errors of each attempt, priorities and queues beyond the
// index, notifications, a leader that rescues, schedules and cleans. It is an upper limit for that way, not River's number.
import pg from 'pg';
import { batches, postgres, postgresBytes, report, seconds, versionOf } from './measure.mjs';

const BATCH = 5000;
const LOOPS = 2;

const pool = new pg.Pool({ connectionString: postgres });
await pool.query(`
  CREATE TABLE job (
    id bigserial PRIMARY KEY,
    state text NOT NULL DEFAULT 'available',
    attempt smallint NOT NULL DEFAULT 0,
    args jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    finalized_at timestamptz);
  CREATE INDEX job_fetching ON job (state, id);`);
const empty = await postgresBytes(pool);

const enqueue_s = await seconds(async () => {
  for (const batch of batches(BATCH)) {
    const args = batch.map((index) => JSON.stringify({ index }));
    await pool.query('INSERT INTO job (args) SELECT unnest($1::jsonb[])', [args]);
  }
});
const bytes = (await postgresBytes(pool)) - empty;

const TAKE = `
  UPDATE job SET state = 'running', attempt = attempt + 1 WHERE id IN (
    SELECT id FROM job WHERE state = 'available' ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
  RETURNING id, args`;
const COMPLETE = "UPDATE job SET state = 'completed', finalized_at = now() WHERE id = ANY($1::bigint[])";

async function noop(_args) {}

async function drain() {
  for (;;) {
    const { rows } = await pool.query(TAKE);
    if (rows.length === 0) return;
    await Promise.all(rows.map((row) => noop(row.args)));
    await pool.query(COMPLETE, [rows.map((row) => row.id)]);
  }
}
const drain_s = await seconds(() => Promise.all(Array.from({ length: LOOPS }, drain)));

const left = await pool.query("SELECT count(*) FROM job WHERE state <> 'completed'");
if (Number(left.rows[0].count) > 0) throw new Error(`${left.rows[0].count} jobs are not done`);
report({ peer: 'skip-locked', version: `pg ${versionOf('pg')}`, enqueue_s, drain_s, bytes });
process.exit(0);
