import { parseSync } from "oxc-parser";
import { isSyntaxNode, type SyntaxNode, walkSyntax } from "../syntax-tree.ts";

/** One change of a source that a test should notice: the text from `start` to `end` becomes `text`. */
export interface Mutation {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What each operator becomes. */
const otherOperators: Readonly<Record<string, string>> = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "&&": "||",
  "||": "&&",
  "??": "&&",
  "-": "+",
  "*": "+",
};

function textAt(source: string, node: SyntaxNode): string {
  return source.slice(node.start, endOf(node));
}

function endOf(node: SyntaxNode): number {
  return node["end"] as number;
}

/** An operator between two operands becomes its neighbor. */
function operatorMutation(source: string, node: SyntaxNode): Mutation | null {
  const { left, right, operator } = node;
  if (!isSyntaxNode(left) || !isSyntaxNode(right)) return null;
  const text = otherOperators[operator as string];
  const between = source.slice(endOf(left), right.start);
  const at = between.indexOf(operator as string);
  if (text === undefined || at < 0) return null;
  const start = endOf(left) + at;
  // A mix of `??` with `&&` or `||` needs parentheses: without them the file does not parse.
  if (operator === "??" && [left, right].some(({ type }) => type === "LogicalExpression")) return null;
  return { kind: `${operator as string} to ${text}`, start, end: start + (operator as string).length, text };
}

function mutationOf(source: string, node: SyntaxNode): Mutation | null {
  const end = endOf(node);
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression":
      return operatorMutation(source, node);
    case "IfStatement": {
      const test = node["test"] as SyntaxNode;
      const text = `!(${textAt(source, test)})`;
      return { kind: "negated condition", start: test.start, end: endOf(test), text };
    }
    case "ConditionalExpression": {
      const [yes, no] = [node["consequent"] as SyntaxNode, node["alternate"] as SyntaxNode];
      const text = `${textAt(source, no)} : ${textAt(source, yes)}`;
      return { kind: "swapped branches", start: yes.start, end: endOf(no), text };
    }
    case "ExpressionStatement": {
      const isDirective = typeof node["directive"] === "string";
      return isDirective ? null : { kind: "removed statement", start: node.start, end, text: ";" };
    }
    case "Literal": {
      const value = node["value"];
      if (typeof value === "boolean") return { kind: "other boolean", start: node.start, end, text: String(!value) };
      if (typeof value === "number") return { kind: "number + 1", start: node.start, end, text: String(value + 1) };
      return null;
    }
    default:
      return null;
  }
}

/**
 * Lists the mutations of a source in the order of their places. Types are left alone. A few of them do not parse, which
 * `parses` tells: to parse the whole source once for each would take minutes for a package.
 */
export function mutationsOf(path: string, source: string): readonly Mutation[] {
  const found: Mutation[] = [];
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  walkSyntax(program, (node) => {
    if (node.type.startsWith("TS") && node.type !== "TSAsExpression" && node.type !== "TSSatisfiesExpression")
      return false;
    if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration") return false;
    const mutation = mutationOf(source, node);
    if (mutation !== null) found.push(mutation);
    return true;
  });
  return found.toSorted((a, b) => a.start - b.start);
}

/** Returns whether a source is one that a compiler reads. */
export function parses(path: string, source: string): boolean {
  return parseSync(path, source).errors.length === 0;
}

/** The source with the mutation. */
export function apply(source: string, { start, end, text }: Mutation): string {
  return `${source.slice(0, start)}${text}${source.slice(end)}`;
}
