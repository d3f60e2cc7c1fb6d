import { isFields, type Fields } from "@throughline/core/internal";
import { createDocumentSplitter, type ListPlace } from "./document-units.ts";
import type { FormatSample } from "./foreign-format.ts";

/** The beginning of a document: what stands before the list, and its first elements. */
export interface SampledDocument {
  readonly head: Fields;
  /** What stands behind the list; none where the sample ends before. */
  readonly tail: Fields;
  readonly elements: readonly Fields[];
  /** Elements that are no objects. */
  readonly others: number;
}

/** The most elements that are looked at. */
const mostElements = 20;

/** A document whose list has begun in the sample; null for anything else. */
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
  return { head: headFields(decoder.decode(first.bytes)), tail, elements, others };
}

/** The fields of a document that stand before its list; none where they cannot be read. */
export function headFields(text: string): Fields {
  const start = text.replace(/^\uFEFF/, "").trimStart();
  return start.startsWith("{") ? fieldsOf(`${start}${closing(start)}`) : {};
}

/** The fields of a document that stand behind its list; none where they cannot be read. */
export function tailFields(text: string): Fields {
  const end = text.trim();
  for (const start of ['{"":[', '{"":{"":[', '{"":{"":{"":[', '{"":{"":{"":{"":[']) {
    const fields = withInner(fieldsOf(`${start}${end}`));
    if (Object.keys(fields).length > 0) return fields;
  }
  return {};
}

/** The fields of an object and of those that the list lies in; the outer ones count. */
function withInner({ "": inner, ...fields }: Fields): Fields {
  return isFields(inner) ? { ...withInner(inner), ...fields } : fields;
}

/** The brackets that close what a text leaves open. */
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

/** What is nested deeper is not read. */
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
    // Broken, or cut off by the end of the sample: nothing can be said of it.
    return null;
  }
}
