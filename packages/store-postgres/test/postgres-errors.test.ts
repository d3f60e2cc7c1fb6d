import { expect, it } from "vitest";
import { storeError } from "../src/postgres-errors.ts";

const ending = `the damaged table or index. Rebuild an index with REINDEX; restore a table from a backup or a replica. Then check the disk and the memory of the server.`;

it.each([
  [
    'invalid page in block 3 of relation "base/5/16421"',
    `\`SELECT pg_filenode_relation(0, 16421)\` in this database names ${ending}`,
  ],
  ["could not read block 7", `pg_amcheck names ${ending}`],
])("says what PostgreSQL says of a damaged page, and how to find the table or index: %s", (text, remedy) => {
  const error = storeError(Object.assign(new Error(text), { code: "XX001" }), "not-applied", "db");
  expect(error).toMatchObject({
    code: "STORE_CORRUPT",
    message: `The database says that it is damaged. (db: ${text})`,
    remedy,
  });
});

it.each([
  ["XX000", "could not find valid entry for shard 127983"],
  ["42P01", 'relation "t1.records_127983" does not exist'],
])("asks to repeat what met a shard that Citus was moving: %s", (code, text) => {
  const error = storeError(Object.assign(new Error(text), { code }), "not-applied", "db");
  expect(error).toMatchObject({ code: "STORE_UNREACHABLE", retryable: true, outcome: "not-applied" });
});

it("says where the schema of a cluster can be made", () => {
  const text = "operation is not allowed on this node";
  const error = storeError(Object.assign(new Error(text), { code: "XX000" }), "not-applied", "db");
  expect(error).toMatchObject({
    code: "STORE_UNSUPPORTED",
    message: `Only the coordinator of Citus can make or change the schema. (db: ${text})`,
    remedy: "Open the store once with the URL of the coordinator.",
  });
});

it("still reports a table that is not there as a missing schema", () => {
  const text = 'relation "throughline.records" does not exist';
  const error = storeError(Object.assign(new Error(text), { code: "42P01" }), "not-applied", "db");
  expect(error).toMatchObject({ code: "STORE_NOT_FOUND" });
});
