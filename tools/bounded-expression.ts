import { parseExpression, type ExpressionNode } from "../packages/core/src/linear/parse-expression.ts";

/** More ways than this are for recheck to judge. */
const mostWays = 5000;

/**
 * The verdict on an expression without unbounded repetition: from one position there are so many ways to try, whatever
 * the text is, so the work grows with the text and no faster. Null for every other.
 */
export function boundedVerdict(expression: string): { readonly status: string; readonly summary: string } | null {
  const end = expression.lastIndexOf("/");
  // A class of flag u is one atom, and the name of a group changes nothing.
  const source = expression
    .slice(1, end)
    .replace(/\\[pP]\{[^}]*\}/g, "\\w")
    .replace(/\\u\{[^}]*\}/g, "\\w")
    .replace(/\(\?<\w+>/g, "(");
  try {
    const { root, assertions } = parseExpression(source);
    const lookarounds = assertions.map((assertion) => ("node" in assertion ? waysOf(assertion.node) : 1));
    const ways = waysOf(root) * Math.max(1, ...lookarounds);
    return ways > mostWays ? null : { status: "safe", summary: `bounded, at most ${ways} ways from each position` };
  } catch (error) {
    // What the parser does not know, as back references.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** How many ways there are through a part of an expression, at most. */
function waysOf(node: ExpressionNode): number {
  switch (node.type) {
    case "atom":
    case "assertion":
      return 1;
    case "sequence":
      return node.items.reduce((ways, item) => ways * waysOf(item), 1);
    case "choice":
      return node.options.reduce((ways, option) => ways + waysOf(option), 0);
    case "repeat": {
      const item = waysOf(node.item);
      let ways = 0;
      for (let count = node.least; count <= node.most && ways <= mostWays; count++) ways += item ** count;
      return node.least === node.most ? item ** node.least : ways;
    }
  }
}
