import type { AppendDraft, SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import type { Work } from "./compare-reads.ts";

const scope = { namespace: "", agentId: "main" };
const refOf = (name: string): SessionRef => ({ ...scope, key: `agent:main:cli:direct:${name}` });
const imported = { format: "claude-code", sourceId: "0f0f0f0f-0000-4000-8000-00000000000f" };
const model = "flips/one@40";
const dimensions = 40;
const turnId = "turn-of-flips";

function bytesOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8)) & 255);
}

function vectorOf(direction: number): Float32Array {
  return new Float32Array(dimensions).fill(-0.01).fill(1, direction, direction + 1);
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 70_001) yield bytes.slice(at, at + 70_001);
}

async function fillFiles(store: SessionStore, ref: SessionRef): Promise<void> {
  for (const length of [3000, 600_000]) {
    const stored = await store.files?.put(scope, pieces(bytesOf(length)));
    if (stored === undefined) return;
    const block = { type: "file", fileId: stored.id, mediaType: "application/octet-stream", name: "a" };
    const content = [{ type: "text", text: "see" }, block];
    await store.append(ref, [{ type: "message", message: { role: "user", content } } as AppendDraft]);
  }
  await store.files?.put(scope, pieces(bytesOf(500)));
}

async function fillVectors(store: SessionStore): Promise<void> {
  const { ranges } = (await store.vectors?.pending(scope, { model, limit: 3 })) ?? { ranges: [] };
  for (const { ref, fromSeq, toSeq, mark } of ranges) {
    const seqs = Array.from({ length: toSeq - fromSeq + 1 }, (_, index) => fromSeq + index);
    const vectors = seqs.map((seq) => ({ firstSeq: seq, lastSeq: seq, part: 0, vector: vectorOf(seq % dimensions) }));
    await store.vectors?.put(ref, { model, mark, fromSeq, toSeq, resumeSeq: toSeq, vectors });
  }
}

async function fillPartial(store: SessionStore, ref: SessionRef, sessionId: string): Promise<void> {
  const draft: AppendDraft = { type: "message", message: { role: "user", content: "a question" } };
  const leaseUntilMs = 4_000_000_000_000;
  await store.append(ref, [draft], { turn: { action: "open", turnId, owner: "flips", leaseUntilMs, fence: 1 } });
  const text = "The first words of an answer";
  const names = { provider: "anthropic", api: "anthropic-messages", model: null };
  const place = { sessionId, turnId, fence: 1, step: 1, attempt: 0, afterSeq: 1 };
  await store.partials?.write(ref, { v: 1, ...place, ...names, text, updatedMs: 1_767_323_045_006 });
}

/** Files, vectors, an open reply, and the mark of a purged import, where the store has them. */
export async function fillFacets(store: SessionStore): Promise<void> {
  const begin = async (name: string, fields: Readonly<Record<string, unknown>> = {}): Promise<string> => {
    const sessionId = `000000${name}-0000-4000-8000-000000000002`;
    await store.save(refOf(name), { sessionId, ...fields }, { ifRevision: null });
    return sessionId;
  };
  await begin("fs");
  await fillFiles(store, refOf("fs"));
  const sessionId = await begin("pr");
  await fillPartial(store, refOf("pr"), sessionId);
  await begin("pg", { importedFrom: imported });
  await store.remove(refOf("pg"), { purge: true });
  await fillVectors(store);
}

/** A file's time of storing is that of its file on the disk in some stores: this tool sets it. */
const withoutTimes = (value: unknown): string =>
  JSON.stringify(value, (name, inner: unknown) => (name === "storedAtMs" ? undefined : inner));

/** The texts that were found, without their scores: a changed vector is another question of nearness, and is made anew. */
async function nearest(store: SessionStore): Promise<readonly string[] | undefined> {
  const hits = await store.vectors?.nearest({ ...scope, model, vector: vectorOf(3), limit: 200 });
  return hits?.map(({ score: _score, ...hit }) => JSON.stringify(hit));
}

async function bytesText(store: SessionStore, id: string, range: object): Promise<string> {
  const parts = await Array.fromAsync(store.files?.get(scope, id, range) ?? []);
  return Buffer.concat(parts).toString("base64");
}

/** What is asked of the facets of a store. `fileIds`: the files of the whole store. */
export function facetWorks(store: SessionStore, fileIds: readonly string[]): readonly Work[] {
  const files = fileIds.flatMap((id, index): Work[] => [
    { operation: `file ${index}`, run: () => bytesText(store, id, {}) },
    { operation: `part of file ${index}`, run: () => bytesText(store, id, { from: 100, to: 400 }) },
    { operation: `facts of file ${index}`, run: async () => withoutTimes(await store.files?.stat(scope, id)) },
  ]);
  return [
    ...files,
    {
      operation: "list of files",
      run: async () => withoutTimes((await Array.fromAsync(store.files?.list(scope) ?? [])).flat()),
    },
    { operation: "open reply", run: async () => JSON.stringify(await store.partials?.read(refOf("pr"))) },
    {
      operation: "nearest",
      run: async () => ((await nearest(store)) ?? []).toSorted().join("\n"),
    },
    {
      operation: "mark of a purge",
      run: async () => JSON.stringify((await store.list({ ...scope, importedFrom: imported })).purgedAtMs),
    },
    {
      operation: "marks of purges",
      run: async () => JSON.stringify((await Array.fromAsync(store.maintenance?.purges?.() ?? [])).flat()),
    },
  ];
}

/** The ids of the files of a whole store. */
export async function fileIdsOf(store: SessionStore): Promise<readonly string[]> {
  const files = (await Array.fromAsync(store.files?.list(scope) ?? [])).flat();
  return files.map(({ id }) => id);
}
