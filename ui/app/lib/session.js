/** @file Who is looking, and what they may do. The node decides; this only keeps people from asking in vain. */
import { signal } from '../../vendor/preact-htm.js';
import { ApiError, call, get, refused } from './api.js';

/**
 * `asking` until it is known who this is, `in`, `out` when the node wants to know first, `away` when it doesn't answer.
 * @type {import('@preact/signals').Signal<{state: 'asking'|'in'|'out'|'away', name?: string, role?: string, business?: string, session?: {id: number, expires_at: string} | null, error?: ApiError}>}
 */
export const session = signal({ state: 'asking' });

const ROLES = ['viewer', 'operator', 'admin'];

/** Asks who this is. */
export async function identify() {
  try {
    session.value = { state: 'in', ...(await get('/v1/whoami')) };
  } catch (error) {
    if (error.status === 401) session.value = { state: 'out' };
    else if (session.value.state !== 'in') session.value = { state: 'away', error };
  }
}

/** Logs in with a token, which leaves this page's memory at once: the node answers with a cookie that no script can read. */
export async function logIn(token) {
  await call('POST', '/v1/session', { token });
  await identify();
}

/** Ends the session. */
export async function logOut() {
  await call('DELETE', '/v1/session');
  session.value = { state: 'out' };
}

/** Whether this is somebody who runs the nodes, not a business or a reader. */
export const isStaff = () => ROLES.includes(session.value.role);

/** Whether the present role may do what needs a role; a business may do to its own tasks what operators may, but for what only staff may. */
export function may(role, isForStaff = false) {
  if (session.value.role === 'business') return role !== 'admin' && !isForStaff;
  return isStaff() && ROLES.indexOf(session.value.role) >= ROLES.indexOf(role);
}

/** Where one begins: what the role has most to do with. */
export function home() {
  return { business: '/tasks', reader: '/datasets' }[session.value.role] ?? '/';
}

refused.addEventListener('refused', () => {
  if (session.value.state === 'in') session.value = { state: 'out' };
});
