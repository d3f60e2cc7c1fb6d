import { appendFileSync, truncateSync } from "node:fs";
import { type SourcedRecord, throughlineKind } from "@throughline/core/internal";
import type { SessionRef, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { receiptOf } from "../src/import-receipt.ts";
import type { ImportFormat, ImportSource } from "../src/import-types.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
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

const key = "agent:main:live";
const ref: SessionRef = { namespace: "", agentId: "main", key };
const at = "2026-02-01T16:10:51.000Z";
const rows = [
  header,
  message("a", null, "é\u{1F600}"),
  { type: "label", id: "l", parentId: "a", timestamp: at, targetId: "a", label: "x" },
  "",
  "{broken",
  message("00000006", "a"),
  message("a", "00000006"),
  { type: "leaf", id: "f", parentId: "a", timestamp: at, targetId: "a" },
  message("b", "a"),
];
const own = jsonLines(
  { type: "session", version: 3, id: sessionId, timestamp: at, cwd: "", key, throughline: { seq: 0 } },
  ...["a", "b"].map((id, index) => ({ ...message(id, index === 0 ? null : "a"), throughline: { seq: index + 1 } })),
);
const texts: readonly (readonly [string, ImportFormat, string])[] = [
  ["version 3", "openclaw", jsonLines(...rows)],
  ["version 3, ended by carriage return and line feed", "pi", jsonLines(...rows).replaceAll("\n", "\r\n")],
  ["no header, and no line feed at the end", "pi", jsonLines(...rows.slice(1)).trimEnd()],
  [
    "version 1",
    "pi",
    jsonLines(
      { type: "session", id: sessionId, timestamp: at, cwd: "/" },
      { type: "message", timestamp: at, message: { role: "user", content: "x" } },
      { type: "compaction", timestamp: at, summary: "s", firstKeptEntryIndex: 1, tokensBefore: 1 },
      { type: "message", timestamp: at, message: { role: "user", content: "y" } },
    ),
  ],
  [
    "flat records",
    "claw0",
    jsonLines(
      { type: "user", content: "x", ts: 1.5 },
      { type: "tool_use", tool_use_id: "t", name: "n", input: {} },
      { type: "tool_result", tool_use_id: "t", output: "o" },
    ),
  ],
  ["our own", "jsonl", own],
];

async function importNow(store: SessionStore, path: string, from: ImportFormat): Promise<ImportSource> {
  const [source] = await importAll(store, path, { from, key });
  if (source === undefined) throw new Error("there is no result");
  expect([source.error, source.lines]).toEqual([null, source.records + source.lost.length]);
  return source;
}

/** What stands for the lines now. */
async function standing(store: SessionStore): Promise<SourcedRecord[]> {
  const receipt = receiptOf((await store.load(ref))?.entry ?? { sessionId });
  const pieces = new Set(receipt?.continued?.filter(({ rest }) => rest === undefined).map(({ id }) => id));
  return (await recordsOf(store, ref)).filter(({ id }) => !pieces.has(id));
}

const essence = (records: readonly SourcedRecord[]): unknown =>
  records.map(({ record, side, source }) => [
    record.type,
    side,
    record["message"],
    throughlineKind(record),
    typeof source === "string" ? source.trimEnd() : source,
  ]);

describe("a transcript whose program is writing it", () => {
  it.each(texts)(
    "is all there once, in order, however often it is imported meanwhile: %s",
    { tags: ["slow"] },
    async (_name, from, text) => {
      const bytes = Buffer.from(text);
      using folder = fixtureFolder({ "x.jsonl": bytes });
      const whole = createMemoryStore();
      await importNow(whole, folder.at("x.jsonl"), from);
      const expected = await recordsOf(whole, ref);
      for (const step of [5, 64]) {
        truncateSync(folder.at("x.jsonl"));
        const store = createMemoryStore();
        for (let end = 0; end < bytes.length; end += step) {
          appendFileSync(folder.at("x.jsonl"), bytes.subarray(end, end + step));
          const { state } = await importNow(store, folder.at("x.jsonl"), from);
          expect(state).toBe(end === 0 ? "imported" : "grown");
          const isHeaderOurs = from === "jsonl" && end + step <= text.indexOf("\n");
          if (!isHeaderOurs)
            expect(await exported(store, ref, "jsonl")).toBe(bytes.subarray(0, end + step).toString("latin1"));
        }
        expect(essence(await standing(store))).toEqual(essence(expected));
        expect(await importNow(store, folder.at("x.jsonl"), from)).toMatchObject({ state: "unchanged", lines: 0 });
        const [head, headOfWhole] = [await store.load(ref), await whole.load(ref)].map((state) => state?.head.headId);
        const seqOf = (records: readonly SourcedRecord[], id: unknown): number =>
          records.findIndex((one) => one.id === id);
        expect(seqOf(await standing(store), head)).toBe(seqOf(expected, headOfWhole));
      }
    },
  );
});

/** A file that grows by pieces of so many bytes, and what is done after each. */
async function growing(text: string, step: number, act: (path: string, soFar: Buffer) => Promise<void>): Promise<void> {
  const bytes = Buffer.from(text);
  using folder = fixtureFolder({ "x.jsonl": "" });
  for (let end = 0; end < bytes.length; end += step) {
    appendFileSync(folder.at("x.jsonl"), bytes.subarray(end, end + step));
    await act(folder.at("x.jsonl"), bytes.subarray(0, end + step));
  }
}

/** Gives the file as it is after each of the parts to the store; the last result. */
async function inParts(store: SessionStore, ...parts: readonly (string | Buffer)[]): Promise<ImportSource | undefined> {
  using folder = fixtureFolder({ "x.jsonl": "" });
  let last: ImportSource | undefined;
  for (const part of parts) {
    appendFileSync(folder.at("x.jsonl"), part);
    [last] = await importAll(store, folder.at("x.jsonl"), { from: "pi", key });
    expect(last?.lines).toBe((last?.records ?? 0) + (last?.lost.length ?? 0));
  }
  if (last?.error === null)
    expect(await exported(store, ref, "jsonl")).toBe(
      Buffer.concat(parts.map((part) => Buffer.from(part))).toString("latin1"),
    );
  return last;
}

describe("a line that went on after it had been imported", () => {
  const begun = jsonLines(header, message("a", null));
  const next = jsonLines(message("b", "a", "é"));

  it("is told of with its place, and its beginning is kept, and left out of exports", async () => {
    const store = createMemoryStore();
    using folder = fixtureFolder({ "x.jsonl": begun + next.slice(0, 20) });
    const first = await importNow(store, folder.at("x.jsonl"), "pi");
    expect(first.findings).toMatchObject([
      { code: "TAIL_TORN", line: 3, remedy: expect.stringMatching(/import again/) },
    ]);
    appendFileSync(folder.at("x.jsonl"), `${next.slice(20)}{broken\n`);
    expect(await importAll(store, folder.at("x.jsonl"), { from: "pi", key, dryRun: true })).toMatchObject([
      { state: "grown", records: 2 },
    ]);
    const second = await importNow(store, folder.at("x.jsonl"), "pi");
    expect(second).toMatchObject({ state: "grown", lines: 2, records: 2, repaired: 1, lost: [] });
    expect(second.findings.map(({ code, line }) => [code, line])).toEqual([
      ["TAIL_CONTINUED", 3],
      ["LINE_MALFORMED", 4],
    ]);
    expect((await recordsOf(store, ref)).map(({ source }) => source)[2]).toBe(next.slice(0, 20));
    expect(await exported(store, ref, "pi")).toBe(begun + Buffer.from(next).toString("latin1"));
    expect(receiptOf((await store.load(ref))?.entry ?? { sessionId })).toMatchObject({ lineCount: 4, recordCount: 4 });
  });

  it("may not have another beginning", async () => {
    using folder = fixtureFolder({ "x.jsonl": begun + next.slice(0, 20) });
    const store = createMemoryStore();
    await importNow(store, folder.at("x.jsonl"), "pi");
    folder.write("x.jsonl", begun + next.slice(0, 19) + jsonLines("?"));
    expect(await importAll(store, folder.at("x.jsonl"), { from: "pi", key })).toMatchObject([
      { state: "refused", error: { code: "SOURCE_CHANGED" } },
    ]);
    folder.write("x.jsonl", begun);
    expect(await importAll(store, folder.at("x.jsonl"), { from: "pi", key })).toMatchObject([
      { state: "refused", error: { code: "SOURCE_CHANGED" } },
    ]);
  });

  it("stays the record it is when it was whole, whatever white space follows", async () => {
    for (const end of [["\n"], ["\r", "\n"], [" ", "\t", " \r\n"], ["\0", "\0\n"]]) {
      const store = createMemoryStore();
      expect(await inParts(store, begun.trimEnd(), ...end, next)).toMatchObject({ state: "grown", records: 1 });
      expect((await recordsOf(store, ref)).map(({ id, parentId }) => [id, parentId])).toEqual([
        [`header:${sessionId}`, null],
        ["a", null],
        ["b", "a"],
      ]);
    }
    expect(await inParts(createMemoryStore(), begun.trimEnd(), " ".repeat(2000))).toMatchObject({
      error: { code: "SOURCE_CHANGED" },
    });
  });

  it("is kept as a broken line when something else follows a whole record, which stays", async () => {
    for (const parts of [[next], [next.slice(0, 9), next.slice(9)], ["\r", `${next.slice(0, 9)}`, next.slice(9)]]) {
      const store = createMemoryStore();
      await inParts(store, begun.trimEnd(), ...parts, jsonLines(message("c", "a")));
      expect((await standing(store)).map(({ record }) => throughlineKind(record) ?? record.id)).toEqual([
        `header:${sessionId}`,
        "unparsed",
        "c",
      ]);
      expect((await recordsOf(store, ref)).map(({ id }) => id)).toContain("a");
    }
  });

  it("is lost when it grows too long, and counts once each time", async () => {
    const long = jsonLines(message("long", "a", "x".repeat(900)));
    for (const cuts of [[100, 300], [100, 600, 700], [600], [600, 700]]) {
      const store = createMemoryStore({ limits: { recordBytes: 500 } });
      using folder = fixtureFolder({ "x.jsonl": begun });
      for (const [index, cut] of [...cuts, long.length].entries()) {
        appendFileSync(folder.at("x.jsonl"), long.slice(cuts[index - 1] ?? 0, cut));
        const { lost } = await importNow(store, folder.at("x.jsonl"), "pi");
        expect(lost.map(({ line }) => line)).toEqual(cut > 500 ? [3] : []);
      }
      appendFileSync(folder.at("x.jsonl"), next);
      expect(await importNow(store, folder.at("x.jsonl"), "pi")).toMatchObject({ state: "grown", records: 1 });
      expect(await exported(store, ref, "jsonl")).toBe(begun + Buffer.from(next).toString("latin1"));
    }
  });

  it("is there once when imports are killed, one commit further each time", async () => {
    const text = jsonLines(...rows);
    for (const appends of [0, 1, 2]) {
      const store = createMemoryStore({ limits: { batchRecords: 2 } });
      await growing(text, 37, async (path, soFar) => {
        const run = importAll(failingAfter(store, appends), path, { from: "pi", key });
        await run.catch((error: unknown) => expect(String(error)).toMatch(/killed/));
        if (soFar.length < Buffer.byteLength(text)) return;
        await importNow(store, path, "pi");
        expect(await exported(store, ref, "jsonl")).toBe(soFar.toString("latin1"));
      });
    }
  });
});

describe("a file of any kind, cut anywhere", () => {
  it("is there to the byte after each import, and no record leaves the log", { tags: ["slow"] }, async () => {
    const row = fc.oneof(
      fc.constantFrom(
        ...[header, message("a", null), message("a", "a"), message("é", "a")].map((value) => JSON.stringify(value)),
        '{"type":"leaf","id":"l","targetId":"a"}',
        "",
        "\r",
        " ",
        "{",
        "\0",
        "\uFEFF{}",
        "1",
        '{"type":"user","content":"x"}',
      ),
      fc.constantFrom(...own.split("\n")),
      fc.string().map((text) => text.replaceAll("\n", "")),
    );
    const end = fc.constantFrom("\n", "\n", "\r\n", " \t\n", "\0\n", "");
    const file = fc.tuple(
      fc.array(fc.tuple(row, end), { maxLength: 6 }).map((lines) => Buffer.from(lines.flat().join(""))),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
      fc.constantFrom(120, 100_000),
    );
    await fc.assert(
      fc.asyncProperty(file, async ([bytes, places, recordBytes]) => {
        const cuts = [...places.map((place) => Math.floor(place * bytes.length)), bytes.length].toSorted(
          (a, b) => a - b,
        );
        using folder = fixtureFolder({ "x.jsonl": "" });
        const store = createMemoryStore({ limits: { batchRecords: 2, recordBytes } });
        let lines = 0;
        let hasLost = false;
        let before: readonly string[] = [];
        for (const [index, cut] of cuts.entries()) {
          appendFileSync(folder.at("x.jsonl"), bytes.subarray(cuts[index - 1] ?? 0, cut));
          const source = await importNow(store, folder.at("x.jsonl"), "pi");
          lines += source.lines;
          hasLost ||= source.lost.length > 0;
          const now = (await recordsOf(store, ref)).map(({ seq, id, source: line }) => `${seq} ${id} ${String(line)}`);
          expect(now.slice(0, before.length)).toEqual(before);
          before = now;
          const hasOwnHeader = receiptOf((await store.load(ref))?.entry ?? { sessionId })?.hasOwnHeader === true;
          if (!hasLost && !hasOwnHeader)
            expect(await exported(store, ref, "jsonl")).toBe(bytes.subarray(0, cut).toString("latin1"));
        }
        if (!hasLost) expect(lines).toBe(before.length);
      }),
      { numRuns: 60 },
    );
  });
});

describe("imports of a growing file that run at once", () => {
  const label = (id: string): unknown => ({
    type: "label",
    id,
    parentId: "a",
    timestamp: at,
    targetId: "a",
    label: id,
  });
  const text = jsonLines(...rows.flatMap((row, index) => [row, label(`k${index}`), label(`n${index}`)]));

  /** Three at a time, each begun when the file is a little longer and the one before is somewhere on its way. */
  async function crowd(store: SessionStore, step: number): Promise<void> {
    const bytes = Buffer.from(text);
    using folder = fixtureFolder({ "x.jsonl": "" });
    const runs: Promise<ImportSource[]>[] = [];
    for (let end = 0, turn = 0; end < bytes.length; end += step, turn++) {
      appendFileSync(folder.at("x.jsonl"), bytes.subarray(end, end + step));
      runs.push(importAll(store, folder.at("x.jsonl"), { from: "pi", key }));
      for (let waited = 0; waited < (turn * 7) % 5; waited++) await new Promise(setImmediate);
      if (runs.length < 3 && end + step < bytes.length) continue;
      for (const { error } of (await Promise.all(runs.splice(0))).flat())
        expect([undefined, "APPEND_CONFLICT", "REVISION_CONFLICT"]).toContain(error?.code);
    }
    await importNow(store, folder.at("x.jsonl"), "pi");
    expect(await exported(store, ref, "jsonl")).toBe(bytes.toString("latin1"));
  }

  it("take every line once", { tags: ["slow"] }, async () => {
    for (const step of [11, 29, 61, 97, 250]) await crowd(createMemoryStore(), step);
    await crowd(createMemoryStore({ limits: { batchRecords: 2 } }), 190);
  });

  it("do not take back what a faster one has said it read", async () => {
    const store = createMemoryStore();
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, message("a", null)).trimEnd() });
    await importNow(store, folder.at("x.jsonl"), "pi");
    appendFileSync(folder.at("x.jsonl"), "\n");
    let loads = 0;
    const slow = replaceMembers(store, {
      async load(...given) {
        if (++loads === 2) {
          appendFileSync(folder.at("x.jsonl"), jsonLines(label("k")));
          await importNow(store, folder.at("x.jsonl"), "pi");
        }
        return store.load(...given);
      },
    });
    const [overtaken] = await importAll(slow, folder.at("x.jsonl"), { from: "pi", key });
    expect([loads, overtaken?.error?.code]).toEqual([2, "APPEND_CONFLICT"]);
    expect(await importNow(store, folder.at("x.jsonl"), "pi")).toMatchObject({ state: "unchanged" });
    expect((await recordsOf(store, ref)).length).toBe(3);
  });

  it("take every line once in files", async () => {
    using folder = fixtureFolder();
    await using store = createJsonlStore({ root: folder.at("store"), create: true });
    await crowd(store, 97);
  });
});
