import { isFields, type Fields, type SourcedRecord } from "@throughline/core/internal";
import { blockText, characterStart } from "./record-block.ts";
import { recordTextWith } from "./record-text.ts";

/** Limits a text in a preview, in bytes of UTF-8. */
const mostTextBytes = 4096;
/** Limits thinking in a preview, in characters. */
const mostThinkingCharacters = 200;

/** States that a preview holds only a part of a block, or of the texts beside the blocks. */
interface BlockCut {
  /** Is the place of the block in the content of the message; null for the texts beside it. */
  readonly block: number | null;
  /** Counts the bytes of the block as `…/records/{id}?block=` gives it; beside the blocks those of the cut texts. */
  readonly totalBytes: number;
}

/** Formats a record whose long texts are cut and whose images have no data. The item states what was cut. */
export function previewText(stored: SourcedRecord): string {
  const cuts: BlockCut[] = [];
  const { message, ...others } = stored.record as Fields;
  const beside = new TextCutter();
  const record = { ...beside.fields(others), ...(message === undefined ? {} : { message }) };
  const previewed = isFields(message) ? { ...record, message: messagePreview(message, beside, cuts) } : record;
  if (beside.cutBytes > 0) cuts.push({ block: null, totalBytes: beside.cutBytes });
  return recordTextWith(stored, previewed, { cut: cuts });
}

function messagePreview({ content, ...others }: Fields, beside: TextCutter, cuts: BlockCut[]): Fields {
  const fields = beside.fields(others);
  if (content === undefined) return fields;
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  const shown = blocks.map((block, index) => {
    const cutter = new TextCutter();
    const value = isFields(block) ? blockPreview(block, cutter) : cutter.value(block);
    if (cutter.cutBytes > 0) cuts.push({ block: index, totalBytes: Buffer.byteLength(blockText(block).text) });
    return value;
  });
  return { ...fields, content: Array.isArray(content) ? shown : shown[0] };
}

function blockPreview(block: Fields, cutter: TextCutter): Fields {
  const { type, thinking, data } = block;
  if (type === "thinking" && typeof thinking === "string" && thinking.length > mostThinkingCharacters)
    return { ...cutter.fields({ ...block, thinking: "" }), thinking: cutter.characters(thinking) };
  if (type === "image" && typeof data === "string" && data !== "") {
    cutter.cutBytes += Buffer.byteLength(data);
    return { ...cutter.fields({ ...block, data: "" }), data: "" };
  }
  return cutter.fields(block);
}

/** Cuts the texts in a value, at any depth. */
class TextCutter {
  /** Adds up the whole sizes of the texts that were cut. */
  cutBytes = 0;

  fields(fields: Fields): Fields {
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, this.value(value)]));
  }

  value(value: unknown): unknown {
    if (typeof value === "string") return this.#text(value);
    if (Array.isArray(value)) return value.map((each) => this.value(each));
    return isFields(value) ? this.fields(value) : value;
  }

  characters(text: string): string {
    this.cutBytes += Buffer.byteLength(text);
    const end = isHighSurrogate(text, mostThinkingCharacters - 1) ? mostThinkingCharacters - 1 : mostThinkingCharacters;
    return text.slice(0, end);
  }

  #text(text: string): string {
    // A character has at most three bytes of UTF-8 for each of its code units.
    if (text.length * 3 <= mostTextBytes) return text;
    const bytes = Buffer.from(text.slice(0, mostTextBytes + 1));
    if (bytes.length <= mostTextBytes) return text;
    this.cutBytes += Buffer.byteLength(text);
    return bytes.toString("utf8", 0, characterStart(bytes, mostTextBytes));
  }
}

function isHighSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800;
}
