import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { foreignFormats } from "@throughline/foreign-formats";
import { createMemoryStore } from "@throughline/store-memory";
import type { ExportFormat } from "../src/export-types.ts";
import { describe, expect, it } from "vitest";
import { exported, importAll, refOf } from "./fixture-folder.ts";

const root = process.env["THROUGHLINE_CORPUS"];

/** Every example file of a format that is a file of lines, a document or a text. */
const files = [...foreignFormats.keys()].flatMap((name) => {
  const folder = root === undefined ? "" : join(root, "foreign", name === "gemini" ? "gemini-cli" : name);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(
      (file) => /\.(?:jsonl?|txt)$/.test(file) && file !== "memory-saver-rows.json" && file !== "toolpath-bubbles.json",
    )
    .toSorted()
    .map((file) => [name, join(folder, file)] as const);
});

describe.skipIf(files.length === 0)("a real transcript of another program", () => {
  it.each(files)("of %s comes in whole, goes out byte for byte, and is unchanged: %s", async (name, path) => {
    await using store = createMemoryStore();
    const sources = await importAll(store, path);
    for (const source of sources) {
      expect(source).toMatchObject({ format: name, state: "imported", lost: [], repaired: 0, error: null });
      expect(source.lines).toBe(source.records);
    }
    expect((await importAll(store, path)).map(({ state }) => state)).toEqual(sources.map(() => "unchanged"));
    const { writer } = foreignFormats.get(name) ?? {};
    const [only, ...others] = sources;
    if (writer === undefined || only === undefined || others.length > 0) return;
    expect(await exported(store, refOf(only), name as ExportFormat)).toBe(readFileSync(path, "latin1"));
  });
});
