import type { SessionOutline } from "./session-outline.ts";

/** Records of these types show something. Settings and marks of programs do not. */
const shownTypes: ReadonlySet<string> = new Set([
  "branch_summary",
  "compaction",
  "context_edit",
  "custom_message",
  "model_change",
  "reset",
]);

/** Chromium clips a box at 33,554,428 px, so a list holds no more rows. */
export const mostItems = 50_000;
const usualBorder = 20_000;

/** A part of a session that one list shows. */
export interface Segment {
  /** Lists the places of the shown records in the outline. */
  readonly items: Int32Array;
  /** Holds the estimated height of each. The list asks for those of all rows behind one that is measured. */
  readonly heights: Uint16Array;
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface ItemOptions {
  readonly hasSide: boolean;
  /** Holds the redactions and edits. The outline has only the type of a record, and the digest names these. */
  readonly marks: ReadonlySet<number>;
}

function isShown(outline: SessionOutline, index: number, { hasSide, marks }: ItemOptions): boolean {
  if (outline.isSideAt(index) && !hasSide) return false;
  const type = outline.typeAt(index);
  // The result of a tool stands in the row of its call.
  if (type === "message") return outline.roleAt(index) !== "toolResult";
  return shownTypes.has(type) || marks.has(outline.seqAt(index));
}

/** Divides a session into lists. The borders are compactions where there are some, else every 20,000 records. */
export function segmentsOf(outline: SessionOutline, options: ItemOptions): readonly Segment[] {
  const segments: Segment[] = [];
  let items: number[] = [];
  let lastBorder = 0;
  const end = (): void => {
    if (items.length === 0) return;
    const [from = 0] = items;
    segments.push({
      items: Int32Array.from(items),
      heights: Uint16Array.from(items, (index) => estimatedHeight(outline, index)),
      fromSeq: segments.length === 0 ? 1 : outline.seqAt(from),
      toSeq: outline.seqAt(items.at(-1) ?? from),
    });
    items = [];
    lastBorder = 0;
  };
  for (let index = 0; index < outline.count; index++) {
    if (!isShown(outline, index, options)) continue;
    if (outline.typeAt(index) === "compaction") lastBorder = items.length;
    if (items.length === mostItems) {
      const border = lastBorder > usualBorder ? lastBorder : Math.floor(items.length / usualBorder) * usualBorder;
      const rest = items.slice(border);
      items = items.slice(0, border);
      end();
      items = rest;
    }
    items.push(index);
  }
  end();
  return segments;
}

/** Returns the place of the last item whose record has at most this seq; 0 before the first. */
export function itemOf(outline: SessionOutline, { items }: Segment, seq: number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (outline.seqAt(items[middle] ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** Estimates the height of a record in pixels by its size. A wrong guess is corrected when the row is seen. */
function estimatedHeight(outline: SessionOutline, index: number): number {
  const bytes = outline.bytesAt(index);
  if (outline.typeAt(index) !== "message") return 48;
  const role = outline.roleAt(index);
  if (role === "user") return 104 + Math.min(600, Math.ceil(bytes / 80) * 12);
  return role === "assistant" ? 56 + Math.min(480, Math.ceil(bytes / 100) * 12) : 56;
}
