import { createDocumentSplitter } from "@throughline/foreign-formats";
import { createTextSplitter, type DocumentPart, type FileLayout } from "@throughline/foreign-formats/internal";
import { createLineSplitter } from "@throughline/openclaw-format";
import { type SplitLine } from "@throughline/openclaw-format/internal";

/** A unit of a source: a line, without its line feed, or a piece of a document. */
export interface SourceUnit extends SplitLine {
  /** Where the next one begins. */
  readonly endBytes: number;
  /** Whether it stays what it is, whatever is written behind it. */
  readonly isFinal: boolean;
  /** In a document: what it holds. */
  readonly part?: DocumentPart;
  /** Whether it is a piece of a text: its beginning stood for a record too. */
  readonly isText?: boolean;
}

/** Cuts the bytes of a source into units. */
export interface UnitSplitter {
  /** The units that end in this chunk. */
  push(chunk: Uint8Array): readonly SourceUnit[];
  /** What is left when there are no more chunks. */
  end(): readonly SourceUnit[];
}

/**
 * Creates what cuts a source into its units; of a longer one only the first bytes are kept.
 * @param layout of a file of another program. Absent: lines
 */
export function createUnitSplitter(maxUnitBytes: number, layout?: FileLayout): UnitSplitter {
  if (layout !== undefined && layout.unit !== "line") {
    const { lists, createCutter } = layout;
    const splitter =
      createCutter === undefined
        ? createDocumentSplitter({ lists, maxUnitBytes })
        : createTextSplitter(createCutter(), maxUnitBytes);
    const isText = createCutter !== undefined;
    return {
      push: (chunk) => splitter.push(chunk).map((unit) => ({ ...unit, ...documentEnd(unit), isFinal: true, isText })),
      // Behind a whole document white space may follow.
      end: () => splitter.end().map((unit) => ({ ...unit, ...documentEnd(unit), isFinal: false, isText })),
    };
  }
  const splitter = createLineSplitter({ maxLineBytes: maxUnitBytes });
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
