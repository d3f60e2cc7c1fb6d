import type { Statements } from "./statements.ts";

/** How many records one transaction enters: a few milliseconds. */
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

/** Takes one slice out, the newest first, inside a transaction; false when the table is empty. */
export function clearChildrenSlice(statements: Statements): boolean {
  const toRecord = enteredTo(statements);
  if (toRecord === 0) {
    // Only what belongs to no record is left, if anything.
    statements.clearChildren.run();
    return false;
  }
  const afterRecord = Math.max(0, toRecord - sliceRows);
  // One by one: in one statement SQLite looks for every parent in every session.
  for (const { session, parentId, seq } of statements.childrenIn.all(afterRecord, toRecord))
    statements.takeOutChild.run(session, parentId, seq);
  statements.setChildrenEntered.run(afterRecord);
  return true;
}

function enteredTo(statements: Statements): number {
  return statements.childrenEntered.get() ?? 0;
}
