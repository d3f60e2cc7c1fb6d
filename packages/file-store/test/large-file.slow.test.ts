import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createMemoryStore } from "@throughline/store-memory";
import { withFileStore } from "@throughline/file-store";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type S3Process, startS3Process } from "./s3-process.ts";

let s3: S3Process;
beforeAll(async () => {
  s3 = await startS3Process();
});
afterAll(() => s3.end());

const megabyte = 1_000_000;
const length = 100 * megabyte;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Returns the bytes that are held outside of the heap, after a collection. */
function heldBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

async function* content(onPiece: () => void): AsyncGenerator<Uint8Array> {
  const piece = Buffer.alloc(1024 * 1024);
  for (let at = 0; at < length; at += piece.length) {
    piece.writeUInt32LE(at);
    onPiece();
    yield piece.subarray(0, Math.min(piece.length, length - at));
  }
}

describe("a file of 100 MB in object storage", () => {
  it("is put and read in flat memory, and can be ended", async () => {
    const store = withFileStore(createMemoryStore(), { files: s3.fileStore() });
    const scope = { namespace: "", agentId: "main" };
    const before = heldBytes();
    let [most, read] = [0, 0];
    const look = (): void => {
      most = Math.max(most, heldBytes() - before);
    };
    const { id, bytes } = await store.files!.put(scope, content(look));
    const hash = createHash("sha256");
    for await (const piece of store.files!.get(scope, id)) {
      hash.update(piece);
      if (read % megabyte > (read + piece.length) % megabyte) look();
      read += piece.length;
    }
    assert.equal(bytes, length);
    assert.equal(hash.digest("hex"), id);
    assert.ok(most < 30 * megabyte, `${Math.round(most / megabyte)} MB of buffers at most`);
    for await (const piece of store.files!.get(scope, id)) {
      assert.ok(piece.length > 0);
      break;
    }
    const ended = new AbortController();
    await assert.rejects(
      async () => {
        for await (const piece of store.files!.get(scope, id, { signal: ended.signal }))
          if (piece.length > 0) ended.abort();
      },
      { code: "ABORTED" },
    );
  });
});
