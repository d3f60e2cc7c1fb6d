/** A node of the parser's tree, as far as the checks look at it. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** True for a node of the tree. */
export function isSyntaxNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && typeof (value as SyntaxNode).type === "string";
}

/** Visits `value` and every node below it, parents first; what lies below a node for which `visit` gives false is left out. */
export function walkSyntax(value: unknown, visit: (node: SyntaxNode) => boolean | void): void {
  if (Array.isArray(value)) {
    for (const item of value) walkSyntax(item, visit);
    return;
  }
  if (!isSyntaxNode(value)) return;
  if (visit(value) === false) return;
  for (const child of Object.values(value)) {
    if (typeof child === "object" && child !== null) walkSyntax(child, visit);
  }
}

/** The name of an identifier, the text of a string or of a template without values; null for anything else. */
export function nameOf(node: unknown): string | null {
  if (!isSyntaxNode(node)) return null;
  if (node.type === "Identifier") return String(node["name"]);
  return textOf(node, false);
}

/** The text of a string or template; a value inside a template gives null, or a `…` where `partly` is set. */
export function textOf(node: unknown, partly: boolean): string | null {
  if (!isSyntaxNode(node)) return null;
  if (node.type === "Literal") return typeof node["value"] === "string" ? node["value"] : null;
  if (node.type !== "TemplateLiteral") return null;
  const quasis = node["quasis"] as readonly { readonly value: { readonly cooked: string | null } }[];
  return quasis.length === 1 || partly ? quasis.map((quasi) => quasi.value.cooked ?? "").join("…") : null;
}

/** The names of a callee from left to right: `it.skipIf(x).each` gives it, skipIf, each. */
export function calleeNames(node: unknown): readonly string[] {
  if (!isSyntaxNode(node)) return [];
  if (node.type === "MemberExpression") return [...calleeNames(node["object"]), nameOf(node["property"]) ?? ""];
  if (node.type === "CallExpression") return calleeNames(node["callee"]);
  if (node.type === "TaggedTemplateExpression") return calleeNames(node["tag"]);
  const name = nameOf(node);
  return name === null ? [] : [name];
}

/** Gives the line of an offset in `text`, counted from 1. */
export function lineCounter(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}
