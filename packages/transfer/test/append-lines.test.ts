import { describe, expect, it } from "vitest";
import { sessionRef, ThroughlineError } from "@throughline/core";
import type { AppendDraft, AppendOptions, RecordDraft, SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { type Acknowledgement, appendLines, type AppendLinesOptions } from "../src/append-lines.ts";
import type { DraftLine } from "../src/read-drafts.ts";

const ref = sessionRef({ key: "agent:main:main" });

const lines = (drafts: readonly RecordDraft[]): DraftLine[] =>
  drafts.map((draft, index) => ({ line: index + 1, draft, sizeBytes: 20 }));

const notes = (count: number): RecordDraft[] =>
  Array.from({ length: count }, (_, index) => ({ type: "note", id: `n${index + 1}` }));

const plain = (count: number): RecordDraft[] => Array.from({ length: count }, () => ({ type: "note" }));

interface Run {
  readonly mostUnderWay: number;
  readonly acknowledged: readonly Acknowledgement[];
  readonly appends: readonly { readonly count: number; readonly options: AppendOptions }[];
  readonly stored: readonly string[];
  readonly error: unknown;
}

async function append(
  given: readonly DraftLine[],
  options: Partial<AppendLinesOptions> = {},
  setUp: (store: SessionStore) => Promise<unknown> = async () => {},
  failAfter: Error | null = null,
): Promise<Run> {
  await using memory = createMemoryStore();
  await memory.save(ref, { sessionId: "s" }, { ifRevision: null });
  await setUp(memory);
  const appends: Run["appends"][number][] = [];
  let underWay = 0;
  let mostUnderWay = 0;
  // Slow, so that lines come in while an append is under way.
  const store: SessionStore = Object.assign(Object.create(memory) as SessionStore, {
    append: async (to: typeof ref, drafts: readonly AppendDraft[], appendOptions: AppendOptions) => {
      appends.push({ count: drafts.length, options: appendOptions });
      const result = memory.append(to, drafts, appendOptions);
      result.catch(() => {});
      underWay += 1;
      mostUnderWay = Math.max(mostUnderWay, underWay);
      await new Promise((resolve) => setTimeout(resolve, 2));
      underWay -= 1;
      return result;
    },
  });
  const acknowledged: Acknowledgement[] = [];
  async function* source(): AsyncGenerator<DraftLine, void, void> {
    yield* given;
    if (failAfter !== null) throw failAfter;
  }
  let error: unknown = null;
  try {
    await appendLines(store, ref, source(), {
      batch: null,
      durability: null,
      expectHead: undefined,
      idempotencyKey: null,
      signal: new AbortController().signal,
      acknowledge: async (items) => void acknowledged.push(...items),
      ...options,
    });
  } catch (caught) {
    error = caught;
  }
  const stored: string[] = [];
  for await (const { records } of memory.read(ref)) stored.push(...records.map(({ id }) => id));
  return { acknowledged, appends, stored, error, mostUnderWay };
}

describe("appendLines", () => {
  it("acknowledges every line once and in order, with many appends under way", { tags: ["slow"] }, async () => {
    const { acknowledged, appends, stored, error, mostUnderWay } = await append(lines(plain(2500)));
    expect(error).toBeNull();
    expect(acknowledged.map(({ seq }) => seq)).toEqual(plain(2500).map((_, index) => index + 1));
    expect(stored).toEqual(acknowledged.map(({ id }) => id));
    expect(appends).toHaveLength(2500);
    expect(appends.every(({ count }) => count === 1)).toBe(true);
    expect(mostUnderWay).toBe(256);
  });

  it("lets a line that brings its id go alone, since it may be refused", async () => {
    expect((await append(lines(notes(5)))).mostUnderWay).toBe(1);
  });

  it("acknowledges what is done while the writer pauses", async () => {
    const acknowledged: number[] = [];
    await using store = createMemoryStore();
    await store.save(ref, { sessionId: "s" }, { ifRevision: null });
    const pause = Promise.withResolvers<void>();
    async function* source(): AsyncGenerator<DraftLine, void, void> {
      yield* lines(plain(3));
      await pause.promise;
      yield { line: 4, draft: { type: "note" }, sizeBytes: 20 };
    }
    const running = appendLines(store, ref, source(), {
      batch: null,
      durability: null,
      expectHead: undefined,
      idempotencyKey: null,
      signal: new AbortController().signal,
      acknowledge: async (items) => void acknowledged.push(...items.map(({ seq }) => seq)),
    });
    await expect.poll(() => acknowledged).toEqual([1, 2, 3]);
    pause.resolve();
    await running;
    expect(acknowledged).toEqual([1, 2, 3, 4]);
  });

  it("says what the head was after each record", async () => {
    const drafts: RecordDraft[] = [
      { type: "note", id: "a" },
      { type: "label", id: "l", targetId: "a" },
      { type: "note", id: "b" },
      { type: "usage", id: "u" },
    ];
    const { acknowledged } = await append(lines(drafts), { batch: 4 });
    expect(acknowledged.map(({ headId }) => headId)).toEqual(["a", "a", "b", "b"]);
    const sideFirst = await append(
      lines([
        { type: "label", id: "l", targetId: "x" },
        { type: "note", id: "b" },
      ]),
      { batch: 2 },
      (store) => store.append(ref, [{ type: "note", id: "head" }]),
    );
    expect(sideFirst.acknowledged.map(({ headId }) => headId)).toEqual(["head", "b"]);
  });

  it("stops at a line the store refuses: those before stand, nothing after is applied", async () => {
    const drafts: RecordDraft[] = [{ type: "note", id: "n5" }, ...plain(600)];
    drafts[301] = { type: "note", id: "n5" };
    const { acknowledged, stored, error } = await append(lines(drafts));
    expect(error).toMatchObject({ code: "RECORD_ID_TAKEN", outcome: "not-applied", details: { line: 302 } });
    expect(acknowledged).toHaveLength(301);
    expect(stored).toEqual(acknowledged.map(({ id }) => id));
  });

  it("stops at a line that cannot be read: those before stand", async () => {
    const { acknowledged, stored, error } = await append(lines(plain(40)), {}, undefined, new Error("line 41"));
    expect(error).toEqual(new Error("line 41"));
    expect(stored).toHaveLength(40);
    expect(acknowledged).toHaveLength(40);
  });

  it("makes each so many lines one append, and gives up a batch that a bad line cuts short", async () => {
    const whole = await append(lines(notes(7)), { batch: 3 });
    expect(whole.appends.map(({ count }) => count)).toEqual([3, 3, 1]);
    const cut = await append(lines(notes(7)), { batch: 3 }, undefined, new Error("line 8"));
    expect(cut.error).toEqual(new Error("line 8"));
    expect(cut.stored).toEqual(["n1", "n2", "n3", "n4", "n5", "n6"]);
    const drafts = notes(6);
    drafts[4] = { type: "note", id: "n1" };
    const refused = await append(lines(drafts), { batch: 3 });
    expect(refused.error).toMatchObject({ code: "RECORD_ID_TAKEN" });
    expect(refused.stored).toEqual(["n1", "n2", "n3"]);
  });

  it("gives each append a key of its own, so that a second run of the same input adds nothing", async () => {
    const first = await append(lines(notes(3)), { idempotencyKey: "k" });
    expect(first.appends.map(({ options }) => options.idempotencyKey)).toEqual(["k", "k:2", "k:3"]);
    const again = await append(lines(notes(3)), { idempotencyKey: "k" }, async (store) => {
      for (const [index, draft] of notes(3).entries()) {
        await store.append(ref, [draft], { idempotencyKey: index === 0 ? "k" : `k:${index + 1}` });
      }
    });
    expect(again.error).toBeNull();
    expect(again.stored).toHaveLength(3);
    expect(again.acknowledged.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  it("expects the head it was told, then the one it left", async () => {
    const good = await append(lines(notes(3)), { expectHead: null });
    expect(good.appends.map(({ options }) => options.expect)).toEqual([{ head: null }, { head: "n1" }, { head: "n2" }]);
    const bad = await append(lines(notes(3)), { expectHead: "other" });
    expect(bad.error).toMatchObject({ code: "APPEND_CONFLICT" });
    expect(bad.stored).toEqual([]);
  });

  it("does not try again what may have been applied", async () => {
    let calls = 0;
    const failing = Object.assign(Object.create(createMemoryStore()) as SessionStore, {
      append: async () => {
        calls += 1;
        throw new ThroughlineError("RECORD_ID_TAKEN", "nobody can tell", { outcome: "unknown" });
      },
    });
    async function* source(): AsyncGenerator<DraftLine, void, void> {
      yield* lines(notes(50));
    }
    const attempt = appendLines(failing, ref, source(), {
      batch: 50,
      durability: null,
      expectHead: undefined,
      idempotencyKey: null,
      signal: new AbortController().signal,
      acknowledge: async () => {},
    });
    await expect(attempt).rejects.toMatchObject({
      outcome: "unknown",
      message: expect.stringContaining("Lines 1 to 50"),
    });
    expect(calls).toBe(1);
  });
});
