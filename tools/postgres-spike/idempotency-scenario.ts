import assert from "node:assert/strict";
import { hasErrorCode } from "../../packages/core/src/index.ts";
import type { AppendOptions, AppendResult } from "../../packages/core/src/index.ts";
import type { Scenario } from "./scenario.ts";

/** The same keyed append from every connection at once: one copy, and everybody is told of the same one. */
export const idempotencyScenario: Scenario = async ({ stores, quick, createSession }) => {
  const ref = await createSession();
  const rounds = quick ? 20 : 200;
  const [first, second] = stores;
  assert(first !== undefined && second !== undefined);
  let headId: string | null = null;
  for (let round = 0; round < rounds; round++) {
    // No ids and no times: what the store makes up must come back the same to all. The expectation holds only for the
    // one that comes first, so the others must be seen as its twins before they are seen as late.
    const drafts = [{ type: "message", text: `turn ${round}` }, { type: "message" }];
    const options: AppendOptions = { idempotencyKey: `turn-${round}`, expect: { head: headId } };
    const results: readonly AppendResult[] = await Promise.all(
      stores.map((store) => store.append(ref, drafts, options)),
    );
    assert.equal(results.filter((result) => !result.replayed).length, 1);
    for (const result of results) assert.deepEqual({ ...result, replayed: true }, { ...results[0], replayed: true });
    await assert.rejects(first.append(ref, [{ type: "message" }], options), (error) =>
      hasErrorCode(error, "IDEMPOTENCY_MISMATCH"),
    );
    headId = results[0]?.head.headId ?? null;
  }
  const state = await first.load(ref);
  assert.equal(state?.head.lastSeq, rounds * 2);

  // A refused append leaves its key free, also for other drafts.
  const late = { idempotencyKey: "late", expect: { head: "elsewhere" } };
  await assert.rejects(first.append(ref, [{ type: "message" }], late), (error) =>
    hasErrorCode(error, "APPEND_CONFLICT"),
  );
  const retried = await second.append(ref, [{ type: "message", text: "other" }], { idempotencyKey: "late" });
  assert.equal(retried.replayed, false);
  const empty = { idempotencyKey: "entry only", entry: { label: "a" } };
  assert.equal((await first.append(ref, [], empty)).replayed, false);
  assert.equal((await first.append(ref, [], empty)).replayed, true);
  return [
    `${stores.length} clients with one idempotency key, ${rounds} times: one copy each, ${stores.length - 1} replays with the same ids, ` +
      `other drafts refused, a refused append leaves its key free`,
  ];
};
