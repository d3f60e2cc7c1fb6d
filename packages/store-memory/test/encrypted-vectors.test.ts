import { type PayloadCodec, sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { createXorCodec } from "@throughline/store-conformance";
import { createMemoryStore } from "@throughline/store-memory";
import { expect, it } from "vitest";

const scope = { namespace: "", agentId: "main" };
const model = "test/model@64";
const refOf = (name: string): SessionRef => sessionRef({ key: `agent:main:${name}` });

/** A codec whose keyring fails with `failure` for the vectors of a session; for those of all sessions with "". */
class FailingCodec implements PayloadCodec {
  readonly #inner = createXorCodec();
  readonly name = this.#inner.name;
  failure: "KEYRING_IO" | "MAIN_KEY_WRONG" | "KEY_MISSING" | "KEY_DESTROYED" | null = null;
  failing = "";
  decoded = 0;
  readonly encode: PayloadCodec["encode"] = (plain, context) => this.#inner.encode(plain, context);

  decode(coded: Uint8Array, context: Parameters<PayloadCodec["decode"]>[1]): Uint8Array {
    if (context.part !== "vector") return this.#inner.decode(coded, context);
    this.decoded += 1;
    if (this.failure !== null && (this.failing === "" || this.failing === context.sessionId))
      throw refused(this.failure, "The key cannot be used.");
    return this.#inner.decode(coded, context);
  }
}

function vectorOf(seed: number): Float32Array {
  let state = seed + 1;
  return Float32Array.from({ length: 64 }, () => {
    state = (Math.imul(state ^ (state >>> 13), 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}

/** Fills two sessions of 300 vectors, so that the codes decide which ones are compared. */
async function filled(codec: PayloadCodec): Promise<SessionStore> {
  const store = createMemoryStore({ codec });
  const count = 300;
  for (const name of ["a", "b"]) {
    const ref = refOf(name);
    await store.save(ref, { sessionId: name }, { ifRevision: null });
    await store.append(
      ref,
      Array.from({ length: count }, (_, at) => ({ type: "message", message: { role: "user", content: `${at}` } })),
    );
    const mark = (await store.vectors?.pending(scope, { model }))?.ranges.find(
      (range) => range.ref.key === ref.key,
    )?.mark;
    const vectors = Array.from({ length: count }, (_, at) => ({
      firstSeq: at + 1,
      lastSeq: at + 1,
      part: 0,
      vector: vectorOf(at + (name === "a" ? 0 : 1000)),
    }));
    await store.vectors?.put(ref, { model, mark: mark ?? "", fromSeq: 1, toSeq: count, resumeSeq: count, vectors });
  }
  return store;
}

async function nearest(store: SessionStore, seed = 5): Promise<readonly string[]> {
  const hits = (await store.vectors?.nearest({ ...scope, model, vector: vectorOf(seed), limit: 5 })) ?? [];
  return hits.map(({ sessionId, firstSeq }) => `${sessionId}#${firstSeq}`);
}

it.each(["KEYRING_IO", "MAIN_KEY_WRONG"] as const)(
  "%s fails a search by meaning, and afterwards it finds the same",
  async (failure) => {
    const codec = new FailingCodec();
    await using store = await filled(codec);
    codec.failure = failure;
    // The codes are read for the first time.
    await expect(nearest(store)).rejects.toMatchObject({ code: "CODEC_FAILED", details: { reason: failure } });
    codec.failure = null;
    const before = await nearest(store);
    expect(before[0]).toBe("a#6");
    // The codes are in memory, and the numbers are not.
    codec.failure = failure;
    await expect(nearest(store)).rejects.toMatchObject({ code: "CODEC_FAILED", details: { reason: failure } });
    codec.failure = null;
    expect(await nearest(store)).toEqual(before);
  },
);

it("a session whose key is missing is not found, the others are, and the key brings its hits back", async () => {
  const codec = new FailingCodec();
  codec.failing = "a";
  codec.failure = "KEY_MISSING";
  await using store = await filled(codec);
  const without = await nearest(store);
  expect(without.map((hit) => hit[0])).toEqual(["b", "b", "b", "b", "b"]);
  codec.failure = null;
  const whole = await nearest(store);
  expect(whole[0]).toBe("a#6");
  // The key goes while the codes are in memory.
  codec.failure = "KEY_MISSING";
  expect(await nearest(store)).toEqual(without);
  codec.failure = null;
  expect(await nearest(store)).toEqual(whole);
});

it("a search decodes nothing again of what an earlier one found destroyed", async () => {
  const codec = new FailingCodec();
  codec.failing = "b";
  codec.failure = "KEY_DESTROYED";
  await using store = await filled(codec);
  const found = await nearest(store);
  expect(found.every((hit) => hit.startsWith("a#"))).toBe(true);
  // A question at a distance from all others takes the destroyed ones too.
  for (let seed = 0; seed < 20; seed += 1) await nearest(store, seed);
  codec.decoded = 0;
  await nearest(store);
  expect(codec.decoded).toBeLessThanOrEqual(300);
});
