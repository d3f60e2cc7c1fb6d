import assert from "node:assert/strict";
import type { SessionEvent } from "@throughline/core";
import { abilityOf, assertRefused, createSession, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const eventCases: readonly ConformanceCase[] = [
  {
    id: "events/announced",
    demand: "every change of a session is announced once, after it happened",
    needs: ["events"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two")], { idempotencyKey: "k" });
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two")], { idempotencyKey: "k" });
      await assertRefused(store.append(ref, [userDraft("n", { id: "r1" })]), "RECORD_ID_TAKEN");
      await store.redact(ref, ["r1"], { reason: "test" });
      const { ref: archived } = await store.move(ref, { kind: "archive" });
      await store.remove(archived, { purge: true });
      const events = abilityOf(under, "events")().filter(({ name }) => name !== "finding");
      assert.deepEqual(
        events.map(({ name }) => name),
        ["session-created", "records-appended", "records-redacted", "session-archived", "session-removed"],
      );
      const appended = events.find(
        (event): event is SessionEvent & { name: "records-appended" } => event.name === "records-appended",
      );
      assert.deepEqual([appended?.ref, appended?.fromSeq, appended?.toSeq], [ref, 1, 2]);
    },
  },
  {
    id: "events/clamped",
    demand: "a time from the future that was not believed is announced",
    needs: ["events"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const claimedMs = ((await store.load(ref))?.createdAtMs ?? 0) + 3_600_000;
      const { updatedAtMs } = await store.save(
        ref,
        { sessionId: "session-a", updatedAt: claimedMs },
        { ifRevision: 1 },
      );
      const clamped = abilityOf(under, "events")().filter((event) => event.name === "updated-at-clamped");
      assert.deepEqual(clamped, [{ name: "updated-at-clamped", ref, claimedMs, storedMs: updatedAtMs }]);
    },
  },
];
