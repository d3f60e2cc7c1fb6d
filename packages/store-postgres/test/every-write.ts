import assert from "node:assert/strict";
import type { SessionRef } from "@throughline/core";
import { onePiece } from "@throughline/core/internal";
import type { PostgresStore } from "@throughline/store-postgres";

const message = (content: unknown): { type: string; message: object } => ({
  type: "message",
  message: { role: "user", content },
});

/**
 * Writes to a session and its forks by every way that has statements of its own, and purges them. The session is new,
 * and its agent is the caller's.
 */
export async function everyWrite(store: PostgresStore, ref: SessionRef): Promise<void> {
  const { namespace, agentId, key } = ref;
  const scope = { namespace, agentId };
  const named = (name: string): SessionRef => ({ ...ref, key: `${key}-${name}` });
  await store.save(ref, { sessionId: "whole", importedFrom: { format: "pi", sourceId: key } }, { ifRevision: null });
  const many = Array.from({ length: 12 }, (_, index) => ({ ...message(`word ${index}`), id: `m${index}` }));
  await store.append(ref, many, { idempotencyKey: "many" });
  await store.append(ref, [message("labelled")], { entry: { label: "x" } });
  const large = await store.files.put(scope, onePiece(new Uint8Array(1_500_000).fill(7)));
  const file = { type: "file", fileId: large.id, mediaType: "application/octet-stream", name: "a" };
  await store.append(ref, [message([file]), message("p".repeat(300_000))]);
  await store.fork.fork(ref, named("fork"), { sessionId: "whole-fork" });
  const { vectors } = store;
  assert.ok(vectors !== undefined);
  const model = "tests/one@4";
  const { ranges } = await vectors.pending(scope, { model });
  for (const { ref: at, fromSeq, toSeq, mark } of ranges) {
    const texts = [{ firstSeq: fromSeq, lastSeq: fromSeq, part: 0, vector: Float32Array.of(1, 2, 3, 4) }];
    assert.ok(await vectors.put(at, { model, fromSeq, toSeq, mark, resumeSeq: toSeq + 1, vectors: texts }));
  }
  for await (const _hit of store.search?.search({ ...scope, text: "word" }) ?? []);
  await store.redact(ref, ["m1"], { reason: "a test", entryFields: ["label"] });
  await store.move(named("fork"), { kind: "rename", key: `${key}-renamed` });
  await store.remove(ref, { purge: true });
  await store.remove(named("renamed"), { purge: true });
  await vectors.forget(scope);
  assert.equal(await store.files.stat(scope, large.id), null);
}
