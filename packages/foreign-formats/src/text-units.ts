import type { DocumentSplitter, DocumentUnit } from "./document-units.ts";
import { PendingBytes } from "./document-units.ts";

/**
 * Returns the positions in a chunk of whole lines at which items end, in order. Position 0 is the end of the previous
 * chunk. The function keeps state between calls.
 */
export type TextCutter = (chunk: Uint8Array) => readonly number[];

/**
 * Creates a splitter that cuts a text into items. Every chunk but the last must end with a line. All items in order are
 * the text.
 */
export function createTextSplitter(cutter: TextCutter, maxUnitBytes: number): DocumentSplitter {
  const pending = new PendingBytes(maxUnitBytes);
  return {
    push(chunk) {
      const units: DocumentUnit[] = [];
      let start = 0;
      for (const end of cutter(chunk)) {
        if (pending.sizeBytes + end - start === 0) continue;
        units.push(pending.take(chunk.subarray(start, end), "element", true));
        start = end;
      }
      pending.keep(chunk.subarray(start));
      return units;
    },
    end: () => (pending.sizeBytes === 0 ? [] : [pending.take(new Uint8Array(0), "element", true)]),
  };
}
