import type { SessionRecord, StoredRecord } from "@throughline/core";
import { runSteps } from "@throughline/core/internal";
import type { RowOptions } from "../src/row-options.ts";
import type { TranscriptRow } from "../src/transcript-row.ts";
import { TranscriptRows } from "../src/transcript-rows.ts";
import type { ViewNode } from "../src/view-tree.ts";

/** Shows a tree as one line: `p(Read em(this))`. */
export function outline(nodes: readonly ViewNode[]): string {
  return nodes
    .map((node) => {
      if (typeof node === "string") return node.replaceAll("\n", "⏎");
      const { class: name, href, start } = node.attrs;
      const facts = [name, href, start].filter((fact) => fact !== undefined).map((fact) => `[${fact}]`);
      return `${node.tag}${facts.join("")}(${outline(node.children)})`;
    })
    .join("");
}

export const rowOptions: RowOptions = {
  level: "compact",
  hasImages: false,
  folder: null,
  promptText: (text) => (text.startsWith("<") ? "" : text),
};

export function storedRecords(records: readonly object[]): StoredRecord[] {
  return records.map((fields, index) => {
    const seq = index + 1;
    const tsMs = Date.parse("2026-06-30T10:00:00.000Z") + index * 1000;
    const record: SessionRecord = {
      type: "message",
      id: `r${seq}`,
      parentId: index === 0 ? null : `r${index}`,
      timestamp: new Date(tsMs).toISOString(),
      ...fields,
    };
    const { id, parentId, type } = record;
    return { seq, id, parentId, type, side: false, tsMs, storedAtMs: tsMs, record } as StoredRecord;
  });
}

export function rowsOf(records: readonly object[], options: Partial<RowOptions> = {}): readonly TranscriptRow[] {
  const rows = new TranscriptRows({ ...rowOptions, ...options });
  const taken = storedRecords(records).flatMap((stored) => runSteps(rows.take(stored)));
  return [...taken, ...runSteps(rows.finish())];
}

export const message = (fields: object): object => ({ message: fields });
