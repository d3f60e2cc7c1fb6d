import { isFields, type Fields } from "@throughline/core/internal";
import { createDocumentSplitter, type ListPlace } from "./document-units.ts";
import type { FormatSample } from "./foreign-format.ts";

export interface SampledDocument {
  readonly head: Fields;
  /** The tail is empty when the sample ends before the list does. */
  readonly tail: Fields;
  readonly elements: readonly Fields[];
  /** The count covers elements that are not objects. */
  readonly others: number;
  /** The file ends within the list, so a later element may show another format. */
  readonly isCut: boolean;
}

/** More elements add no certainty about the format. */
const mostElements = 20;

/** Null means that no list at one of the locations begins in the sample. */
export function documentIn(
  { head: bytes, isWhole }: FormatSample,
  lists: readonly ListPlace[],
): SampledDocument | null {
  const splitter = createDocumentSplitter({ lists, maxUnitBytes: bytes.length });
  const decoder = new TextDecoder();
  const [first, ...units] = splitter.push(bytes);
  if (first === undefined) return null;
  const elements: Fields[] = [];
  let others = 0;
  for (const unit of units.slice(0, mostElements)) {
    const value = elementValue(decoder.decode(unit.bytes));
    if (isFields(value)) elements.push(value);
    else others += 1;
  }
  const rest = isWhole ? splitter.end().find(({ part }) => part === "tail") : undefined;
  const tail = rest === undefined ? {} : tailFields(decoder.decode(rest.bytes));
  const isCut = isWhole && rest?.isTerminated !== true;
  return { head: headFields(decoder.decode(first.bytes)), tail, elements, others, isCut };
}

/** The text ends within the list, so the open brackets are closed before the parse. */
export function headFields(text: string): Fields {
  const start = text.replace(/^\uFEFF/, "").trimStart();
  return start.startsWith("{") ? fieldsOf(`${start}${closing(start)}`) : {};
}

/** The list may lie at several depths, so each depth is tried. */
export function tailFields(text: string): Fields {
  const end = text.trim();
  for (const start of ['{"":[', '{"":{"":[', '{"":{"":{"":[', '{"":{"":{"":{"":[']) {
    const fields = withInner(fieldsOf(`${start}${end}`));
    if (Object.keys(fields).length > 0) return fields;
  }
  return {};
}

/** A field of an outer object takes precedence over a field of the same name in an inner one. */
function withInner({ "": inner, ...fields }: Fields): Fields {
  return isFields(inner) ? { ...withInner(inner), ...fields } : fields;
}

function closing(text: string): string {
  const open: string[] = [];
  let isString = false;
  for (let at = 0; at < text.length && open.length <= deepest; at++) {
    const character = text[at];
    if (isString) {
      if (character === "\\") at += 1;
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === "{") open.push("}");
    else if (character === "[") open.push("]");
    else if (character === "}" || character === "]") open.pop();
  }
  return open.toReversed().join("");
}

/** The scan stops at deeper nesting, so such a head gives no fields. */
const deepest = 100;

function fieldsOf(text: string): Fields {
  const value = parsed(text);
  return isFields(value) ? value : {};
}

function elementValue(text: string): unknown {
  return parsed(text.replace(/^[\s,]{0,1000}/, ""));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The text is broken or was cut off by the end of the sample, so it gives no evidence.
    return null;
  }
}
