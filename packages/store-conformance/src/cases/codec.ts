import assert from "node:assert/strict";
import type { CodecContext } from "@throughline/core/internal";
import type { PayloadCodec } from "@throughline/core";
import {
  assertFails,
  assertRefused,
  createSession,
  lineOf,
  readSources,
  readTexts,
  reopened,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { createXorCodec } from "../xor-codec.ts";

export const codecCases: readonly ConformanceCase[] = [
  {
    id: "codec/no-plain-text",
    demand: "under a codec no file holds what records, sources and entries say",
    needs: ["codec"],
    async run({ openWithCodec }) {
      const { store, files } = await openWithCodec(createXorCodec());
      const ref = await createSession(store, "a", { entry: { label: "plain-secret" } });
      await store.append(
        ref,
        [userDraft("plain-secret", { id: "r1" }), { source: lineOf("r2", '"x":"plain-secret"', "r1") }],
        { idempotencyKey: "k", entry: { model: "plain-secret" } },
      );
      const meaning = {
        type: "message",
        id: "r3",
        parentId: null,
        timestamp: "2026-01-02T03:04:05.006Z",
        text: "plain-secret",
      };
      await store.append(ref, [{ source: "plain-secret", record: meaning }]);
      await store.redact(ref, ["r2"], { reason: "plain-secret" });
      await store.move(ref, { kind: "rename", key: "agent:main:b" });
      if (files === undefined) return;
      const written = await files();
      assert.ok(
        written.some((file) => file.byteLength > 0),
        "the store has written something",
      );
      for (const file of written) assert.doesNotMatch(Buffer.from(file).toString("latin1"), /plain-secret/);
    },
  },
  {
    id: "codec/round-trip",
    demand: "under a codec everything comes back, after a rename and an archive too",
    needs: ["codec"],
    async run({ openWithCodec }) {
      const { store } = await openWithCodec(createXorCodec());
      const ref = await createSession(store, "a", { entry: { label: "x" } });
      const line = lineOf("r1", '"n":1.0');
      await store.append(ref, [{ source: line }, userDraft("two")]);
      const renamed = await store.move(ref, { kind: "rename", key: "agent:main:b" });
      const archived = await store.move(renamed.ref, { kind: "archive" });
      assert.equal((await store.load(archived.ref))?.entry.label, "x");
      assert.deepEqual((await readSources(store, archived.ref)).map(({ source }) => source)[0], line);
      assert.equal((await readTexts(store, archived.ref))[1], "two");
    },
  },
  {
    id: "codec/context",
    demand: "every payload is bound to its place: namespace, agent, session, record and part",
    needs: ["codec"],
    async run({ openWithCodec }) {
      const contexts: CodecContext[] = [];
      const { store } = await openWithCodec(recording(contexts));
      const ref = await createSession(store, "a", { namespace: "tenant", agentId: "other" });
      const meaning = { type: "message", id: "r2", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
      await store.append(ref, [userDraft("one", { id: "r1" }), { source: "odd", record: meaning }]);
      const place = { namespace: "tenant", agentId: "other", sessionId: "session-a" };
      for (const expected of [
        { ...place, id: "r1", part: "record" },
        { ...place, id: "r2", part: "source" },
        { ...place, id: ref.key, part: "entry" },
      ])
        assert.ok(
          contexts.some((context) => JSON.stringify(context) === JSON.stringify(expected)),
          `no payload was coded as ${JSON.stringify(expected)}`,
        );
      for (const context of contexts)
        assert.deepEqual({ ...context, id: "", part: "" }, { ...place, id: "", part: "" });
    },
  },
  {
    id: "codec/failure",
    demand: "what a codec throws becomes CODEC_FAILED, and nothing is written",
    needs: ["codec"],
    async run({ openWithCodec }) {
      const codec = createXorCodec();
      const { store } = await openWithCodec({
        ...codec,
        encode: (plain, context) => {
          if (Buffer.from(plain).includes("poison")) throw new Error("the codec has no key");
          return codec.encode(plain, context);
        },
      });
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [userDraft("one"), userDraft("poison")]), "CODEC_FAILED");
      await assertRefused(store.append(ref, [userDraft("one")], { entry: { label: "poison" } }), "CODEC_FAILED");
      await assertRefused(
        store.save(ref, { sessionId: "session-a", label: "poison" }, { ifRevision: 1 }),
        "CODEC_FAILED",
      );
      assert.deepEqual([await readTexts(store, ref), (await store.load(ref))?.revision], [[], 1]);
    },
  },
  {
    id: "codec/wrong-codec",
    demand: "opened with the wrong codec, a store says CODEC_FAILED to whatever needs the content, and changes nothing",
    requires: ({ persistent }) => persistent,
    needs: ["codec", "reopen"],
    async run({ openWithCodec }) {
      const codec = keyedCodec();
      const under = await openWithCodec(codec);
      const ref = await createSession(under.store, "a", { entry: { label: "x" } });
      await under.store.append(ref, [userDraft("one", { id: "r1" }), { source: lineOf("r2", '"n":1.0', "r1") }]);
      const before = [await under.store.load(ref), await readSources(under.store, ref)];
      for (const name of ["right", "another"]) {
        Object.assign(codec, { name, key: "wrong" });
        const wrong = await reopened(under);
        await assertFails(wrong.load(ref), "CODEC_FAILED");
        await assertFails(wrong.list(), "CODEC_FAILED");
        await assertFails(readSources(wrong, ref), "CODEC_FAILED");
        await assertRefused(wrong.append(ref, [userDraft("two")], { entry: { label: "y" } }), "CODEC_FAILED");
        await assertRefused(wrong.move(ref, { kind: "rename", key: "agent:main:b" }), "CODEC_FAILED");
        await assertRefused(wrong.redact(ref, ["r1"], { reason: "test" }), "CODEC_FAILED");
      }
      Object.assign(codec, { name: "right", key: "right" });
      const store = await reopened(under);
      assert.deepEqual([await store.load(ref), await readSources(store, ref)], before);
    },
  },
];

/** Creates a codec whose name and key can be changed, to reopen a store with a different one. */
function keyedCodec(): PayloadCodec & { readonly key: string } {
  const codec = createXorCodec();
  const keyed = {
    name: "right",
    key: "right",
    encode: (plain: Uint8Array, context: CodecContext) => codec.encode(plain, withKey(context)),
    decode: (coded: Uint8Array, context: CodecContext) => codec.decode(coded, withKey(context)),
  };
  const withKey = (context: CodecContext): CodecContext => ({
    ...context,
    sessionId: `${keyed.key} ${context.sessionId}`,
  });
  return keyed;
}

/** Records the context of each payload, with its fields in a fixed order so that contexts can be compared. */
function recording(contexts: CodecContext[]): PayloadCodec {
  const codec = createXorCodec();
  return {
    ...codec,
    encode: (plain, { namespace, agentId, sessionId, id, part }) => {
      const context = { namespace, agentId, sessionId, id, part };
      contexts.push(context);
      return codec.encode(plain, context);
    },
  };
}
