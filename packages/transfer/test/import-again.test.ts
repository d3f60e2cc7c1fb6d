import { appendFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import type { SessionRef, SessionStore } from "@throughline/core";
import { importPaths } from "@throughline/transfer";
import { receiptOf } from "../src/import-receipt.ts";
import { replaceMembers } from "@throughline/test-kit";
import {
  exported,
  failingAfter,
  fixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  recordsOf,
  sessionId,
} from "./fixture-folder.ts";

const key = `agent:main:import:direct:${sessionId}`;
const ref: SessionRef = { namespace: "", agentId: "main", key };

async function outcome(store: SessionStore, path: string): Promise<unknown[]> {
  const [source] = await importAll(store, path);
  return [source?.state, source?.lines, source?.records, source?.error?.code ?? null];
}

describe("importing again", () => {
  it("adds nothing, then only the tail", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, message("a", null)) });
    const store = createMemoryStore();
    const path = folder.at("x.jsonl");
    expect(await outcome(store, path)).toEqual(["imported", 2, 2, null]);
    expect(await outcome(store, path)).toEqual(["unchanged", 0, 0, null]);
    appendFileSync(path, jsonLines(message("b", "a"), "{broken"));
    const [grown] = await importAll(store, path);
    expect(grown).toMatchObject({
      state: "grown",
      lines: 2,
      records: 2,
      repaired: 1,
      findings: [{ code: "LINE_MALFORMED", line: 4 }],
    });
    expect(await outcome(store, path)).toEqual(["unchanged", 0, 0, null]);
    appendFileSync(path, jsonLines(message("b", "b"), message("c", "b")));
    const [again] = await importAll(store, path);
    expect([again?.state, again?.records, again?.findings.map(({ code, line }) => [code, line])]).toEqual([
      "grown",
      2,
      [["DUPLICATE_ID", 5]],
    ]);
    // What the first lines were is known to the last ones: the id was there before.
    expect((await recordsOf(store, ref)).map(({ id, parentId }) => [id, parentId])).toEqual([
      [`header:${sessionId}`, null],
      ["a", null],
      ["b", "a"],
      ["00000003", "b"],
      ["b~2", "b"],
      ["c", "b~2"],
    ]);
  });

  it("finds the session of a file that was moved", async () => {
    using folder = fixtureFolder({
      "x.jsonl": jsonLines(header, message("a", null)),
      "y.jsonl": jsonLines(header, message("a", null), message("b", "a")),
    });
    const store = createMemoryStore();
    expect(await outcome(store, folder.at("x.jsonl"))).toEqual(["imported", 2, 2, null]);
    expect(await outcome(store, folder.at("y.jsonl"))).toEqual(["grown", 1, 1, null]);
  });

  it("refuses a file whose beginning changed, and leaves the session alone", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, message("a", null), message("b", "a")) });
    const store = createMemoryStore();
    const path = folder.at("x.jsonl");
    await importAll(store, path);
    for (const changed of [
      jsonLines(header, message("a", null, "other"), message("b", "a"), message("c", "b")),
      jsonLines(header),
    ]) {
      folder.write("x.jsonl", changed);
      expect(await outcome(store, path)).toEqual(["refused", 0, 0, "SOURCE_CHANGED"]);
    }
    expect((await recordsOf(store, ref)).length).toBe(3);
    folder.write("x.jsonl", jsonLines(header, message("a", null, "other")));
    const [second] = await importAll(store, path, { key: "agent:main:second" });
    expect(second).toMatchObject({
      state: "imported",
      key: "agent:main:second",
      sessionId: `${sessionId}-2`,
      records: 2,
    });
  });

  it("refuses to go on when the session got records of its own meanwhile", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, message("a", null)) });
    const store = createMemoryStore();
    await importAll(store, folder.at("x.jsonl"));
    await store.append(ref, [{ type: "message", message: { role: "user", content: "here" } }]);
    appendFileSync(folder.at("x.jsonl"), jsonLines(message("b", "a")));
    expect(await outcome(store, folder.at("x.jsonl"))).toEqual(["refused", 0, 0, "APPEND_CONFLICT"]);
    expect((await recordsOf(store, ref)).length).toBe(3);
  });

  it("a last line without line feed may get one, and may go on", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, message("a", null)).trimEnd() });
    const store = createMemoryStore();
    const path = folder.at("x.jsonl");
    expect(await outcome(store, path)).toEqual(["imported", 2, 2, null]);
    appendFileSync(path, `\n${jsonLines(message("b", "a"))}{"torn`);
    expect(await outcome(store, path)).toEqual(["grown", 2, 2, null]);
    expect(await exported(store, ref, "jsonl")).toBe(
      `${jsonLines(header, message("a", null), message("b", "a"))}{"torn`,
    );
    appendFileSync(path, '":1}\n');
    expect(await outcome(store, path)).toEqual(["grown", 1, 1, null]);
    expect(await exported(store, ref, "jsonl")).toBe(
      `${jsonLines(header, message("a", null), message("b", "a"))}{"torn":1}\n`,
    );
  });

  it("goes on where an import was cut off, wherever that was", async () => {
    const rows = Array.from({ length: 40 }, (_, index) =>
      message(index % 9 === 8 ? "dup" : `m${index}`, index === 0 ? null : `m${index - 1}`),
    );
    const text = jsonLines(header, ...rows.map((row, index) => (index === 20 ? "{broken" : row)));
    using folder = fixtureFolder({ "x.jsonl": text });
    const limits = { batchRecords: 3 };
    const whole = createMemoryStore({ limits });
    await importAll(whole, folder.at("x.jsonl"));
    const expected = await recordsOf(whole, ref);
    for (let appends = 0; appends <= 14; appends++) {
      const store = createMemoryStore({ limits });
      const cut = importAll(failingAfter(store, appends), folder.at("x.jsonl"));
      if (appends < 14) await expect(cut).rejects.toThrow("killed");
      else await cut;
      const before = (await recordsOf(store, ref)).length;
      expect(before).toBe(Math.min(appends * 3, 41));
      const [source] = await importAll(store, folder.at("x.jsonl"));
      expect(source?.records).toBe(41 - before);
      expect(
        (await recordsOf(store, ref)).map(({ seq, id, parentId, source: line }) => [seq, id, parentId, line]),
      ).toEqual(expected.map(({ seq, id, parentId, source: line }) => [seq, id, parentId, line]));
      expect(await exported(store, ref, "jsonl")).toBe(text);
    }
  });

  it("an aborted import says so and can be taken up", async () => {
    using folder = fixtureFolder({
      "x.jsonl": jsonLines(header, ...Array.from({ length: 30 }, (_, index) => message(`m${index}`, null))),
    });
    const store = createMemoryStore({ limits: { batchRecords: 5 } });
    const abort = new AbortController();
    const progress: number[] = [];
    const run = importAll(store, folder.at("x.jsonl"), {
      signal: abort.signal,
      onProgress({ records }) {
        progress.push(records);
        if (records === 15) abort.abort();
      },
    });
    await expect(run).rejects.toMatchObject({ code: "ABORTED" });
    expect(progress).toEqual([5, 10, 15]);
    expect(await outcome(store, folder.at("x.jsonl"))).toEqual(["grown", 16, 16, null]);
  });

  it("reports each batch against the size of the whole source", async () => {
    const text = jsonLines(header, ...Array.from({ length: 9 }, (_, index) => message(`m${index}`, null)));
    using folder = fixtureFolder({ "x.jsonl": text });
    const store = createMemoryStore({ limits: { batchRecords: 5 } });
    const progress: (readonly [readBytes: number, sizeBytes: number])[] = [];
    await importAll(store, folder.at("x.jsonl"), {
      onProgress: ({ readBytes, sizeBytes }) => progress.push([readBytes, sizeBytes]),
    });
    const half = text.split("\n").slice(0, 5).join("\n").length + 1;
    expect(progress[0]).toEqual([half, text.length]);
    expect(progress.at(-1)).toEqual([text.length, text.length]);
  });

  it("a dry run tells the same and writes nothing", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, message("a", null), "{broken") });
    const store = createMemoryStore();
    const [dry] = await importAll(store, folder.at("x.jsonl"), { dryRun: true });
    expect((await store.list()).sessions).toEqual([]);
    const [real] = await importAll(store, folder.at("x.jsonl"));
    expect(dry).toEqual(real);
    expect(dry).toMatchObject({ state: "imported", records: 3, repaired: 1 });
    appendFileSync(folder.at("x.jsonl"), jsonLines(message("b", "a")));
    expect(await importAll(store, folder.at("x.jsonl"), { dryRun: true })).toMatchObject([
      { state: "grown", records: 1 },
    ]);
    expect((await store.load(ref))?.head.lastSeq).toBe(3);
  });

  it("two imports of one file at once make one session", async () => {
    using folder = fixtureFolder({
      "x.jsonl": jsonLines(header, ...Array.from({ length: 30 }, (_, index) => message(`m${index}`, null))),
    });
    const store = createMemoryStore({ limits: { batchRecords: 4 } });
    await Promise.allSettled([importAll(store, folder.at("x.jsonl")), importAll(store, folder.at("x.jsonl"))]);
    await importAll(store, folder.at("x.jsonl"));
    expect((await recordsOf(store, ref)).length).toBe(31);
    expect((await store.list({ state: "any" })).sessions.length).toBe(1);
  });

  it("a leaf row puts the head where it says, also at the end of a batch", async () => {
    const leaf = { type: "leaf", id: "l", parentId: "c", timestamp: "2026-02-01T16:10:52.000Z", targetId: "a" };
    using folder = fixtureFolder({
      "x.jsonl": jsonLines(header, message("a", null), message("b", "a"), message("c", "b"), leaf),
    });
    for (const batchRecords of [1, 2, 100]) {
      const store = createMemoryStore({ limits: { batchRecords } });
      await importAll(store, folder.at("x.jsonl"));
      expect((await store.load(ref))?.head.headId).toBe("a");
    }
  });
});

describe("the counts", () => {
  it("add up: lines are records and lost ones, and only what is too large is lost", async () => {
    const long = jsonLines(message("long", "a", "x".repeat(3000)));
    using folder = fixtureFolder({
      "x.jsonl": jsonLines(header, message("a", null)) + long + jsonLines("", "{broken", message("b", "a")),
    });
    const store = createMemoryStore({ limits: { recordBytes: 1000 } });
    const [source] = await importAll(store, folder.at("x.jsonl"));
    expect(source).toMatchObject({
      lines: 6,
      records: 5,
      repaired: 1,
      lost: [{ line: 3, bytes: long.length - 1, reason: "too-long" }],
    });
    expect(source?.findings.map(({ code, line }) => [code, line])).toEqual([
      ["LINE_TOO_LONG", 3],
      ["LINE_MALFORMED", 5],
    ]);
    expect(source?.findings[0]?.message).toContain("It stays in the source; nothing of it is in the store.");
    expect(await outcome(store, folder.at("x.jsonl"))).toEqual(["unchanged", 0, 0, null]);
    expect(receiptOf((await store.load(ref))?.entry ?? { sessionId })).toMatchObject({ lineCount: 6, recordCount: 5 });
  });

  it("leave a line that is too large to a store that takes it, in a session of its own", async () => {
    const text = jsonLines(header, message("a", null), message("long", "a", "x".repeat(3000)), message("b", "long"));
    using folder = fixtureFolder({ "x.jsonl": text });
    const root = folder.at("store");
    const lost = [{ line: 3, bytes: Buffer.byteLength(text.split("\n")[2] ?? ""), reason: "too-long" }];
    {
      const limits = { recordBytes: 1000 };
      await using store = createJsonlStore({ root, create: true, limits });
      const [dry] = await importAll(store, folder.at("x.jsonl"), { dryRun: true });
      const [source] = await importAll(store, folder.at("x.jsonl"));
      expect([dry, source].map((each) => each?.lost)).toEqual([lost, lost]);
      expect(dry?.findings).toEqual(source?.findings);
    }
    await using store = createJsonlStore({ root });
    expect(await outcome(store, folder.at("x.jsonl"))).toEqual(["unchanged", 0, 0, null]);
    const [whole] = await importAll(store, folder.at("x.jsonl"), { key: "agent:main:whole" });
    expect([whole?.state, whole?.records, whole?.lost]).toEqual(["imported", 4, []]);
    expect(await exported(store, { namespace: "", agentId: "main", key: "agent:main:whole" }, "jsonl")).toBe(text);
  });

  it("for any file: nothing is lost, and the export is the file, byte for byte", { tags: ["slow"] }, async () => {
    const row = fc
      .oneof(
        fc.constantFrom(
          JSON.stringify(header),
          JSON.stringify(message("a", null)),
          JSON.stringify(message("a", "a")),
          JSON.stringify(message("b", "zzz")),
          "",
          "\r",
          "{",
          '{"type":"user","content":"x","ts":1.0}',
          '{"n":1e3,"n":-0}',
          "\uFEFF{}",
          "\0",
        ),
        fc.string(),
      )
      .map((text) => Buffer.from(text.replaceAll("\n", "")));
    const file = fc.tuple(
      fc.array(
        fc.oneof(
          row,
          fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
        ),
        { maxLength: 8 },
      ),
      fc.boolean(),
    );
    await fc.assert(
      fc.asyncProperty(file, async ([rows, isTerminated]) => {
        const bytes = Buffer.concat(
          rows.flatMap((line, index) => (index < rows.length - 1 || isTerminated ? [line, Buffer.from("\n")] : [line])),
        );
        using folder = fixtureFolder({ "x.jsonl": bytes });
        const store = createMemoryStore({ limits: { batchRecords: 3 } });
        const [source] = await Array.fromAsync(
          importPaths(store, [folder.at("x.jsonl")], { from: "pi", key: "agent:main:x" }),
        );
        expect(source?.error).toBe(null);
        expect(source?.lost).toEqual([]);
        expect(source?.lines).toBe(source?.records);
        expect(await exported(store, { ...ref, key: "agent:main:x" }, "jsonl")).toBe(bytes.toString("latin1"));
      }),
      { numRuns: 150 },
    );
  });

  it("memory stays bounded: the whole file is never held", async () => {
    using folder = fixtureFolder();
    const path = folder.write("x.jsonl", jsonLines(header));
    const row = jsonLines(message("m", null, "x".repeat(20_000)));
    for (let index = 0; index < 500; index++) appendFileSync(path, row.replace('"id":"m"', `"id":"m${index}"`));
    let largest = 0;
    const inner = createMemoryStore();
    const store = replaceMembers(inner, {
      append(to, drafts, options) {
        largest = Math.max(largest, JSON.stringify(drafts).length);
        return inner.append(to, drafts, options);
      },
    });
    expect((await importAll(store, path)).map(({ records }) => records)).toEqual([501]);
    expect(largest).toBeLessThan(6 * 1024 * 1024);
  });
});
