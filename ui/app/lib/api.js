/** @file Calls to the public API. The dashboard reads and changes everything through here or live.js. */
import { t } from './i18n.js';

/** Error of a call: the problem that the node reported, or a missing response. */
export class ApiError extends Error {
  /** @param {{title: string, status: number, detail?: string, try?: string[], type?: string, request_id?: string, errors?: object[]}} problem */
  constructor(problem) {
    super(problem.detail ?? problem.title);
    this.problem = problem;
  }

  get status() {
    return this.problem.status;
  }

  /** Stable slug of the problem: `not-found`. */
  get kind() {
    return (this.problem.type ?? '').split('/').pop();
  }
}

const noAnswer = () => ({
  title: t('The node is not responding'),
  status: 0,
  detail: t('It may be restarting, or the network is down.'),
  try: [t('wait: this page retries by itself'), 'windrow node list --server <another node>'],
});

/** Random idempotency key. */
export function uniqueKey() {
  const random = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(random, (part) => part.toString(16).padStart(8, '0')).join('');
}

function headersOf(method, body, headers) {
  const all = { accept: 'application/json', 'windrow-client': 'ui', ...headers };
  if (method === 'POST') all['idempotency-key'] = uniqueKey();
  if (body !== undefined && !(body instanceof Blob)) all['content-type'] = 'application/json';
  return all;
}

async function problemOf(reply) {
  const fallback = { title: t('The node answered with status {status}', { status: reply.status }), status: reply.status };
  try {
    return { ...fallback, ...(await reply.json()) };
  } catch {
    return fallback;
  }
}

/** Dispatches `refused` when a call is rejected because nobody is signed in. */
export const refused = new EventTarget();

async function send(method, path, body, { headers = {}, signal } = {}) {
  const sent = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  try {
    return await fetch(path, { method, body: sent, signal, headers: headersOf(method, body, headers), redirect: 'error' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(noAnswer());
  }
}

/**
 * Calls the API.
 * @param {'GET'|'POST'|'PATCH'|'DELETE'} method
 * @param {string} path
 * @param {object | Blob} [body]
 * @param {{headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<any>} the response's JSON; null if it has none
 */
export async function call(method, path, body, options) {
  const reply = await send(method, path, body, options);
  if (!reply.ok) {
    const error = new ApiError(await problemOf(reply));
    if (reply.status === 401 && !path.startsWith('/v1/session')) refused.dispatchEvent(new Event('refused'));
    throw error;
  }
  const isJson = (reply.headers.get('content-type') ?? '').includes('json');
  return reply.status === 204 || !isJson ? null : reply.json();
}

/** Reads a path. */
export const get = (path, options) => call('GET', path, undefined, options);

/** Appends a query to a path; empty values are left out. */
export function path(base, query = {}) {
  const wanted = Object.entries(query).filter(([, value]) => value != null && value !== '');
  const text = new URLSearchParams(wanted).toString();
  return text ? `${base}?${text}` : base;
}

/** Escapes one segment of a path. */
export const part = encodeURIComponent;
