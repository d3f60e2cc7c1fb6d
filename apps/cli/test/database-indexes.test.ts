import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
let database: DatabaseSync;

beforeAll(async () => {
  // Of more than a few records: a table of some rows is read whole, whatever indexes it has.
  const drafts = Array.from({ length: 500 }, (_, index) => user(`m${index}`));
  await seed(home, [
    { key: "agent:main:a", drafts },
    { key: "agent:main:b", drafts },
  ]);
  expect((await runHere(home, ["verify"])).code).toBe(0);
  database = new DatabaseSync(join(home, "sessions.db"), { readOnly: true });
});
afterAll(() => {
  database.close();
  directory.remove();
});

/** What SQLite would do for a query. */
function plan(sql: string): string {
  const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return rows.map(({ detail }) => String(detail)).join("\n");
}

describe("the database of the command line, read with SQL", () => {
  it("reaches the records of one session by their index, in order and in a time range", () => {
    for (const view of ["records", "messages"])
      for (const where of ["", " AND timestamp > 5", " AND timestamp > 5 ORDER BY seq"]) {
        const steps = plan(`SELECT * FROM ${view} WHERE session_key = 'agent:main:a'${where}`).split("\n");
        expect(steps.filter((step) => /^SCAN r\b/.test(step))).toEqual([]);
        expect(steps).toContain("SEARCH r USING INDEX sqlite_autoindex_store_records_1 (session=?)");
      }
  });

  it("finds the children of a record by its id through an index", () => {
    const found = plan("SELECT * FROM children WHERE session_key = 'agent:main:a' AND parent_id = 'x'");
    expect(found).toContain("SEARCH c USING PRIMARY KEY (session=? AND parent_id=?)");
    expect(found.split("\n").filter((line) => /^SCAN (?!(?:up|t|s|CONSTANT ROW)\b)/.test(line))).toEqual([]);
  });
});
