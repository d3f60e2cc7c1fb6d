import { createHash } from "node:crypto";
import type { SourceFile } from "./node/source-files.ts";

export interface PrefixHashes {
  readonly sizeBytes: number;
  /** Returns the SHA-256 of the first bytes, in hex; null if the source has fewer bytes. */
  readonly sha256: (sizeBytes: number) => string | null;
}

/** Hashes several prefixes of a source in one read. */
export async function hashPrefixes(open: () => Promise<SourceFile>, sizes: readonly number[]): Promise<PrefixHashes> {
  const source = await open();
  try {
    const { sizeBytes } = source;
    const wanted = [...new Set(sizes)].filter((size) => size <= sizeBytes).toSorted((a, b) => a - b);
    const found = new Map<number, string>();
    const hash = createHash("sha256");
    let at = 0;
    const take = (chunk: Uint8Array): void => {
      let from = 0;
      for (const size of wanted) {
        if (size < at + from || size > at + chunk.length || found.has(size)) continue;
        hash.update(chunk.subarray(from, size - at));
        from = size - at;
        found.set(size, hash.copy().digest("hex"));
      }
      hash.update(chunk.subarray(from));
      at += chunk.length;
    };
    take(new Uint8Array());
    for await (const chunk of source.chunks({ toBytes: wanted.at(-1) ?? 0 })) take(chunk);
    return { sizeBytes, sha256: (size) => found.get(size) ?? null };
  } finally {
    await source.close();
  }
}
