import type { FileScope } from "@throughline/core/internal";
import { damagedFile, fileChunkBytes, fileOwner, type PayloadCoder } from "@throughline/store-kit/internal";
import type { FileStore } from "./file-store.ts";
import type { KeptObject } from "./object-names.ts";

interface ObjectRange {
  readonly scope: FileScope;
  readonly object: KeptObject;
  readonly from: number;
  readonly to: number;
  readonly signal: AbortSignal | undefined;
}

/** Yields bytes of a file. Chunks under a codec have any length, so they are read from the first one on. */
export async function* readObject(
  objects: FileStore,
  coder: PayloadCoder,
  { scope, object, from, to, signal }: ObjectRange,
): AsyncGenerator<Uint8Array> {
  const { id, name, upload, bytes, fileBytes, isCoded } = object;
  if (!isCoded) {
    if (bytes !== fileBytes) throw damagedFile(id);
    return yield* objects.read(name, { from, to, signal });
  }
  let number = 0;
  for await (const coded of frames(objects.read(name, { from: 0, to: bytes, signal }), id)) {
    const start = number * fileChunkBytes;
    if (start >= to) return;
    const expected = Math.min(fileChunkBytes, fileBytes - start);
    if (start + expected > from) {
      const chunk = coder.decode(coded, fileOwner({ id: upload, scope }, number));
      if (chunk.byteLength !== expected) throw damagedFile(id);
      yield chunk.subarray(Math.max(0, from - start), Math.min(expected, to - start));
    }
    number += 1;
  }
  if (number * fileChunkBytes < to) throw damagedFile(id);
}

/** No codec makes a chunk this much longer. A damaged length must not fill the memory. */
const mostFrameBytes = 4 * fileChunkBytes;

async function* frames(content: AsyncIterable<Uint8Array>, id: string): AsyncGenerator<Uint8Array> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of content) {
    rest = Buffer.concat([rest, piece]);
    for (;;) {
      if (rest.length < 4) break;
      const length = rest.readUInt32BE();
      if (length > mostFrameBytes) throw damagedFile(id);
      if (rest.length < 4 + length) break;
      yield Uint8Array.from(rest.subarray(4, 4 + length));
      rest = rest.subarray(4 + length);
    }
  }
  if (rest.length > 0) throw damagedFile(id);
}
