export interface RoutePattern {
  readonly method: string;
  /** Starts after `/api/v1`, for example `/sessions/{session}/records`. */
  readonly path: string;
}

export interface RouteMatch<Route> {
  readonly route: Route;
  readonly parameters: Readonly<Record<string, string>>;
}

export interface RouteTable<Route> {
  /** Without a match, returns the methods of the path for the `allow` header. An unknown path has none. */
  find(method: string, path: string): RouteMatch<Route> | readonly string[];
}

interface Node<Route> {
  readonly literals: Map<string, Node<Route>>;
  parameter: Node<Route> | null;
  readonly routes: Map<string, { readonly route: Route; readonly names: readonly string[] }>;
}

/**
 * Matches routes by the bytes of the path. A segment is compared before it is decoded, so that an encoded slash cannot
 * move a request to another route.
 */
export function createRouteTable<Route extends RoutePattern>(routes: readonly Route[]): RouteTable<Route> {
  const root = emptyNode<Route>();
  for (const route of routes) {
    const names: string[] = [];
    let node = root;
    for (const segment of route.path.split("/").slice(1)) {
      if (segment.startsWith("{")) {
        names.push(segment.slice(1, -1));
        node.parameter ??= emptyNode();
        node = node.parameter;
      } else {
        const next = node.literals.get(segment) ?? emptyNode<Route>();
        node.literals.set(segment, next);
        node = next;
      }
    }
    node.routes.set(route.method, { route, names });
  }
  return {
    find(method, path) {
      const values: string[] = [];
      const node = nodeOf(root, path.split("/"), 1, values);
      if (node === null) return [];
      const found = node.routes.get(method);
      if (found === undefined) return [...node.routes.keys()];
      const parameters = Object.fromEntries(found.names.map((name, index) => [name, values[index] ?? ""]));
      return { route: found.route, parameters };
    },
  };
}

function emptyNode<Route>(): Node<Route> {
  return { literals: new Map(), parameter: null, routes: new Map() };
}

function nodeOf<Route>(
  node: Node<Route>,
  segments: readonly string[],
  at: number,
  values: string[],
): Node<Route> | null {
  if (at === segments.length) return node.routes.size === 0 ? null : node;
  const segment = segments[at] ?? "";
  const literal = node.literals.get(segment);
  if (literal !== undefined) {
    const found = nodeOf(literal, segments, at + 1, values);
    if (found !== null) return found;
  }
  if (node.parameter === null || segment === "") return null;
  values.push(segment);
  const found = nodeOf(node.parameter, segments, at + 1, values);
  if (found === null) values.pop();
  return found;
}
