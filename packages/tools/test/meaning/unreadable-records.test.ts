import { join } from "node:path";
import type { Embedder, PayloadCodec, SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { createXorCodec } from "@throughline/store-conformance";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { converse, filled, folder, indexOver, refOf, removeFolder } from "./meaning-scene.ts";

afterAll(removeFolder);

/** A codec that does not decode what `failing` names: a record or a session. */
class FailingCodec implements PayloadCodec {
  readonly #inner = createXorCodec();
  readonly name = this.#inner.name;
  readonly failing = new Map<string, "KEY_DESTROYED" | "PAYLOAD_ALTERED" | "KEY_MISSING">();
  readonly encode: PayloadCodec["encode"] = (plain, context) => this.#inner.encode(plain, context);

  decode(coded: Uint8Array, context: Parameters<PayloadCodec["decode"]>[1]): Uint8Array {
    const { part, id, sessionId } = context;
    const failure = this.failing.get(part === "record" ? id : `${part} of ${sessionId}`);
    const whole = part === "record" ? this.failing.get(sessionId) : undefined;
    if (failure !== undefined || whole !== undefined) throw refused(failure ?? whole ?? "KEY_MISSING", "No key.");
    return this.#inner.decode(coded, context);
  }
}

function embedderInto(texts: string[]): Embedder {
  return {
    id: "test@64",
    dimensions: 64,
    maxTokens: 8000,
    maxBatch: 64,
    async embed(given) {
      texts.push(...given);
      return given.map(() => new Float32Array(64).fill(1));
    },
  };
}

let stores = 0;
const kinds: readonly (readonly [string, (codec: PayloadCodec) => SessionStore])[] = [
  ["memory", (codec) => createMemoryStore({ codec })],
  ["sqlite", (codec) => createSqliteStore({ path: join(folder, `u${++stores}.db`), codec })],
  ["jsonl", (codec) => createJsonlStore({ root: join(folder, `u${++stores}`), codec })],
];

describe.each(kinds)("the filling of vectors over %s under a codec", (name, open) => {
  it("steps over records that never decode, and fills the others of all sessions", async () => {
    const codec = new FailingCodec();
    await using store = open(codec);
    const turns = Array.from({ length: 12 }, (_, at) => [`Question ${at}?`, `Answer ${at}.`] as const);
    for (const name of ["one", "two", "three", "four"]) await converse(store, refOf(name), turns);
    const ids: string[] = [];
    for await (const { records } of store.read(refOf("one"))) ids.push(...records.map(({ id }) => id));
    // One record in the middle, a whole session, and one with its entry.
    codec.failing.set(ids[8] ?? "", "PAYLOAD_ALTERED");
    codec.failing.set("main-two", "KEY_DESTROYED");
    codec.failing.set("entry of main-three", "PAYLOAD_ALTERED");
    const texts: string[] = [];
    const index = indexOver(store, embedderInto(texts));
    expect(await filled(index)).toBe(0);
    expect(await index.lag()).toBe(0);
    // A JSONL store has the entry in memory.
    const readable = name === "jsonl" ? 3 : 2;
    expect(texts.filter((text) => text.includes("Question 3?"))).toHaveLength(readable);
    expect(texts.filter((text) => text.includes("Question 4?"))).toHaveLength(readable - 1);
    expect(texts.filter((text) => text.includes("Question 11?"))).toHaveLength(readable);
    // A session that was erased grows again.
    texts.length = 0;
    codec.failing.delete("main-two");
    await converse(store, refOf("two"), [["And now?", "Now this."]]);
    expect(await filled(index)).toBe(0);
    expect(texts.some((text) => text.includes("And now?\nNow this."))).toBe(true);
  });

  it("leaves a session whose key is missing to the end, and fills it once the key is there", async () => {
    const codec = new FailingCodec();
    await using store = open(codec);
    await converse(store, refOf("two"), [["Earlier?", "Yes."]]);
    await converse(store, refOf("one"), [["Question?", "Answer."]]);
    codec.failing.set("main-one", "KEY_MISSING");
    const texts: string[] = [];
    const index = indexOver(store, embedderInto(texts));
    await expect(filled(index)).rejects.toMatchObject({ code: "CODEC_FAILED", details: { reason: "KEY_MISSING" } });
    expect(texts).toEqual(["Earlier?\nYes."]);
    codec.failing.clear();
    expect(await filled(index)).toBe(0);
    expect(texts).toEqual(["Earlier?\nYes.", "Question?\nAnswer."]);
  });
});

it("steps over more erased records than a batch reads, also between two exchanges", { tags: ["slow"] }, async () => {
  const codec = new FailingCodec();
  await using store = createMemoryStore({ codec });
  const ref = refOf("one");
  await converse(store, ref, [["First?", "Yes."]]);
  for (let at = 0; at < 25; at += 1)
    await converse(
      store,
      ref,
      Array.from({ length: 50 }, (_, turn) => [`Question ${at * 50 + turn}?`, "Gone."] as const),
    );
  await converse(store, ref, [["Last?", "Yes."]]);
  for await (const { records } of store.read(ref, { afterSeq: 2, beforeSeq: 2503 }))
    for (const { id } of records) codec.failing.set(id, "KEY_DESTROYED");
  const texts: string[] = [];
  const index = indexOver(store, embedderInto(texts));
  expect(await filled(index)).toBe(0);
  expect(texts).toEqual(["First?\nYes.", "Last?\nYes."]);
});

it("goes on past more records without a text than a batch reads", { tags: ["slow"] }, async () => {
  await using store = createMemoryStore();
  const ref = refOf("one");
  await converse(store, ref, [["First?", "Yes."]]);
  for (let at = 0; at < 25; at += 1)
    await store.append(
      ref,
      Array.from({ length: 100 }, () => ({ type: "custom" })),
    );
  await converse(store, ref, [["Last?", "Yes."]]);
  const texts: string[] = [];
  expect(await filled(indexOver(store, embedderInto(texts)))).toBe(0);
  expect(texts).toEqual(["First?\nYes.", "Last?\nYes."]);
});
