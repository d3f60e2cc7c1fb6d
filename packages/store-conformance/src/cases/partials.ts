import assert from "node:assert/strict";
import type { PartialReply } from "@throughline/core";
import { abilityOf, assertFails, assertRefused, createSession, readRecords, refOf, reopened } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertInNoFile,
  closeTurn,
  facetOf,
  openTurn,
  partialOf,
  requires,
  secret,
  sessionWithPartial,
} from "../partial-tools.ts";
import { createXorCodec } from "../xor-codec.ts";

export const partialCases: readonly ConformanceCase[] = [
  {
    id: "partials/round-trip",
    demand: "a partial comes back as it was written, whatever its text holds; without one there is null",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const facet = facetOf(store);
      await openTurn(store, ref);
      assert.equal(await facet.read(ref), null);
      for (const text of [
        "",
        "one",
        "one two",
        "other",
        'tab\t"quote" \\ \u0000 \u2028 \ud83d\ude00\nline',
        "x".repeat(100_000),
      ]) {
        const partial = partialOf({ text, updatedMs: 1_767_323_045_006 + text.length });
        await facet.write(ref, partial);
        assert.deepEqual(await facet.read(ref), partial);
      }
    },
  },
  {
    id: "partials/replaces",
    demand: "a partial takes the place of the one before, also of another step or attempt",
    requires,
    async run({ store }) {
      const { ref } = await sessionWithPartial(store);
      const facet = facetOf(store);
      for (const fields of [
        { text: "shorter" },
        { step: 2, text: "shorter still" },
        { step: 2, attempt: 1, text: "" },
      ]) {
        await facet.write(ref, partialOf(fields));
        assert.deepEqual(await facet.read(ref), partialOf(fields));
      }
    },
  },
  {
    id: "partials/no-record",
    demand: "a partial is no record: head, entry, counts and reads stay as they were",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await openTurn(store, ref);
      const before = [await store.load(ref), await readRecords(store, ref)];
      await facetOf(store).write(ref, partialOf());
      assert.deepEqual([await store.load(ref), await readRecords(store, ref)], before);
    },
  },
  {
    id: "partials/per-session",
    demand: "each session has a partial of its own",
    requires,
    async run({ store }) {
      const facet = facetOf(store);
      for (const name of ["a", "b"]) {
        const ref = await createSession(store, name);
        await openTurn(store, ref);
        await facet.write(ref, partialOf({ sessionId: `session-${name}`, text: name }));
      }
      assert.deepEqual([(await facet.read(refOf("a")))?.text, (await facet.read(refOf("b")))?.text], ["a", "b"]);
    },
  },
  {
    id: "partials/old-fence",
    demand: "a turn that was taken over writes no partial, and its partial is not given",
    requires,
    needs: ["advanceClock"],
    async run({ under, store }) {
      const { ref } = await sessionWithPartial(store);
      const facet = facetOf(store);
      under.advanceClock?.(3_600_000);
      await openTurn(store, ref, 2);
      assert.equal(await facet.read(ref), null);
      await assertRefused(facet.write(ref, partialOf({ text: "late" })), "TURN_FENCED");
      assert.equal(await facet.read(ref), null);
      const next = partialOf({ fence: 2, turnId: "turn-2", text: "next" });
      await facet.write(ref, next);
      await assertRefused(facet.write(ref, partialOf({ text: "late" })), "TURN_FENCED");
      assert.deepEqual(await facet.read(ref), next);
    },
  },
  {
    id: "partials/closed-turn",
    demand: "a turn that was closed writes no partial, and its partial is not given",
    requires,
    async run({ store }) {
      const { ref } = await sessionWithPartial(store);
      const facet = facetOf(store);
      await closeTurn(store, ref);
      assert.equal(await facet.read(ref), null);
      await assertRefused(facet.write(ref, partialOf()), "TURN_FENCED");
      await openTurn(store, ref, 2);
      assert.equal(await facet.read(ref), null);
    },
  },
  {
    id: "partials/no-turn",
    demand: "a partial of a turn that is not open, or of another session, is refused",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const facet = facetOf(store);
      await assertRefused(facet.write(ref, partialOf()), "TURN_FENCED");
      await openTurn(store, ref);
      for (const fields of [{ turnId: "turn-x" }, { sessionId: "session-b" }, { fence: 2 }, { fence: 0 }])
        await assertRefused(facet.write(ref, partialOf(fields)), "TURN_FENCED");
      assert.equal(await facet.read(ref), null);
    },
  },
  {
    id: "partials/other-handle",
    demand: "a partial is seen by every handle, and a write of any of them takes its place",
    requires,
    needs: ["another"],
    async run({ under, store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const other = await abilityOf(under, "another")();
      assert.deepEqual(await facetOf(other).read(ref), partial);
      const more = { ...partial, text: `${partial.text} and more` };
      await facetOf(other).write(ref, more);
      assert.deepEqual(await facetOf(store).read(ref), more);
      const again = { ...partial, text: `${partial.text}, again` };
      await facetOf(store).write(ref, again);
      assert.deepEqual([await facetOf(store).read(ref), await facetOf(other).read(ref)], [again, again]);
    },
  },
  {
    id: "partials/reopen",
    demand: "a partial outlives its handle, and is continued by the next one",
    requires: (capabilities) => requires(capabilities) && capabilities.persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const again = await reopened(under);
      assert.deepEqual(await facetOf(again).read(ref), partial);
      const more = { ...partial, text: `${partial.text} and more` };
      await facetOf(again).write(ref, more);
      assert.deepEqual(await facetOf(again).read(ref), more);
    },
  },
  {
    id: "partials/remove",
    demand: "a partial is removed by the fence of its turn or a later one, and by no earlier one",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const facet = facetOf(store);
      await openTurn(store, ref);
      await closeTurn(store, ref);
      await openTurn(store, ref, 2);
      const partial = partialOf({ fence: 2, turnId: "turn-2" });
      await facet.write(ref, partial);
      await facet.remove(ref, 1);
      assert.deepEqual(await facet.read(ref), partial);
      await facet.remove(ref, 2);
      assert.equal(await facet.read(ref), null);
      await facet.remove(ref, 2);
      await facet.write(ref, partial);
      assert.deepEqual(await facet.read(ref), partial);
    },
  },
  {
    id: "partials/remove-nothing",
    demand: "removing a partial from a session without one, or from no session, does nothing",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await facetOf(store).remove(ref, 1);
      await facetOf(store).remove(refOf("none"), 1);
      await assertFails(facetOf(store).remove(ref, Number.NaN), "INPUT_INVALID");
    },
  },
  {
    id: "partials/too-large",
    demand: "a partial that is larger than a record may be is refused, and the one before stays",
    requires,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const { recordBytes } = store.capabilities.limits;
      for (const text of ["x".repeat(recordBytes), "\u00e9".repeat(recordBytes / 2)])
        await assertRefused(facetOf(store).write(ref, { ...partial, text }), "RECORD_TOO_LARGE");
      assert.deepEqual(await facetOf(store).read(ref), partial);
    },
  },
  {
    id: "partials/not-one",
    demand: "an invalid partial is refused, and unknown fields are not kept",
    requires,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const odd: readonly unknown[] = [
        null,
        "text",
        { ...partial, v: 2 },
        { ...partial, text: 7 },
        { ...partial, text: "half \ud800" },
        { ...partial, turnId: "" },
        { ...partial, fence: 1.5 },
        { ...partial, afterSeq: -1 },
        { ...partial, model: 5 },
        { ...partial, updatedMs: Number.NaN },
      ];
      for (const each of odd) await assertRefused(facetOf(store).write(ref, each as PartialReply), "INPUT_INVALID");
      await facetOf(store).write(ref, { ...partial, thinking: "hidden" } as PartialReply);
      assert.deepEqual(await facetOf(store).read(ref), partial);
    },
  },
  {
    id: "partials/missing-session",
    demand: "a session that is not there has no partial and takes none",
    requires,
    async run({ store }) {
      await assertFails(facetOf(store).read(refOf("none")), "SESSION_NOT_FOUND");
      await assertRefused(facetOf(store).write(refOf("none"), partialOf()), "SESSION_NOT_FOUND");
    },
  },
  {
    id: "partials/own",
    demand: "the partial belongs to the caller: changing it changes nothing in the store",
    requires,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const read = (await facetOf(store).read(ref)) as { text: string };
      read.text = "changed";
      (partial as { text: string }).text = "changed too";
      assert.equal((await facetOf(store).read(ref))?.text, secret);
    },
  },
  {
    id: "partials/closed",
    demand: "a closed handle neither takes nor gives partials",
    requires,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const facet = facetOf(store);
      await store.close();
      await assertFails(facet.read(ref), "STORE_CLOSED");
      await assertFails(facet.write(ref, partial), "STORE_CLOSED");
      await assertFails(facet.remove(ref, 1), "STORE_CLOSED");
    },
  },
  {
    id: "partials/codec",
    demand: "under a codec no file says what a partial says",
    requires,
    needs: ["codec"],
    async run({ openWithCodec }) {
      const under = await openWithCodec(createXorCodec());
      const { ref, partial } = await sessionWithPartial(under.store);
      await assertInNoFile(under);
      const more = { ...partial, text: `${secret} and more` };
      await facetOf(under.store).write(ref, more);
      await assertInNoFile(under);
      assert.deepEqual(await facetOf(under.store).read(ref), more);
    },
  },
  {
    id: "partials/codec-fails",
    demand: "a partial that the codec does not take is not written",
    requires,
    needs: ["codec"],
    async run({ openWithCodec }) {
      const codec = createXorCodec();
      const { store } = await openWithCodec({
        ...codec,
        encode: (plain, context) => {
          if (context.part === "partial" && Buffer.from(plain).includes("poison")) throw new Error("no key");
          return codec.encode(plain, context);
        },
      });
      const { ref, partial } = await sessionWithPartial(store);
      await assertRefused(facetOf(store).write(ref, { ...partial, text: "poison" }), "CODEC_FAILED");
      assert.deepEqual(await facetOf(store).read(ref), partial);
    },
  },
];
