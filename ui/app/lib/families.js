/** @file Which tasks belong together in a list. Pure. */

/** Tasks with each redrive below the task whose failures it does again, where that one is among them. */
export function families(tasks) {
  const present = new Set(tasks.map((task) => task.id));
  const family = (task) => [task, ...tasks.filter((one) => one.parent === task.id).flatMap(family)];
  // A family stands where its first member stood.
  const root = (task) => (present.has(task.parent) ? root(tasks.find((one) => one.id === task.parent)) : task);
  return [...new Set(tasks.map(root))].flatMap(family);
}
