import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { foreignFormats } from "@throughline/foreign-formats";
import { foreignDatabaseError } from "@throughline/transfer/internal";
import { sampleTexts, textOf } from "../../../packages/foreign-formats/test/sample-texts.ts";
import { checkFiles } from "../src/doctor/check-files.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "formats-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const { signal } = new AbortController();
const formats = [...foreignFormats.values()];
/** Their sessions lie in a database alone, so there is no file of them that could be checked. */
const inDatabasesOnly: ReadonlySet<string> = new Set(["langgraph", "cursor"]);

/** The table of formats is the list of the cases, so a new format without its case fails. */
describe("doctor knows what import knows", () => {
  it.each(formats.filter(({ name }) => !inDatabasesOnly.has(name)))("a file of $program", async ({ name, program }) => {
    const path = join(folder, "below", basename(sampleTexts[name].path));
    mkdirSync(dirname(path));
    writeFileSync(path, textOf(sampleTexts[name]));
    const copies: string[] = [];
    const writeCopy = (copy: string): Promise<void> => Promise.resolve(void copies.push(copy));
    const options = { sessionIdOf: () => Promise.resolve(null), signal, writeCopy };
    const [checked] = await Array.fromAsync(checkFiles(path, options));
    expect(checked?.findings.map(({ code, message }) => [code, message])).toEqual([
      ["TRANSCRIPT_FOREIGN", `The file is a transcript of ${program}.`],
    ]);
    expect([checked?.repair, copies]).toEqual([null, []]);
  });

  it.each(formats.filter(({ database }) => database !== undefined))(
    "a database of $program",
    async ({ name, program, database }) => {
      const path = join(folder, "sessions.db");
      const file = new DatabaseSync(path);
      for (const [table, columns] of Object.entries(database?.tables ?? {}))
        file.exec(`CREATE TABLE "${table}" (${columns.map((column) => `"${column}"`).join(", ")})`);
      file.close();
      const error = await foreignDatabaseError("INPUT_INVALID", path);
      expect(error.message).toContain(`is a SQLite database of ${program}, not a store.`);
      expect(error.details["program"]).toBe(name);
      expect(error.remedy).toContain(`throughline import ${path}`);
    },
  );

  it.each(formats)("$program in one of both ways", ({ name, database }) => {
    expect(!inDatabasesOnly.has(name) || database !== undefined).toBe(true);
  });
});
