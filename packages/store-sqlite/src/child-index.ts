import type { Statements } from "./statements.ts";

/** One transaction enters at most this many records, in a few milliseconds. */
const sliceRows = 1000;

/**
 * Returns whether `store_children` lags behind the log. The table is filled together with the full-text index. A redacted
 * record keeps its place in the tree, so only a purge and the transfer of records to forks change entered rows.
 */
export function areChildrenBehind(statements: Statements): boolean {
  return (statements.newestRecord.get() ?? 0) > enteredTo(statements);
}

export function enterChildren(statements: Statements): void {
  const after = enteredTo(statements);
  const toRecord = statements.endOfSlice.get(after, sliceRows) ?? null;
  if (toRecord === null) return;
  statements.enterChildren.run(after, toRecord);
  statements.setChildrenEntered.run(toRecord);
}

/** Moves the mark back after records were deleted, because SQLite may give their numbers to new records. */
export function settleChildren(statements: Statements): void {
  statements.setChildrenEntered.run(Math.min(enteredTo(statements), statements.newestRecord.get() ?? 0));
}

/** Deletes one slice of the table, the newest rows first. Returns false when the table is empty. */
export function clearChildrenSlice(statements: Statements): boolean {
  const toRecord = enteredTo(statements);
  if (toRecord === 0) {
    // The remaining rows, if any, belong to no record.
    statements.clearChildren.run();
    return false;
  }
  const afterRecord = Math.max(0, toRecord - sliceRows);
  // One statement for all rows would search every session for each parent.
  for (const { session, parentId, seq } of statements.childrenIn.all(afterRecord, toRecord))
    statements.takeOutChild.run(session, parentId, seq);
  statements.setChildrenEntered.run(afterRecord);
  return true;
}

function enteredTo(statements: Statements): number {
  return statements.childrenEntered.get() ?? 0;
}
