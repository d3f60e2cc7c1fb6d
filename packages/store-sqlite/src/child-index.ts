import type { Statements } from "./statements.ts";

/** So many records are entered in one transaction: a few milliseconds. */
const sliceRows = 1000;

/**
 * `store_children` says which records name one as their parent: behind the log, filled with the full-text index. What is
 * redacted keeps its place in the tree, so only purging and giving records to forks change what is entered.
 */
export function areChildrenBehind(statements: Statements): boolean {
  return (statements.newestRecord.get() ?? 0) > enteredTo(statements);
}

/** Enters one slice, inside a transaction. */
export function enterChildren(statements: Statements): void {
  const after = enteredTo(statements);
  const toRecord = statements.endOfSlice.get(after, sliceRows) ?? null;
  if (toRecord === null) return;
  statements.enterChildren.run(after, toRecord);
  statements.setChildrenEntered.run(toRecord);
}

/** After records were deleted: their numbers may be given again, to records that are not entered. */
export function settleChildren(statements: Statements): void {
  statements.setChildrenEntered.run(Math.min(enteredTo(statements), statements.newestRecord.get() ?? 0));
}

/** Empties the table; it is filled again from the log. */
export function clearChildren(statements: Statements): void {
  statements.clearChildren.run();
  statements.setChildrenEntered.run(0);
}

function enteredTo(statements: Statements): number {
  return statements.childrenEntered.get() ?? 0;
}
