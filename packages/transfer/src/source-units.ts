import { createDocumentSplitter } from "@throughline/foreign-formats";
import { createTextSplitter, type DocumentPart, type FileLayout } from "@throughline/foreign-formats/internal";
import { createLineSplitter } from "@throughline/openclaw-format";
import type { SplitLine } from "@throughline/openclaw-format/internal";

export interface SourceUnit extends SplitLine {
  /** Holds the offset at which the next item begins. */
  readonly endBytes: number;
  /** True if later bytes cannot change the item. */
  readonly isFinal: boolean;
  readonly part?: DocumentPart;
  /** True for a piece of a text, whose beginning may already have a record. */
  readonly isText?: boolean;
}

export interface UnitSplitter {
  /** Returns the items that end in this chunk. */
  push(chunk: Uint8Array): readonly SourceUnit[];
  /** Returns the remaining items after the last chunk. */
  end(): readonly SourceUnit[];
}

/**
 * Creates a splitter. An item above `maxUnitBytes` keeps only its first bytes, so that memory stays limited.
 * @param layout layout of another program's file; absent for lines
 * @param fromBytes offset of the first chunk, for lines only
 */
export function createUnitSplitter(maxUnitBytes: number, layout?: FileLayout, fromBytes: number = 0): UnitSplitter {
  if (layout !== undefined && layout.unit !== "line") {
    const { lists, createCutter } = layout;
    const splitter =
      createCutter === undefined
        ? createDocumentSplitter({ lists, maxUnitBytes })
        : createTextSplitter(createCutter(), maxUnitBytes);
    const isText = createCutter !== undefined;
    return {
      push: (chunk) => splitter.push(chunk).map((unit) => ({ ...unit, ...documentEnd(unit), isFinal: true, isText })),
      // White space may still follow a complete document.
      end: () => splitter.end().map((unit) => ({ ...unit, ...documentEnd(unit), isFinal: false, isText })),
    };
  }
  const splitter = createLineSplitter({ maxLineBytes: maxUnitBytes, byteOffset: fromBytes });
  return {
    push: (chunk) => splitter.push(chunk).map(lineUnit),
    end: () => {
      const last = splitter.end();
      return last === null ? [] : [lineUnit(last)];
    },
  };
}

function documentEnd({ byteOffset, sizeBytes }: SplitLine): { readonly endBytes: number } {
  return { endBytes: byteOffset + sizeBytes };
}

function lineUnit(line: SplitLine): SourceUnit {
  const endBytes = line.byteOffset + line.sizeBytes + (line.isTerminated ? 1 : 0);
  return { ...line, endBytes, isFinal: line.isTerminated };
}
