/** @file Shared by the tests: nodes, a browser, and checks for every page. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

export const ROOT = resolve(import.meta.dirname, '../..');
/** Folder of screenshots. */
export const SHOTS = join(ROOT, 'target/ui');
const PROGRAM = process.env.WINDROW ?? join(ROOT, 'target/debug/windrow');
const CHROMIUM = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const STARTED_WITHIN_MS = 60_000;

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Polls until a condition holds. */
export async function until(what, isSo, withinMs = 20_000) {
  const end = Date.now() + withinMs;
  for (;;) {
    const found = await isSo();
    if (found) return found;
    assert.ok(Date.now() < end, `not within ${withinMs} ms: ${what}`);
    await sleep(100);
  }
}

/** Process of the program, with its address once it is logged. */
export class Node {
  constructor(args, environment = {}) {
    this.data = mkdtempSync(join(tmpdir(), 'windrow-ui-'));
    this.args = args;
    this.environment = environment;
    this.port = 0;
  }

  /** Starts the process and waits until it responds. */
  async start() {
    assert.ok(existsSync(PROGRAM), `no program at ${PROGRAM}: build it, or say where it is with WINDROW`);
    this.said = '';
    const env = { ...process.env, WINDROW_NODE__ID: 'dev', ...this.environment };
    this.process = spawn(PROGRAM, this.args(this), { cwd: this.data, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const hear = (text) => { this.said += text; };
    this.process.stdout.on('data', hear);
    this.process.stderr.on('data', hear);
    await until(`an address in: ${this.said}`, () => {
      const found = /listens on http:\/\/127\.0\.0\.1:(\d+)/.exec(this.said);
      if (found) this.port = Number(found[1]);
      return found;
    }, STARTED_WITHIN_MS);
    this.url = `http://127.0.0.1:${this.port}`;
    await until('the node answers', () => fetch(`${this.url}/healthz`).then((reply) => reply.ok, () => false), STARTED_WITHIN_MS);
    return this;
  }

  /** Stops the process with a signal. */
  async stop(signal = 'SIGTERM') {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill(signal);
    const hard = setTimeout(() => this.process.kill('SIGKILL'), 15_000);
    await ended;
    clearTimeout(hard);
  }

  /** Stops the process and deletes its data. */
  async remove() {
    if (this.process.exitCode == null) await this.stop();
    rmSync(this.data, { recursive: true, force: true });
  }

  /** Calls the node's API. */
  async call(method, path, body, token) {
    const reply = await fetch(this.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await reply.text();
    assert.ok(reply.ok, `${method} ${path}: ${reply.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }
}

/** Folder to serve instead of the embedded pages, to work on them without compiling. */
const FOLDER = process.env.WINDROW_UI_DIR;
export const isFolder = Boolean(FOLDER);

export const serve = (node) => ['serve', '--data-dir', node.data, '--listen', `127.0.0.1:${node.port}`, ...(FOLDER ? ['--ui-dir', FOLDER] : [])];

/** Starts a node without sign-in, named `dev`. */
export const devNode = () => new Node(serve, { WINDROW_AUTH__MODE: 'off' }).start();

/** Starts a node that requires a token; `admin` is the first administrator's. */
export async function serveNode() {
  const node = await new Node(serve).start();
  node.admin = readFileSync(join(node.data, 'admin.token'), 'utf8').trim();
  return node;
}

/** Launches a browser. */
export const browser = () => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });

/** Collects faults of a page: errors, warnings, foreign requests. */
export function watch(page, origin) {
  const faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !/GPU|WebGL|willReadFrequently/.test(message.text())) faults.push(`${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => faults.push(`error: ${error.stack}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) faults.push(`request off the origin: ${request.url()}`);
  });
  return faults;
}

/** Describes a page that overflows its width; null if it doesn't. */
export async function overflow(page) {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return null;
    const wide = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > clientWidth + 1).slice(0, 5);
    return `${scrollWidth} > ${clientWidth}: ${wide.map((one) => `${one.tagName}.${one.className?.baseVal ?? one.className}`).join(', ')}`;
  });
}

/** Findings of axe, one line each. */
export async function axe(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }));
  return found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.split('\n')[1] ?? ''}`).join(' | ')}`);
}

/** Saves a screenshot of the page. */
export async function shot(page, name, options = {}) {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), ...options });
}
