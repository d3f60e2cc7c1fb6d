import { createHash } from "node:crypto";
import type { ListReceipt } from "./receipt-types.ts";
import { createUnitSplitter } from "./source-units.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Covers a document up to the end of the elements that were imported. */
export interface DocumentBeginning {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/**
 * Finds the imported elements behind a changed head, because a program may write the time of the last message there.
 * Returns null if the elements differ too.
 */
export async function beginningOfList(
  { open, layout }: TranscriptSource,
  { head, sizeBytes }: ListReceipt,
): Promise<DocumentBeginning | null> {
  if (open === null || head === undefined || layout?.unit !== "document") return null;
  const file = await open();
  try {
    const splitter = createUnitSplitter(1, layout);
    const [whole, list] = [createHash("sha256"), createHash("sha256")];
    let left = sizeBytes - head.sizeBytes;
    let headBytes: number | null = null;
    let at = 0;
    for await (const chunk of file.chunks()) {
      headBytes ??= splitter.push(chunk).find(({ part }) => part === "head")?.endBytes ?? null;
      const from = headBytes === null ? chunk.length : Math.max(0, headBytes - at);
      const elements = chunk.subarray(from, from + left);
      whole.update(chunk.subarray(0, from + elements.length));
      list.update(elements);
      left -= elements.length;
      at += chunk.length;
      if (headBytes !== null && left === 0) break;
    }
    const isSame = headBytes !== null && left === 0 && list.digest("hex") === head.listSha256;
    if (!isSame || headBytes === null) return null;
    return { sizeBytes: headBytes + sizeBytes - head.sizeBytes, sha256: whole.digest("hex") };
  } finally {
    await file.close();
  }
}
