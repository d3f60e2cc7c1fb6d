import type { Connection } from "./open-connection.ts";

/**
 * Reads in one snapshot, which ends with it: without one each statement sees what others have committed since the one
 * before, so that a session another process purges just then has a row and no entry, or a record and no payload.
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
