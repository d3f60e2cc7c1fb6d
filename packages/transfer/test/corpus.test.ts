import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { exported, fixtureFolder, importAll, refOf, stateOf } from "./fixture-folder.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];
const at = (...names: readonly string[]): string => join(corpus ?? "", ...names);

async function withStores(run: (store: SessionStore) => Promise<void>): Promise<void> {
  await run(createMemoryStore());
  using folder = fixtureFolder();
  await using store = createJsonlStore({ root: folder.at("store"), create: true });
  await run(store);
}

describe.skipIf(corpus === undefined)("real transcripts", () => {
  it.each(["golden", "pi", "openclaw-sqlite-v23/source-sessions"])(
    "%s: export equals import, a second import adds nothing",
    async (folder) => {
      const before = stateOf(at(folder));
      await withStores(async (store) => {
        const sources = await importAll(store, at(folder));
        expect(sources.filter(({ format }) => format !== "unknown").length).toBeGreaterThan(1);
        for (const source of sources) {
          expect(source).toMatchObject({ state: "imported", repaired: 0, lost: [], error: null });
          expect(source.lines).toBe(source.records);
          const text = readFileSync(source.path, "latin1");
          expect((await exported(store, refOf(source), "jsonl")) === text, source.path).toBe(true);
          if (folder === "golden")
            expect((await exported(store, refOf(source), "openclaw")) === text, source.path).toBe(true);
        }
        expect((await importAll(store, at(folder))).map(({ state, records }) => [state, records])).toEqual(
          sources.map(() => ["unchanged", 0]),
        );
      });
      expect(stateOf(at(folder))).toEqual(before);
    },
  );

  it("version 1 files leave as the version 3 files pi's own migration gives, but for the order of fields", async () => {
    const store = createMemoryStore();
    for (const source of await importAll(store, at("pi"))) {
      const golden = readFileSync(at("golden", basename(source.path).replace(".jsonl", ".v3.jsonl")), "utf8");
      const values = (text: string): unknown[] =>
        text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown);
      const text = Buffer.from(await exported(store, refOf(source), "pi"), "latin1").toString();
      expect(values(text)).toEqual(values(golden));
    }
  });

  it("the odd sessions: state, records, repaired, findings; sources unchanged", async () => {
    const folder = at("openclaw-legacy-variants");
    const before = stateOf(folder);
    await withStores(async (store) => {
      const sources = await importAll(store, folder);
      const table = sources.map(({ key, state, archived, records, repaired, lost, findings }) => [
        key?.replace(/-[0-9a-f]{4}-.*$/, "…"),
        archived ? `${state}, archived` : state,
        records,
        repaired,
        lost.length,
        ...findings.map(({ code }) => code).filter((code) => code !== "SESSION_FILE_FOREIGN"),
      ]);
      expect(table).toEqual([
        ["agent:main:import:direct:bb77bd48…", "imported, archived", 2, 0, 0, "HEADER_MISMATCH"],
        ["agent:main:checkpoint", "imported", 6, 0, 0],
        ["agent:main:checkpoint-noparent", "imported", 5, 1, 0, "PARENT_MISSING"],
        ["agent:main:flat", "imported", 5, 0, 0, "VERSION_MIGRATED", "RECORD_FLAT"],
        ["agent:main:flat3", "imported", 3, 0, 0, "RECORD_FLAT"],
        ["agent:main:truncated", "imported", 4, 1, 0, "TAIL_TORN"],
        ["agent:main:malformed", "imported", 4, 1, 0, "LINE_MALFORMED"],
        ["agent:main:nohdr", "imported", 2, 0, 0, "HEADER_MISSING"],
        ["agent:main:v1raw", "imported", 1003, 0, 0, "VERSION_MIGRATED"],
        ["goclaw:main:main", "imported", 3, 0, 0],
        ["agent:main:dup", "imported", 4, 1, 0, "DUPLICATE_ID"],
        ["agent:main:orphan", "imported", 4, 0, 0, "ORPHAN_PARENT"],
        ["agent:main:telegram:group:-100:topic:7", "imported", 3, 0, 0],
        ["agent:main:import:direct:4d35abfb…", "imported", 2, 0, 0, "SESSION_UNINDEXED", "HEADER_MISMATCH"],
      ]);
      for (const source of sources.filter(({ archived }) => !archived)) {
        expect(await exported(store, refOf(source), "jsonl"), source.path).toBe(readFileSync(source.path, "latin1"));
      }
      const again = await importAll(store, folder);
      expect(again.map(({ state, records }) => [state, records])).toEqual(sources.map(() => ["unchanged", 0]));
    });
    expect(stateOf(folder)).toEqual(before);
  });
});
