/** @file Difference of two JSON values as a merge patch (RFC 7396). Pure. */

const isObject = (value) => value != null && typeof value === 'object' && !Array.isArray(value);
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Changed members, and null for removed ones. */
export function patchOf(before, after) {
  if (!isObject(before) || !isObject(after)) return after;
  const gone = Object.keys(before).filter((name) => !(name in after)).map((name) => [name, null]);
  const changed = Object.keys(after).filter((name) => !isSame(before[name], after[name])).map((name) => [name, patchOf(before[name], after[name])]);
  return Object.fromEntries([...gone, ...changed]);
}

/** Merge patch of a schedule's task, whose source is replaced as a whole. */
export function taskPatch(before, after) {
  const patch = patchOf(before, after);
  return isObject(patch) && patch.source ? { ...patch, source: after.source } : patch;
}
