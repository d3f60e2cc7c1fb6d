/** Expressions for text of unknown origin. */
export { linearExpression } from "./linear/linear-expression.ts";
export type { LinearExpression } from "./linear/linear-expression.ts";
