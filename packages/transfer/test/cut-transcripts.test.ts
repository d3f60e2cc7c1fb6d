import { readFileSync, statSync, truncateSync } from "node:fs";
import { copyRecords } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";

import type { SessionRef, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { copySessions } from "@throughline/transfer";
import { aroundCalls, replaceMembers } from "@throughline/test-kit";
import {
  exported,
  fixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  recordsOf,
  sessionId,
} from "./fixture-folder.ts";
import type { FixtureFolder } from "./fixture-folder.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: `agent:main:import:direct:${sessionId}` };
const largestBatch = 100;

function conversation(count: number): string {
  const texts = Array.from({ length: count }, (_, at) =>
    message(`a${at}`, at === 0 ? null : `a${at - 1}`, `number ${at} ${"x".repeat(at % 200)}`),
  );
  return jsonLines(header, ...texts);
}

function transcriptOf(folder: FixtureFolder): string {
  return folder.at("store", "agents", "main", "sessions", `${sessionId}.jsonl`);
}

function cutOff(path: string, bytes: number): void {
  truncateSync(path, statSync(path).size - bytes);
}

async function filled(folder: FixtureFolder, how: "import" | "copy"): Promise<void> {
  await using store = createJsonlStore({ root: folder.at("store"), create: true });
  if (how === "import") {
    await importAll(store, folder.at("x.jsonl"));
    return;
  }
  await using from = createMemoryStore();
  await importAll(from, folder.at("x.jsonl"));
  await Array.fromAsync(copySessions(from, store));
}

describe("a transcript that is cut off behind a bulk writer", () => {
  for (const how of ["import", "copy"] as const) {
    for (const bytes of [20, 1024]) {
      it(`loses at most the last batch of a session that came by ${how} when ${bytes} bytes are missing`, async () => {
        using folder = fixtureFolder({ "x.jsonl": conversation(404) });
        await filled(folder, how);
        cutOff(transcriptOf(folder), bytes);
        await using store = createJsonlStore({ root: folder.at("store") });
        const held = await recordsOf(store, ref);
        expect(held.length).toBeGreaterThanOrEqual(405 - largestBatch);
        expect(held.map(({ seq }) => seq)).toEqual(held.map((_, at) => at + 1));
      });
    }
  }
});

/** A store in memory, and the sizes of the batches it is given. */
function measured(): { readonly store: SessionStore; readonly batches: { records: number; bytes: number }[] } {
  const batches: { records: number; bytes: number }[] = [];
  const inner = createMemoryStore();
  const store = replaceMembers(inner, {
    append(to, drafts, options) {
      batches.push({ records: drafts.length, bytes: JSON.stringify(drafts).length });
      return inner.append(to, drafts, options);
    },
  });
  return { store, batches };
}

describe("the batches of bulk writers", () => {
  it("hold at most 100 records and 256 KiB, a larger record being one by itself", async () => {
    const large = Array.from({ length: 12 }, (_, at) =>
      message(`b${at}`, at === 0 ? "a299" : `b${at - 1}`, "y".repeat(100_000)),
    );
    const huge = message("c", "b11", "z".repeat(600_000));
    using folder = fixtureFolder({ "x.jsonl": conversation(300) + jsonLines(...large, huge) });
    const [imported, copied] = [measured(), measured()];
    await importAll(imported.store, folder.at("x.jsonl"));
    await Array.fromAsync(copySessions(imported.store, copied.store));
    for (const { batches } of [imported, copied]) {
      expect(Math.max(...batches.map(({ records }) => records))).toBe(100);
      const several = batches.filter(({ records }) => records > 1);
      expect(Math.max(...several.map(({ bytes }) => bytes))).toBeLessThan(512 * 1024);
      expect(batches.reduce((sum, { records }) => sum + records, 0)).toBe(314);
    }
  });
});

describe("an import whose end was cut off in the store", () => {
  it("imports the missing records again, as often as they are lost, and nothing twice", async () => {
    const text = conversation(404);
    using folder = fixtureFolder({ "x.jsonl": text });
    const inner = createMemoryStore();
    await importAll(inner, folder.at("x.jsonl"));
    for (const held of [0, 1, 100, 250, 404]) {
      // What a store answers that lost the end of its transcript and kept the entry.
      const store = createMemoryStore();
      const whole = (await inner.load(ref))!;
      await store.save(ref, { ...whole.entry }, { ifRevision: null });
      await copyRecords({ store: inner, ref }, { store, ref }, { beforeSeq: held + 1 });
      const [again] = await importAll(store, folder.at("x.jsonl"));
      expect([again?.state, again?.records, again?.error]).toEqual(["grown", 405 - held, null]);
      expect(again?.findings.map(({ code, repaired }) => [code, repaired])).toEqual([["RECORD_MISSING", true]]);
      expect(await exported(store, ref, "jsonl")).toBe(text);
      expect((await importAll(store, folder.at("x.jsonl")))[0]?.state).toBe("unchanged");
    }
  });

  it("refuses when the conversation went on behind the missing records", async () => {
    using folder = fixtureFolder({ "x.jsonl": conversation(40) });
    const inner = createMemoryStore();
    await importAll(inner, folder.at("x.jsonl"));
    const store = createMemoryStore();
    await store.save(ref, { ...(await inner.load(ref))!.entry }, { ifRevision: null });
    await copyRecords({ store: inner, ref }, { store, ref }, { beforeSeq: 11 });
    await store.append(ref, [{ type: "message", message: { role: "user", content: "on its own" } }]);
    const [again] = await importAll(store, folder.at("x.jsonl"));
    expect([again?.state, again?.error?.code]).toEqual(["refused", "APPEND_CONFLICT"]);
  });
});

describe("what is only partly there", () => {
  it("says so in its entry until the copy or import has come to its end", async () => {
    const abort = new AbortController();
    using folder = fixtureFolder({ "x.jsonl": conversation(404) });
    const from = createMemoryStore();
    await expect(
      importAll(from, folder.at("x.jsonl"), { signal: abort.signal, onProgress: () => abort.abort() }),
    ).rejects.toMatchObject({ code: "ABORTED" });
    const begun = (await from.load(ref))!;
    expect(begun.head.lastSeq).toBe(largestBatch);
    expect(begun.entry["importedFrom"]).toMatchObject({ isPartial: true });
    await importAll(from, folder.at("x.jsonl"));
    expect((await from.load(ref))!.entry["importedFrom"]).not.toHaveProperty("isPartial");

    const to = createMemoryStore();
    const stop = new AbortController();
    const counting = aroundCalls(to, ({ name, run }) => {
      if (name === "append") stop.abort();
      return run();
    });
    await expect(Array.fromAsync(copySessions(from, counting, { signal: stop.signal }))).rejects.toThrow();
    expect((await to.load(ref))!.entry["copyIncomplete"]).toBe(true);
    await Array.fromAsync(copySessions(from, to));
    expect((await to.load(ref))!.entry).toEqual((await from.load(ref))!.entry);
    expect(readFileSync(folder.at("x.jsonl"), "utf8")).toBe(await exported(to, ref, "jsonl"));
  });
});
