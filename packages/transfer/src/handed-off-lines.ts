import type { SessionRecord } from "@throughline/core";
import type { ImportReceipt } from "./import-receipt.ts";
import type { SourceLine } from "./source-reader.ts";

/**
 * Puts the lines that a program added to a hand-off behind the record that was the head when it was written. The first
 * lines have records here already, under the ids of the session that was handed off.
 */
export class HandedOffLines {
  readonly #lineCount: number;
  readonly #headId: string | null;
  /** Holds the ids that the first lines have in the file. */
  readonly #ids = new Set<string>();

  constructor({ lineCount, headId }: NonNullable<ImportReceipt["handOff"]>) {
    this.#lineCount = lineCount;
    this.#headId = headId;
  }

  /** Returns the line with the ids that its neighbors have here. Lines come in their order. */
  take(line: SourceLine): SourceLine {
    if (line.line <= this.#lineCount) {
      for (const { id } of [line.record, ...(line.derived ?? [])]) this.#ids.add(id);
      return { ...line, headId: this.#headId };
    }
    const record = this.#placed(line.record);
    return {
      ...line,
      record,
      isSourceCanonical: line.isSourceCanonical && record === line.record,
      headId: this.idHere(line.headId),
      ...(line.derived === undefined ? {} : { derived: line.derived.map((each) => this.#placed(each)) }),
    };
  }

  /** Returns the id of a record here. A record of the first lines stands for the head. */
  idHere(id: string | null): string | null {
    return id === null || this.#ids.has(id) ? this.#headId : id;
  }

  #placed(record: SessionRecord): SessionRecord {
    const parentId = this.idHere(record.parentId);
    return parentId === record.parentId ? record : { ...record, parentId };
  }
}
