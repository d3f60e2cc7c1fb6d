import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { crc32 } from "node:zlib";
import type { AppendDraft, AppendOptions, Finding, SessionEvent, SessionStore } from "@throughline/core";
import { attachEnvelope } from "@throughline/openclaw-format/internal";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { findingCodesOf, mainRef, storeWithSession, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const mebibyte = 1024 * 1024;
const timeout = 120_000;
const timestamp = "2026-01-02T03:04:05.006Z";
const identity = { name: "identity", encode: (bytes: Uint8Array) => bytes, decode: (bytes: Uint8Array) => bytes };

async function codesOf(findings: AsyncIterable<Finding> | undefined): Promise<readonly string[]> {
  const codes: string[] = [];
  for await (const { code } of findings ?? []) codes.push(code);
  return codes;
}

async function typesOf(store: SessionStore, payload: "head" | "record" | "source"): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { records } of store.read(mainRef, { payload }))
    for (const { seq, id, type, bytes } of records) types.push(`${seq} ${id} ${type} ${bytes}`);
  return types;
}

interface LongCase {
  readonly name: string;
  readonly draft: AppendDraft;
  readonly options?: AppendOptions;
  readonly store?: Partial<JsonlStoreOptions>;
  /** What the store is opened with again. */
  readonly again?: Partial<JsonlStoreOptions>;
}

const base = { type: "message", id: "long", parentId: null, timestamp };
const largest = { limits: { recordBytes: 24 * mebibyte, batchBytes: 64 * mebibyte } };
const cases: readonly LongCase[] = [
  {
    name: "the largest record with a patch of the entry",
    draft: { ...userDraft("x".repeat(16 * mebibyte - 300)), id: "long" },
    options: { entry: { label: "z".repeat(5000), sendPolicy: "deny" } },
  },
  {
    name: "a short record with a long patch of the entry",
    draft: { ...userDraft("x"), id: "long" },
    options: { entry: { label: "z".repeat(17 * mebibyte), sendPolicy: "deny" } },
  },
  {
    name: "a record that a codec made longer",
    draft: { ...userDraft("x".repeat(14 * mebibyte)), id: "long" },
    store: { codec: identity },
    again: { codec: identity },
  },
  {
    name: "a record of a limit that is no longer in force",
    draft: { ...userDraft("x".repeat(20 * mebibyte)), id: "long" },
    store: largest,
  },
  {
    name: "a record with the line it came in",
    draft: { source: "\u0001".repeat(4 * mebibyte), record: { ...base, message: { role: "user", content: "x" } } },
  },
];

describe("a line of ours that is longer than other programs' lines are read", () => {
  it.for(testSize({ short: cases.slice(0, 1), long: cases }))(
    "is read, remembered, verified and left alone by a repair: $name",
    { tags: ["slow"], timeout },
    async ({ draft, options = {}, store: first = {}, again = {} }) => {
      const root = newFolder();
      const shared = { root, sessionsJson: false, index: false };
      const writer = await storeWithSession(root, { ...shared, ...first, derivedDelayMs: 2 ** 31 - 1 });
      await writer.append(mainRef, [draft], { ...options, idempotencyKey: "key" });
      await writer.append(mainRef, [{ ...userDraft("after"), id: "after" }]);
      const state = await writer.load(mainRef);
      const wanted = await typesOf(writer, "head");
      // As after kill -9: nothing that follows the transcript was written.
      const entries = readFileSync(`${root}/agents/main/throughline/entries.log`);
      await writer.close();
      expect(entries.includes("sendPolicy")).toBe(false);
      rmSync(`${root}/agents/main/throughline/entries.log`);
      appendFileSync(`${root}/agents/main/throughline/entries.log`, entries);
      expect(readFileSync(transcriptOf(root)).length).toBeGreaterThan(16 * mebibyte);
      const events: SessionEvent[] = [];
      const store = createJsonlStore({ ...shared, ...again, onEvent: (event) => void events.push(event) });
      expect((await store.load(mainRef))?.entry).toEqual(state?.entry);
      expect(await typesOf(store, "head")).toEqual(wanted);
      expect(await typesOf(store, "record")).toEqual(wanted);
      expect(await codesOf(store.maintenance?.verify({ full: true }))).toEqual([]);
      expect(await codesOf(store.maintenance?.repair())).toEqual([]);
      expect(findingCodesOf(events)).toEqual([]);
      expect((await store.append(mainRef, [userDraft("next")])).head.lastSeq).toBe(3);
      await store.close();
      const largeEnough = createJsonlStore({ ...shared, ...first });
      expect((await largeEnough.append(mainRef, [draft], { ...options, idempotencyKey: "key" })).replayed).toBe(true);
      await largeEnough.close();
    },
  );

  it("is a record also among lines of other programs", { tags: ["slow"], timeout }, async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { sessionsJson: false });
    await writer.append(mainRef, [{ ...userDraft("x".repeat(16 * mebibyte - 200)), id: "long" }], {
      entry: { label: "z".repeat(300) },
    });
    await writer.close();
    appendFileSync(transcriptOf(root), `${JSON.stringify({ ...base, id: "theirs", parentId: "long" })}\n`);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    expect((await store.load(mainRef))?.head).toMatchObject({ lastSeq: 2, headId: "theirs" });
    expect(findingCodesOf(events)).toEqual([]);
    expect((await codesOf(store.maintenance?.verify())).filter((code) => code !== "RECORD_INVALID")).toEqual([]);
    await store.close();
  });
});

describe("a line of another program that is too long", () => {
  const long = "x".repeat(20 * mebibyte);
  const envelope = '"_tl":{"seq":2}';
  it.for([
    ["plain", `{"type":"message","id":"big","parentId":null,"timestamp":"${timestamp}","message":"${long}"}`],
    ["with our mark inside", `{"type":"message","id":"big","x":{${envelope}},"message":"${long}"}`],
    ["with our mark cut off", `{"type":"message","id":"big","message":"${long}",${envelope.slice(0, -1)},"x":"`],
  ] as const)(
    "is kept, told of by its place and size, and never read as a whole: %s",
    { tags: ["slow"], timeout },
    async ([, line]) => {
      const root = newFolder();
      let readBytes = 0;
      let largestRead = 0;
      const files: typeof nodeFiles = {
        ...nodeFiles,
        read(handle, into, position) {
          readBytes += into.length;
          largestRead = Math.max(largestRead, into.length);
          return nodeFiles.read(handle, into, position);
        },
      };
      const events: SessionEvent[] = [];
      const shared = { sessionsJson: false, files, onEvent: (event: SessionEvent) => void events.push(event) };
      const store = await storeWithSession(root, shared);
      await store.append(mainRef, [{ ...userDraft("before"), id: "before" }]);
      appendFileSync(transcriptOf(root), `${line}\n`);
      await store.append(mainRef, [{ ...userDraft("after"), id: "after" }]);
      expect(findingCodesOf(events)).toEqual(["LINE_TOO_LONG"]);
      readBytes = 0;
      for (const payload of ["head", "record", "source"] as const) {
        const types = await typesOf(store, payload);
        expect(types.map((text) => text.split(" ")[2])).toEqual(["message", "custom", "message"]);
        expect(types[1]?.split(" ")[3]).toBe(String(line.length));
      }
      for await (const { records } of store.read(mainRef, { payload: "source", order: "descending" }))
        for (const { record, source, isSourceCanonical } of records)
          expect([JSON.parse(String(source)) as unknown, isSourceCanonical]).toEqual([record, true]);
      expect(readBytes).toBeLessThan(mebibyte);
      await expect(
        store.fork?.fork(mainRef, { ...mainRef, key: "agent:main:fork" }, { sessionId: "f" }),
      ).rejects.toMatchObject({ code: "STORE_CORRUPT" });
      expect(await codesOf(store.maintenance?.verify())).toContain("LINE_TOO_LONG");
      expect(await codesOf(store.maintenance?.repair())).toContain("LINE_TOO_LONG");
      const copy = `${root}/agents/main/throughline/repaired/s1.jsonl`;
      expect(readFileSync(`${copy}.removed`, "utf8")).toBe(`${line}\n`);
      expect(readFileSync(copy).length).toBeLessThan(2000);
      await store.redact(mainRef, ["before"], { reason: "asked" });
      const redacted = readFileSync(transcriptOf(root));
      expect([redacted.includes('"before"'), redacted.includes('before"}]')]).toEqual([true, false]);
      expect(redacted.includes(`\n${line}\n`)).toBe(true);
      expect(largestRead).toBeLessThan(2 * mebibyte);
      expect((await typesOf(store, "head")).length).toBe(3);
      await store.close();
    },
  );
});

describe("a record of ours nested deeper than is taken by now", () => {
  it("is read as it was acknowledged, verified, and left alone by a repair", async () => {
    const root = newFolder();
    const writer = await storeWithSession(root, { sessionsJson: false });
    await writer.append(mainRef, [{ ...userDraft("before"), id: "before" }]);
    await writer.close();
    const content: unknown = JSON.parse("[".repeat(500) + "]".repeat(500));
    const text = JSON.stringify({ ...base, id: "deep", parentId: "before", message: { role: "user", content } });
    appendFileSync(transcriptOf(root), `${attachEnvelope(text, { seq: 2, at: 1, crc: crc32(text) })}\n`);
    appendFileSync(transcriptOf(root), `${JSON.stringify({ ...base, id: "theirs", parentId: "deep" })}\n`);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, sessionsJson: false, onEvent: (event) => void events.push(event) });
    const [page] = await Array.fromAsync(store.read(mainRef));
    expect(page?.records.map(({ record }) => record["message"])[1]).toEqual({ role: "user", content });
    expect((await store.load(mainRef))?.head).toMatchObject({ lastSeq: 3, headId: "theirs" });
    expect(findingCodesOf(events)).toEqual([]);
    expect(await codesOf(store.maintenance?.verify({ full: true }))).toEqual([]);
    expect(await codesOf(store.maintenance?.repair())).toEqual([]);
    await store.close();
  });
});
