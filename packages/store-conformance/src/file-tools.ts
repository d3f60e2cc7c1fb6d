import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { FilesFacet, RecordDraft, SessionRef, SessionStore, StoreCapabilities } from "@throughline/core";
import type { FileScope, ListedFile } from "@throughline/core/internal";
import type { StoreUnderTest } from "./store-under-test.ts";

export const requires = ({ files }: StoreCapabilities): boolean => files === true;

export function facetOf({ files }: SessionStore): FilesFacet {
  assert.ok(files !== undefined, "a store that declares files has the facet");
  return files;
}

export const scope: FileScope = { namespace: "", agentId: "main" };

/** Every store keeps files in chunks of this size, so that the edges of chunks are where faults are. */
export const chunkBytes: number = 256 * 1024;

/** Returns bytes that differ in every place and with every seed, so that an exchanged chunk is noticed. */
export function bytesOf(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let index = 0; index < length; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

export function idOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Yields the bytes in pieces, the way that a connection brings them. */
export async function* pieces(bytes: Uint8Array, size = 70_001): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.slice(at, at + size);
}

export async function putFile(store: SessionStore, bytes: Uint8Array, at: FileScope = scope): Promise<string> {
  return (await facetOf(store).put(at, pieces(bytes))).id;
}

export async function readFile(
  store: SessionStore,
  id: string,
  { at = scope, ...range }: { readonly at?: FileScope; readonly from?: number; readonly to?: number } = {},
): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(facetOf(store).get(at, id, range)));
}

export async function listFiles(store: SessionStore, at: FileScope = scope): Promise<ListedFile[]> {
  return (await Array.fromAsync(facetOf(store).list(at))).flat();
}

/** Returns how many records refer to each file that the store has. */
export async function countReferences(store: SessionStore): Promise<Record<string, number>> {
  const files = (await listFiles(store)).filter(({ bytes }) => bytes !== null);
  return Object.fromEntries(files.map(({ id, references }) => [id, references]));
}

export function fileDraft(fileIds: readonly string[], fields: Readonly<Record<string, unknown>> = {}): RecordDraft {
  const blocks = fileIds.map((fileId) => ({ type: "file", fileId, mediaType: "application/octet-stream", name: "a" }));
  return { type: "message", message: { role: "user", content: [{ type: "text", text: "see" }, ...blocks] }, ...fields };
}

export async function purge(store: SessionStore, ref: SessionRef): Promise<void> {
  await store.remove(ref, { purge: true });
}

/** Asserts that no file of the store contains a part of the bytes. */
export async function assertInNoFile(under: StoreUnderTest, bytes: Uint8Array): Promise<void> {
  for (const file of (await under.files?.()) ?? [])
    assert.ok(
      !Buffer.from(file).includes(Buffer.from(bytes.subarray(0, 64))),
      "a file of the store still holds the bytes",
    );
}
