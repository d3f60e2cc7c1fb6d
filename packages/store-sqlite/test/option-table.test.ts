import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as exported from "@throughline/store-sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { describeOptions } from "@throughline/test-kit/options";
import { restoreTable } from "../src/backup-store.ts";
import { sqliteStoreTable } from "../src/sqlite-store-options.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-options-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "store.db");

describeOptions(exported, [
  {
    name: "createSqliteStore",
    table: sqliteStoreTable,
    valid: { path },
    code: "CONFIG_INVALID",
    call: (options) => exported.createSqliteStore(options),
  },
  {
    name: "restoreSqliteBackup",
    table: restoreTable,
    valid: { path, backupPath: join(folder, "backup.db"), keptAs: ".kept" },
    call: (options) => exported.restoreSqliteBackup(options),
  },
]);

describe("options that are refused", () => {
  it("leave no file behind", () => {
    expect(readdirSync(folder)).toEqual([]);
  });
});
