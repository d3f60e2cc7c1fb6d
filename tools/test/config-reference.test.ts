import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { settingTables } from "../../packages/config/src/setting-tables.ts";
import { pageWithTables, referencePath } from "../config-reference.ts";

const page = readFileSync(referencePath, "utf8");

describe("docs/configuration.md", () => {
  it("is as the schema has it", () => {
    // `node --conditions=@throughline/source tools/config-reference.ts --write` brings it up to date.
    expect(page).toBe(pageWithTables(page));
  });

  it("names each flag, and each variable that does not follow from its key", () => {
    const tables = page.slice(page.indexOf("## Settings"));
    for (const names of ["`store`, `--store`", "`color`, `NO_COLOR`", "`plain`, `--plain`, `ACCESSIBLE`"])
      expect(tables).toContain(`| ${names} |`);
    expect(tables).not.toContain("`THROUGHLINE_STORE`");
  });

  it("has every key once, with its range and its default", () => {
    const settings = page.slice(page.indexOf("## Settings"), page.indexOf("## Presets"));
    const rows = settings.split("\n").filter((line) => line.startsWith("| `"));
    const keys = rows.map((row) => row.split("`")[1] ?? "");
    expect(keys.toSorted()).toEqual(settingTables.flatMap((table) => table.settings.map(({ key }) => key)).toSorted());
    for (const row of rows) {
      const [, , meaning, range, fallback] = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
      expect([row, meaning !== "", range !== ""]).toEqual([row, true, true]);
      // Without a default the meaning says what holds.
      if (fallback === "") expect(row).toMatch(/null: |begin with|Without it/);
    }
  });
});
