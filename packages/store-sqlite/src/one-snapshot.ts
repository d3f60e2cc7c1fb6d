import type { Connection } from "./connection.ts";

/**
 * Reads in one snapshot. Without it, each statement would see the commits since the statement before. A session that
 * another process purges at that moment would have a row and no entry, or a record and no payload.
 */
export function inOneSnapshot<Result>({ database, statements }: Connection, run: () => Result): Result {
  statements.beginRead.run();
  try {
    return run();
  } finally {
    // Some failures of the disk end a transaction by themselves.
    if (database.inTransaction) statements.commit.run();
  }
}
