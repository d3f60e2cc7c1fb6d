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

/** Visits `value` and every node below it, parents first. */
export function walkSyntax(value: unknown, visit: (node: SyntaxNode) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) walkSyntax(item, visit);
    return;
  }
  if (!isSyntaxNode(value)) return;
  visit(value);
  for (const child of Object.values(value)) {
    if (typeof child === "object" && child !== null) walkSyntax(child, visit);
  }
}
