import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as exported from "@throughline/store-jsonl";
import { afterAll, describe, expect, it } from "vitest";
import { describeOptions } from "@throughline/test-kit/options";
import { jsonlStoreTable } from "../src/jsonl-store-options.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-options-"));
afterAll(() => rmSync(folder, { recursive: true }));

describeOptions(
  exported,
  [
    {
      name: "createJsonlStore",
      table: jsonlStoreTable,
      valid: { root: join(folder, "store") },
      code: "CONFIG_INVALID",
      call: (options) => exported.createJsonlStore(options),
    },
  ],
  ["properLockfileLocks"],
);

describe("options that are refused", () => {
  it("leave no file behind", () => {
    expect(readdirSync(folder)).toEqual([]);
  });
});
