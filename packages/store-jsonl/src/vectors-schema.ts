/** These ASCII codes of "THLV" distinguish the file from another program's. */
export const vectorsApplicationId = 0x54484c56;

/**
 * Numbers of vectors and places of sessions begin at the time. So a file that replaces a deleted one gives no number
 * again, and a mark or a code of the deleted one fits nothing. `code` stands before `numbers`, so that a scan of
 * codes reads no overflow page.
 */
export function vectorsSchema(nowMs: number): string {
  return `
  CREATE TABLE sessions (
    place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, removals INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    place INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    model TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    part INTEGER NOT NULL,
    code BLOB NOT NULL,
    scale REAL NOT NULL,
    numbers BLOB NOT NULL
  ) STRICT;
  CREATE INDEX vectors_by_model ON vectors (model);
  CREATE INDEX vectors_by_session ON vectors (place, model, last_seq);
  CREATE TABLE progress (
    place INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    model TEXT NOT NULL,
    covered_seq INTEGER NOT NULL,
    resume_seq INTEGER NOT NULL,
    PRIMARY KEY (place, model)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE gaps (
    place INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    model TEXT NOT NULL,
    from_seq INTEGER NOT NULL,
    to_seq INTEGER NOT NULL,
    PRIMARY KEY (place, model, from_seq)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO sqlite_sequence VALUES ('sessions', ${Math.trunc(nowMs) * 1000}), ('vectors', ${Math.trunc(nowMs) * 1000});
  PRAGMA application_id = ${vectorsApplicationId};
  PRAGMA user_version = 1;
`;
}
