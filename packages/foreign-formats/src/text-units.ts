import type { DocumentSplitter, DocumentUnit } from "./document-units.ts";
import { PendingBytes } from "./document-units.ts";

/** Finds where units end in a chunk of whole lines, in order; 0 is the end of what came before. Keeps what it saw. */
export type TextCutter = (chunk: Uint8Array) => readonly number[];

/** Creates what cuts a text into units. Chunks must end with a line, but for the last one. All units in order are the text. */
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
