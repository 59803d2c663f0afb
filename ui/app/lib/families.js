/** @file Tasks grouped with their redrives. Pure. */

/** Orders tasks so that each redrive follows its original task, if that is in the list. */
export function families(tasks) {
  const present = new Set(tasks.map((task) => task.id));
  const family = (task) => [task, ...tasks.filter((one) => one.parent === task.id).flatMap(family)];
  // A family takes the position of its first member.
  const root = (task) => (present.has(task.parent) ? root(tasks.find((one) => one.id === task.parent)) : task);
  return [...new Set(tasks.map(root))].flatMap(family);
}
