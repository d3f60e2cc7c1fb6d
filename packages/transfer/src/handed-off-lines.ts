import type { SessionRecord } from "@throughline/core";
import { isUuid } from "@throughline/foreign-formats/internal";
import type { ImportReceipt } from "./import-receipt.ts";
import type { SourceLine } from "./source-reader.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** These fields hold the id of another record. */
const references = ["parentId", "firstKeptEntryId", "targetId", "fromId"] as const;

/**
 * Puts the lines that a program added to a hand-off behind the record that was the head when it was written. The first
 * lines have records here already, under the ids of the session that was handed off.
 */
export class HandedOffLines {
  readonly #lineCount: number;
  readonly #headId: string | null;
  readonly #madeIds: string | null;
  /** Holds the ids that the first lines have in the file. */
  readonly #ids = new Set<string>();

  constructor({ lineCount, headId }: NonNullable<ImportReceipt["handOff"]>, source: TranscriptSource) {
    this.#lineCount = lineCount;
    this.#headId = headId;
    // A reader makes ids by the place of a line, and the session that was handed off may have the same ones.
    this.#madeIds = source.foreign === undefined ? null : source.sessionId.slice(0, 8);
  }

  /** Returns the line with the ids that its records and their neighbors have here. Lines come in their order. */
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
    return id === null || this.#ids.has(id) ? this.#headId : this.#newId(id);
  }

  #newId(id: string): string {
    return this.#madeIds === null || isUuid(id.replace(/~.*$/s, "")) ? id : `${this.#madeIds}-${id}`;
  }

  #placed(record: SessionRecord): SessionRecord {
    const changes: [string, unknown][] = references.flatMap((field) => {
      const id = record[field];
      const here = typeof id === "string" || id === null ? this.idHere(id) : id;
      return here === id ? [] : [[field, here] as [string, unknown]];
    });
    const id = this.#newId(record.id);
    if (id !== record.id) changes.push(["id", id]);
    const { derivedFrom } = record as { readonly derivedFrom?: { readonly id: string } };
    if (id !== record.id && derivedFrom !== undefined)
      changes.push(["derivedFrom", { ...derivedFrom, id: this.#newId(derivedFrom.id) }]);
    return changes.length === 0 ? record : { ...record, ...Object.fromEntries(changes) };
  }
}
