/**
 * The circles of a graph: for each, its nodes in the order of the graph. A circle is a set of nodes that all lead to each
 * other, directly or by others; a node that leads to itself is one too. Walks without recursion, by Tarjan's algorithm.
 */
export function findCircles(edges: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const isOpen = new Set<string>();
  const circles: string[][] = [];
  for (const root of edges.keys()) {
    if (order.has(root)) continue;
    const path: { readonly node: string; next: number }[] = [];
    const enter = (node: string): void => {
      order.set(node, order.size);
      lowest.set(node, order.size - 1);
      open.push(node);
      isOpen.add(node);
      path.push({ node, next: 0 });
    };
    const lower = (node: string, to: number): void => {
      lowest.set(node, Math.min(lowest.get(node) ?? to, to));
    };
    enter(root);
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const target = edges.get(step.node)?.[step.next];
      step.next += 1;
      if (target !== undefined) {
        if (!edges.has(target)) continue;
        if (!order.has(target)) enter(target);
        else if (isOpen.has(target)) lower(step.node, order.get(target) ?? 0);
        continue;
      }
      path.pop();
      const own = lowest.get(step.node) ?? 0;
      const above = path.at(-1);
      if (above !== undefined) lower(above.node, own);
      if (own !== order.get(step.node)) continue;
      const circle = open.splice(open.indexOf(step.node));
      for (const node of circle) isOpen.delete(node);
      if (circle.length > 1 || edges.get(step.node)?.includes(step.node) === true) circles.push(circle.toSorted());
    }
  }
  return circles;
}

/** The most nodes on one way through a graph without circles, the first of which leads to the last. */
export function countLevels(edges: ReadonlyMap<string, readonly string[]>): number {
  const known = new Map<string, number>();
  const levelOf = (node: string): number => {
    const found = known.get(node);
    if (found !== undefined) return found;
    const below = (edges.get(node) ?? []).filter((target) => edges.has(target)).map(levelOf);
    const level = 1 + Math.max(0, ...below);
    known.set(node, level);
    return level;
  };
  return Math.max(0, ...[...edges.keys()].map(levelOf));
}
