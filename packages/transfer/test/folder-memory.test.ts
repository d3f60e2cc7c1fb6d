import { linkSync, mkdirSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createMemoryStore } from "@throughline/store-memory";
import { importPaths } from "@throughline/transfer";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { openclawFixture } from "./database-fixtures.ts";
import { fixtureFolder, header, importAll, jsonLines, message, type FixtureFolder } from "./fixture-folder.ts";

const sessions = "state/agents/main/sessions";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function liveBytes(): number {
  collectGarbage();
  // What the first pass found dead is freed by the second.
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function idAt(at: number): string {
  return `0b83cd1e-54ce-4a39-9089-${String(at).padStart(12, "0")}`;
}

/** So many transcripts, of which the index names all but a third. */
function manySessions(folder: FixtureFolder, count: number): void {
  const first = folder.write("first.jsonl", jsonLines(header, message("a1", null)));
  mkdirSync(folder.at(sessions), { recursive: true });
  const entries: Record<string, unknown> = {};
  for (let at = 0; at < count; at++) {
    linkSync(first, folder.at(sessions, `${idAt(at)}.jsonl`));
    if (at % 3 > 0) entries[`agent:main:telegram:direct:${at}`] = { sessionId: idAt(at), label: "x".repeat(600) };
  }
  folder.write(`${sessions}/sessions.json`, JSON.stringify(entries));
}

/** What is alive when one session has been told, and from there every three hundred. */
async function liveAlongTheWay(folder: FixtureFolder, most: number): Promise<readonly number[]> {
  const store = createMemoryStore();
  const before = liveBytes();
  const live: number[] = [];
  let count = 0;
  for await (const { state } of importPaths(store, [folder.at("state")], { dryRun: true })) {
    if (state === "imported" && count++ % 300 === 0) live.push(liveBytes() - before);
    if (count >= most) break;
  }
  return live;
}

describe("a folder of many sessions", () => {
  it(
    "leaves as little in memory with 10,000 as with 10, at the first and as it goes on",
    { tags: ["slow"] },
    async () => {
      const live: (readonly number[])[] = [];
      for (const count of [10, 1000, 10_000]) {
        using folder = fixtureFolder();
        manySessions(folder, count);
        // What the first run loads is needed by all of them.
        if (count === 10) await liveAlongTheWay(folder, 10);
        live.push(await liveAlongTheWay(folder, count === 1000 ? 1000 : 1));
      }
      const [[few = 0] = [], [some = 0, ...later] = [], [many = 0] = []] = live;
      // A listing of the names alone, with what an index says of them, has more than three hundred bytes a session.
      expect(many - few).toBeLessThan(1_000_000);
      expect(some - few).toBeLessThan(1_000_000);
      expect(later.length).toBe(3);
      // Six hundred results have more than a thousand bytes each.
      expect((later.at(-1) ?? 0) - (later[0] ?? 0)).toBeLessThan(400_000);
    },
  );
});

describe("a database of many sessions", () => {
  it(
    "is read entry by entry, however large they are, those of the windows before too",
    { tags: ["slow"] },
    async () => {
      const live: number[] = [];
      for (const count of [4, 4, 400]) {
        using folder = fixtureFolder();
        mkdirSync(folder.at("state/agents/main/agent"), { recursive: true });
        {
          using fixture = openclawFixture(folder.at("state/agents/main/agent/openclaw-agent.sqlite"));
          fixture.database.exec("BEGIN");
          for (let at = 0; at < count; at++) {
            const key = `agent:ops:telegram:direct:${at}`;
            fixture.node(key, `${at}-now`, { sessionId: `${at}-now`, skillsSnapshot: "s".repeat(50_000) });
            for (const [place, window] of ["before", "now"].entries()) {
              fixture.window(`${at}-${window}`, key, at * 10 + place);
              fixture.events(`${at}-${window}`, [jsonLines({ ...header, id: `${at}-${window}` }).trimEnd()]);
            }
          }
          fixture.database.exec("COMMIT");
        }
        live.push((await liveAlongTheWay(folder, 1))[0] ?? 0);
      }
      const [, few = 0, many = 0] = live;
      // All entries together have twenty megabytes, and forty with one for each window.
      expect(many - few).toBeLessThan(1_000_000);
    },
  );
});

/** The same, in an index that is too large to be held. */
function large(text: string): string {
  return `${" ".repeat(300_000)}${text}`;
}

describe("an index that is read entry by entry", () => {
  const entry = (at: number, label: string): string => JSON.stringify({ sessionId: idAt(at), label });
  it.for([
    ["as it should be", `{"agent:main:a": ${entry(1, "a")},\n "agent:main:b": ${entry(2, "b")}}`],
    ["of which the last entry of a key counts", `{"agent:main:a":${entry(1, "a")},"agent:main:a":${entry(2, "b")}}`],
    [
      "with things that are no entries",
      `{"agent:main:a":${entry(1, "a")},"b":7,"c":null,"d":[1],"e":{},"__proto__":{}}`,
    ],
    ["with nothing else", '{"b":7,"c":"{"}'],
    ["with nothing at all", "{}"],
    ["that breaks off", `{"agent:main:a":${entry(1, "a")},"agent:main:b":{"sessionId`],
    ["with something behind it", `{"agent:main:a":${entry(1, "a")}} x`],
    ["with an entry that is no JSON", `{"agent:main:a":${entry(1, "a")},"agent:main:b":{"sessionId":,}}`],
    ["that is a list", `[${entry(1, "a")}]`],
    [
      "with one entry larger than many",
      `{"agent:main:a":${entry(1, "é".repeat(400_000))},"agent:main:b":${entry(2, "b")}}`,
    ],
  ])("gives the same as one that is held: %s", async ([, text]) => {
    const results: (readonly ImportSource[])[] = [];
    const kept: unknown[] = [];
    for (const written of [text ?? "", large(text ?? "")]) {
      using folder = fixtureFolder({ [`${sessions}/sessions.json`]: written });
      for (const at of [1, 2]) folder.write(`${sessions}/${idAt(at)}.jsonl`, jsonLines({ ...header, id: idAt(at) }));
      const store = createMemoryStore();
      const sources = await importAll(store, folder.at("state"));
      const shown = JSON.stringify(sources)
        .replaceAll(folder.path, "")
        .replaceAll(/position \d+|column \d+/g, "");
      results.push(JSON.parse(shown) as ImportSource[]);
      const listed = await store.list({ namespace: "", limit: 100 });
      kept.push(listed.sessions.map(({ ref, entry: { importedFrom: _receipt, ...fields } }) => [ref.key, fields]));
    }
    expect(results[1]).toEqual(results[0]);
    expect(kept[1]).toEqual(kept[0]);
  });
});
