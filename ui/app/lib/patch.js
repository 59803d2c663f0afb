/** @file What makes one JSON of another, as the merge-patch (RFC 7396) that the API takes. No markup, no calls. */

const isObject = (value) => value != null && typeof value === 'object' && !Array.isArray(value);
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The members that are others, and null for those that are gone. */
export function patchOf(before, after) {
  if (!isObject(before) || !isObject(after)) return after;
  const gone = Object.keys(before).filter((name) => !(name in after)).map((name) => [name, null]);
  const changed = Object.keys(after).filter((name) => !isSame(before[name], after[name])).map((name) => [name, patchOf(before[name], after[name])]);
  return Object.fromEntries([...gone, ...changed]);
}

/** The same of the task of a schedule, whose one source takes the place of another. */
export function taskPatch(before, after) {
  const patch = patchOf(before, after);
  return isObject(patch) && patch.source ? { ...patch, source: after.source } : patch;
}
