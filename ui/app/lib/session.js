/** @file Current user and permissions. The node decides; this only disables what it would reject. */
import { signal } from '../../vendor/preact-htm.js';
import { ApiError, call, get, refused } from './api.js';

/**
 * `asking` until the user is known, `in`, `out` when the node requires a sign-in, `away` when it doesn't respond or the user has no role.
 * @type {import('@preact/signals').Signal<{state: 'asking'|'in'|'out'|'away', name?: string, role?: string, business?: string, session?: {id: number, expires_at: string} | null, error?: ApiError}>}
 */
export const session = signal({ state: 'asking' });

const ROLES = ['viewer', 'operator', 'admin'];

/** Asks the node for the current user. */
export async function identify() {
  try {
    session.value = { state: 'in', ...(await get('/v1/whoami')) };
  } catch (error) {
    if (error.status === 401) session.value = { state: 'out' };
    else if (session.value.state !== 'in') session.value = { state: 'away', error };
  }
}

/** Signs in with a token. The page doesn't keep it: the node responds with a cookie that no script can read. */
export async function logIn(token) {
  await call('POST', '/v1/session', { token });
  await identify();
}

/** Ends the session. */
export async function logOut() {
  await call('DELETE', '/v1/session');
  session.value = { state: 'out' };
}

/** Returns true for users who operate the nodes, not for a business or a reader. */
export const isStaff = () => ROLES.includes(session.value.role);

/** Returns true if the current role includes another; a business has the permissions of an operator on its own tasks, except those for staff. */
export function may(role, isForStaff = false) {
  if (session.value.role === 'business') return role !== 'admin' && !isForStaff;
  return isStaff() && ROLES.indexOf(session.value.role) >= ROLES.indexOf(role);
}

/** Start page of the role. */
export function home() {
  return { business: '/tasks', reader: '/datasets' }[session.value.role] ?? '/';
}

refused.addEventListener('refused', () => {
  if (session.value.state === 'in') session.value = { state: 'out' };
});
