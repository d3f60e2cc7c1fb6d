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
