// What the peers in Node share: the clock, the sizes, and the one line of JSON that each prints.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const redis = process.env.REDIS_URL;
export const postgres = process.env.DATABASE_URL;

// Items in all, from the command line.
export const items = Number(process.argv[2]);

// The indexes of the items in batches of this size.
export function* batches(size) {
  for (let first = 0; first < items; first += size) {
    yield Array.from({ length: Math.min(size, items - first) }, (_, at) => first + at);
  }
}

export async function seconds(work) {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}

// The bytes that Redis holds for its data.
export async function redisBytes(client) {
  return Number((await client.info('memory')).match(/used_memory:(\d+)/)[1]);
}

// The bytes of all tables and indexes of the database; its log (WAL) comes on top.
export async function postgresBytes(pool) {
  const { rows } = await pool.query('SELECT pg_database_size(current_database()) AS bytes');
  return Number(rows[0].bytes);
}

// Waits until the query, which counts what is left, says 0.
export async function untilNoneIsLeft(pool, query) {
  while (Number((await pool.query(query)).rows[0].count) > 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// The installed version of a package.
export function versionOf(name) {
  return require(`./node_modules/${name}/package.json`).version;
}

export function report({ peer, version = versionOf(peer), enqueue_s, drain_s, bytes }) {
  console.log(JSON.stringify({ peer, version, n: items, enqueue_s, drain_s, bytes }));
}
