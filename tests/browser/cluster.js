/** @file Private database server, and nodes that share it. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Node, serve, until } from './support.js';

const PROGRAMS = '/usr/lib/postgresql';
const PASSWORD = 'wind-row';

/** Free port. */
async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Runs a command as `postgres` if this is root, as which the server refuses to run. */
const asUser = (command) => (process.getuid() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups', '--', ...command] : command);

function run(command, options = {}) {
  const [program, ...args] = command;
  return execFileSync(program, args, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

/** PostgreSQL with the database `windrow`. */
export class Postgres {
  async start() {
    const versions = existsSync(PROGRAMS) ? readdirSync(PROGRAMS).sort((a, b) => b - a) : [];
    assert.ok(versions.length, `no PostgreSQL below ${PROGRAMS}: install the package postgresql`);
    const program = (name) => join(PROGRAMS, versions[0], 'bin', name);
    this.place = mkdtempSync(join(tmpdir(), 'windrow-postgres-'));
    writeFileSync(join(this.place, 'secret'), PASSWORD);
    if (process.getuid() === 0) run(['chown', '-R', 'postgres', this.place]);
    const data = join(this.place, 'data');
    run(asUser([program('initdb'), '-D', data, '-U', 'windrow', '-N', '-E', 'UTF8', '--locale=C', '-A', 'scram-sha-256', `--pwfile=${join(this.place, 'secret')}`]));
    this.port = await freePort();
    const [first, ...rest] = asUser([program('postgres'), '-D', data, '-p', String(this.port), '-k', this.place, '-c', 'listen_addresses=127.0.0.1', '-c', 'shared_buffers=32MB']);
    this.process = spawn(first, rest, { cwd: '/', stdio: 'ignore' });
    const create = () => {
      run([program('psql'), '-h', '127.0.0.1', '-p', String(this.port), '-U', 'windrow', '-qX', '-d', 'postgres', '-c', 'CREATE DATABASE windrow'], { env: { ...process.env, PGPASSWORD: PASSWORD } });
      return true;
    };
    await until('the database is there', () => { try { return create(); } catch { return false; } }, 60_000);
    this.url = `postgres://windrow@127.0.0.1:${this.port}/windrow`;
    return this;
  }

  async remove() {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGINT');
    await ended;
    rmSync(this.place, { recursive: true, force: true });
  }
}

/** Starts nodes of these names on one database, without sign-in, with leases that expire within seconds. */
export async function nodesOn(postgres, names) {
  const place = mkdtempSync(join(tmpdir(), 'windrow-key-'));
  const secret = (name, text) => {
    writeFileSync(join(place, name), text);
    chmodSync(join(place, name), 0o600);
    return join(place, name);
  };
  // 32 bytes in base64.
  const [key, password] = [secret('key', `${'A'.repeat(43)}=\n`), secret('password', PASSWORD)];
  const nodes = [];
  for (const name of names) {
    const node = new Node(serve, {
      WINDROW_NODE__ID: name, WINDROW_AUTH__MODE: 'off', WINDROW_AUTH__KEY_FILE: key,
      WINDROW_STORE__URL: postgres.url, WINDROW_STORE__PASSWORD_FILE: password, WINDROW_STORE__MIGRATE_ON_START: 'true',
      WINDROW_CLUSTER__LEASE_TTL: '3s', WINDROW_CLUSTER__LEASE_RENEW: '500ms',
    });
    nodes.push(await node.start());
  }
  return { nodes, forget: () => rmSync(place, { recursive: true, force: true }) };
}
