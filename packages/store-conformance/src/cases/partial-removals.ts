import assert from "node:assert/strict";
import { assertFails, assertRefused, createSession, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertInNoFile,
  facetOf,
  openTurn,
  partialOf,
  requires,
  secret,
  sessionWithPartial,
} from "../partial-tools.ts";

export const partialRemovalCases: readonly ConformanceCase[] = [
  {
    id: "partials/redact",
    demand: "a redaction of any record removes the partial",
    requires,
    async run({ under, store }) {
      const { ref } = await sessionWithPartial(store);
      await store.redact(ref, ["q1"], { reason: "asked for" });
      assert.equal(await facetOf(store).read(ref), null);
      await assertInNoFile(under);
    },
  },
  {
    id: "partials/redact-refused",
    demand: "a redaction that is refused leaves the partial",
    requires,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      await assertFails(store.redact(ref, ["q1", "nobody"], { reason: "asked for" }), "RECORD_NOT_FOUND");
      assert.deepEqual(await facetOf(store).read(ref), partial);
    },
  },
  {
    id: "partials/redact-shared",
    demand: "a redaction of a shared record removes the partials of all sessions that share it",
    requires: (capabilities) => requires(capabilities) && capabilities.fork,
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("shared", { id: "s1" })]);
      await store.fork?.fork(ref, refOf("b"), { sessionId: "session-b" });
      await openTurn(store, refOf("b"));
      await facetOf(store).write(refOf("b"), partialOf({ sessionId: "session-b", text: secret }));
      await store.redact(ref, ["s1"], { reason: "asked for" });
      assert.equal(await facetOf(store).read(refOf("b")), null);
      await assertInNoFile(under);
    },
  },
  {
    id: "partials/purge",
    demand: "a purge removes the partial",
    requires,
    async run({ under, store }) {
      const { ref } = await sessionWithPartial(store);
      await store.remove(ref, { purge: true });
      await assertFails(facetOf(store).read(ref), "SESSION_NOT_FOUND");
      await assertInNoFile(under);
    },
  },
  {
    id: "partials/reset",
    demand: "a reset removes the partial, and its turn writes none to the next session",
    requires,
    async run({ under, store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const { revision } = (await store.load(ref)) ?? assert.fail("the session is there");
      await store.save(ref, { sessionId: "session-next" }, { ifRevision: revision });
      const facet = facetOf(store);
      assert.equal(await facet.read(ref), null);
      await assertRefused(facet.write(ref, partial), "TURN_FENCED");
      assert.equal(await facet.read({ ...ref, archiveId: "session-a" }), null);
      await assertInNoFile(under);
    },
  },
  {
    id: "partials/archive",
    demand: "archiving removes the partial, an archive takes none, and restoring brings none back",
    requires,
    async run({ under, store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const archived = await store.move(ref, { kind: "archive" });
      const facet = facetOf(store);
      assert.equal(await facet.read(archived.ref), null);
      await assertRefused(facet.write(archived.ref, partial), "SESSION_ARCHIVED");
      await assertRefused(facet.write(ref, partial), "SESSION_NOT_FOUND");
      await assertInNoFile(under);
      await store.move(archived.ref, { kind: "restore" });
      assert.equal(await facet.read(ref), null);
    },
  },
  {
    id: "partials/archived-by-remove",
    demand: "removing a session without purge removes its partial",
    requires,
    async run({ under, store }) {
      const { ref } = await sessionWithPartial(store);
      await store.remove(ref);
      assert.equal(await facetOf(store).read({ ...ref, archiveId: "session-a" }), null);
      await assertInNoFile(under);
    },
  },
  {
    id: "partials/rename",
    demand: "a partial stays with its session when that is renamed",
    requires,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      const { ref: renamed } = await store.move(ref, { kind: "rename", key: "agent:main:renamed" });
      assert.deepEqual(await facetOf(store).read(renamed), partial);
      await assertFails(facetOf(store).read(ref), "SESSION_NOT_FOUND");
    },
  },
  {
    id: "partials/fork",
    demand: "a fork has no partial of its origin",
    requires: (capabilities) => requires(capabilities) && capabilities.fork,
    async run({ store }) {
      const { ref, partial } = await sessionWithPartial(store);
      await store.fork?.fork(ref, refOf("b"), { sessionId: "session-b" });
      assert.deepEqual([await facetOf(store).read(refOf("b")), await facetOf(store).read(ref)], [null, partial]);
    },
  },
];
