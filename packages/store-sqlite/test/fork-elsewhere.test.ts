import { join } from "node:path";
import { forkSession } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

it("a fork for another agent or namespace is a copy: a redaction of the origin does not reach it", async () => {
  await using store = createSqliteStore({ path: join(testFolder(), "store.db") });
  const ref = await createSession(store, "a");
  await store.append(ref, [say("one", { id: "r1" }), say("two")]);
  const targets = [
    { ...ref, agentId: "other", key: "agent:other:a" },
    { ...ref, namespace: "tenant" },
  ];
  for (const [index, target] of targets.entries()) {
    const state = await forkSession(store, ref, target, { sessionId: `copy-${index}` });
    expect([state.ref, state.head.lastSeq, state.entry["forkedFrom"]]).toEqual([
      target,
      2,
      { agentId: ref.agentId, key: ref.key, sessionId: "session-a", atSeq: 2 },
    ]);
  }
  await store.redact(ref, ["r1"], { reason: "test" });
  expect(await textsOf(store, ref)).not.toContain("one");
  for (const target of targets) expect(await textsOf(store, target)).toEqual(["one", "two"]);
});
