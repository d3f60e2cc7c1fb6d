import { createHash } from "node:crypto";
import type { SourceFile } from "./node/source-files.ts";

/** The SHA-256 of the first bytes of a source, in hex; null when it has not that many. */
export async function hashPrefix(open: () => Promise<SourceFile>, sizeBytes: number): Promise<string | null> {
  const source = await open();
  try {
    if (source.sizeBytes < sizeBytes) return null;
    const hash = createHash("sha256");
    for await (const chunk of source.chunks({ toBytes: sizeBytes })) hash.update(chunk);
    return hash.digest("hex");
  } finally {
    await source.close();
  }
}
