import { describe, expect, it } from "vitest";
import { resetSession, systemRandom } from "@throughline/core/internal";
import type { PayloadCodec, SessionRef, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { copySessions, type CopyOptions } from "@throughline/transfer";
import { aroundCalls } from "@throughline/test-kit";
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

const main: SessionRef = { namespace: "", agentId: "main", key: "agent:main:main" };
const imported: SessionRef = { ...main, key: `agent:main:import:direct:${sessionId}` };
const file = jsonLines(header, message("a", null), "{broken", message("a", "a")).trimEnd();

async function filled(): Promise<SessionStore> {
  const store = createMemoryStore();
  using folder = fixtureFolder({ "x.jsonl": file });
  await importAll(store, folder.at("x.jsonl"));
  await store.save(main, { sessionId: "first", sendPolicy: "deny" }, { ifRevision: null });
  await store.append(
    main,
    ["a", "b"].map((id) => ({ type: "message", id, message: { role: "user", content: id } })),
  );
  await resetSession(store, main, { random: systemRandom, keep: () => ({ label: "kept" }) });
  await store.append(
    main,
    ["c", "d"].map((id) => ({ type: "message", id, message: { role: "user", content: id } })),
    { windowFromSeq: 2 },
  );
  await store.append(main, [], { rewindTo: "c" });
  return store;
}

async function picture(store: SessionStore): Promise<unknown> {
  const { sessions } = await store.list({ state: "any", sort: "key" });
  return Promise.all(
    sessions.map(async ({ ref, sessionId: id, archived, entry, head, createdAtMs, updatedAtMs }) => {
      const records = await recordsOf(store, ref);
      return {
        ref,
        id,
        archived,
        entry,
        head,
        createdAtMs,
        updatedAtMs,
        records: records.map(({ seq, id: recordId, source, record, isSourceCanonical }) => [
          seq,
          recordId,
          source,
          record,
          isSourceCanonical,
        ]),
      };
    }),
  );
}

async function copy(from: SessionStore, to: SessionStore, options: CopyOptions = {}): Promise<unknown[]> {
  return (await Array.fromAsync(copySessions(from, to, options))).map(({ state, records, error }) => [
    state,
    records,
    error?.code ?? null,
  ]);
}

describe("copySessions", () => {
  it("keeps seq, bytes, entries, heads and archives; a second run adds nothing", async () => {
    const from = await filled();
    const to = createMemoryStore();
    // A copy made later is no activity of the session's.
    await new Promise((done) => setTimeout(done, 5));
    expect(await copy(from, to)).toEqual([
      ["imported", 2, null],
      ["imported", 4, null],
      ["imported", 2, null],
    ]);
    expect(await picture(to)).toEqual(await picture(from));
    expect(await exported(to, imported, "jsonl")).toBe(file);
    expect(await copy(from, to)).toEqual([
      ["unchanged", 0, null],
      ["unchanged", 0, null],
      ["unchanged", 0, null],
    ]);
  });

  it("copies what has come since, and goes on after an interruption", async () => {
    const from = await filled();
    const to = createMemoryStore({ limits: { batchRecords: 1 } });
    const run = copySessions(from, to);
    await run.next();
    await run.return(undefined);
    await copy(from, to);
    await from.append(main, [{ type: "message", id: "e", message: { role: "user", content: "e" } }], {
      entry: { label: "new" },
    });
    expect(await copy(from, to)).toEqual([
      ["unchanged", 0, null],
      ["unchanged", 0, null],
      ["grown", 1, null],
    ]);
    expect(await picture(to)).toEqual(await picture(from));
  });

  it("takes up a session whose copy stopped in the middle", async () => {
    const from = await filled();
    const to = createMemoryStore({ limits: { batchRecords: 1 } });
    const abort = new AbortController();
    let appends = 0;
    const counting = aroundCalls(to, ({ name, run }) => {
      if (name === "append" && ++appends === 3) abort.abort();
      return run();
    });
    await expect(copy(from, counting, { refs: [imported], signal: abort.signal })).rejects.toMatchObject({
      code: "ABORTED",
    });
    expect((await to.load(imported))?.head.lastSeq).toBeLessThan(4);
    await copy(from, to);
    expect(await picture(to)).toEqual(await picture(from));
  });

  it("never mixes two sessions under one key", async () => {
    const from = await filled();
    const to = createMemoryStore();
    await to.save(main, { sessionId: "another" }, { ifRevision: null });
    expect(await copy(from, to, { refs: [main] })).toEqual([["refused", 0, "SESSION_EXISTS"]]);
    const own = createMemoryStore();
    await copy(from, own, { refs: [imported] });
    await own.append(imported, [{ type: "message", message: { role: "user", content: "own" } }]);
    expect(await copy(from, own, { refs: [imported] })).toEqual([["refused", 0, "SESSION_EXISTS"]]);
    await expect(copy(from, own, { refs: [{ ...main, key: "agent:main:none" }] })).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });

  it("takes back what it began of a session that cannot be read to its end, and copies the others", async () => {
    const lost = new Set<string>();
    const from = createMemoryStore({ codec: codecWithout(lost), limits: { pageRecords: 1 } });
    const keys = ["agent:main:a", "agent:main:b", "agent:main:c"];
    const say = (id: string): { type: string; id: string; message: unknown } => ({
      type: "message",
      id,
      message: { role: "user", content: id },
    });
    for (const key of keys) {
      await from.save({ ...main, key }, { sessionId: `id-${key.at(-1)}` }, { ifRevision: null });
      for (const seq of [1, 2, 3]) await from.append({ ...main, key }, [say(`${key.at(-1)}${seq}`)]);
    }
    lost.add("b3");
    const to = createMemoryStore({ limits: { batchRecords: 1 } });
    const expected = [
      ["imported", 3, null],
      ["refused", 0, "CODEC_FAILED"],
      ["imported", 3, null],
    ];
    expect(await copy(from, to)).toEqual(expected);
    expect(await to.load({ ...main, key: "agent:main:b" })).toBeNull();
    // Mended, it is copied whole.
    lost.clear();
    expect((await copy(from, to))[1]).toEqual(["imported", 3, null]);
    expect(await picture(to)).toEqual(await picture(from));
    // What was whole before it grew, and was damaged then, stays; how far it reaches is said.
    for (const id of ["b4", "b5", "b6"]) await from.append({ ...main, key: "agent:main:b" }, [say(id)]);
    lost.add("b6");
    const [, grown] = await Array.fromAsync(copySessions(from, to));
    expect(grown).toMatchObject({ state: "refused", error: { code: "CODEC_FAILED", details: { lastSeq: 4 } } });
    expect(grown?.error?.message).toContain("The target has the records up to 4.");
    expect((await to.load({ ...main, key: "agent:main:b" }))?.head.lastSeq).toBe(4);
  });

  it("leaves no mark of a purge behind when it takes back an imported session", async () => {
    using folder = fixtureFolder({ "x.jsonl": file });
    const lost = new Set<string>();
    const from = createMemoryStore({ codec: codecWithout(lost), limits: { pageRecords: 1 } });
    await importAll(from, folder.at("x.jsonl"));
    lost.add("a");
    const to = createMemoryStore({ limits: { batchRecords: 1 } });
    expect(await copy(from, to)).toEqual([["refused", 0, "CODEC_FAILED"]]);
    expect((await importAll(to, folder.at("x.jsonl"))).map(({ state }) => state)).toEqual(["imported"]);
  });

  it.each([
    ["sqlite", "jsonl"],
    ["jsonl", "sqlite"],
  ] as const)("leaves purged what was purged: from %s to %s", async (fromKind, toKind) => {
    using folder = fixtureFolder({ "x.jsonl": file });
    const open = (kind: "sqlite" | "jsonl", name: string): SessionStore =>
      kind === "sqlite"
        ? createSqliteStore({ path: folder.at(`${name}.db`) })
        : createJsonlStore({ root: folder.at(name), create: true });
    await using from = open(fromKind, "from");
    await using to = open(toKind, "to");
    await using one = open(toKind, "one");
    await importAll(from, folder.at("x.jsonl"));
    await from.save(main, { sessionId: "first" }, { ifRevision: null });
    await from.remove(imported, { purge: true });
    await copy(from, to);
    expect((await importAll(to, folder.at("x.jsonl"))).map(({ state }) => state)).toEqual(["skipped"]);
    // One session is copied without what happened to others.
    await copy(from, one, { refs: [main] });
    expect((await importAll(one, folder.at("x.jsonl"))).map(({ state }) => state)).toEqual(["imported"]);
  });
});

/** Keeps everything as it is, and cannot read the records of these ids any more. */
function codecWithout(lost: ReadonlySet<string>): PayloadCodec {
  return {
    name: "losing",
    encode: (plain) => plain,
    decode: (coded, { id }) => {
      if (lost.has(id)) throw new Error("lost");
      return coded;
    },
  };
}
