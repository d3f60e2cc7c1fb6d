import { createLineSplitter, type SplitLine } from "@throughline/openclaw-format";

/** A unit of a source: a line, without its line feed. */
export interface SourceUnit extends SplitLine {
  /** Where the next one begins. */
  readonly endBytes: number;
}

/** Cuts the bytes of a source into units. */
export interface UnitSplitter {
  /** The units that end in this chunk. */
  push(chunk: Uint8Array): readonly SourceUnit[];
  /** What is left when there are no more chunks. */
  end(): readonly SourceUnit[];
}

/** Creates what cuts a source into lines; of a longer one only the first bytes are kept. */
export function createUnitSplitter(maxLineBytes: number): UnitSplitter {
  const splitter = createLineSplitter({ maxLineBytes });
  return {
    push: (chunk) => splitter.push(chunk).map(unitOf),
    end: () => {
      const last = splitter.end();
      return last === null ? [] : [unitOf(last)];
    },
  };
}

function unitOf(line: SplitLine): SourceUnit {
  const endBytes = line.byteOffset + line.sizeBytes + (line.isTerminated ? 1 : 0);
  return { ...line, endBytes };
}
