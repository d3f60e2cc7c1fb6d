import { isColumnText } from "./column-text.ts";

/** A record that was read from the source of another one: of one line that holds three tool results, the second and third. */
export interface DerivedFrom {
  /** The record that has the source. */
  readonly id: string;
  /** From 1. */
  readonly index: number;
}

/** Names the format of a source: small letters, digits, `.` and `-`, at most 64. */
const sourceFormatForm = /^[a-z0-9][a-z0-9.-]{0,63}$/;

type Fields = { readonly [field: string]: unknown };

/**
 * The format of the source that a record was read from. Null for a line of Throughline, pi or OpenClaw, and if the
 * field names no format.
 */
export function sourceFormatOf({ sourceFormat }: Fields): string | null {
  return isSourceFormat(sourceFormat) ? sourceFormat : null;
}

function isSourceFormat(value: unknown): value is string {
  return typeof value === "string" && sourceFormatForm.test(value);
}

/** The id of a derived record: `<id>~d1`. */
export function derivedRecordId({ id, index }: DerivedFrom): string {
  return `${id}~d${index}`;
}

/** What a record was derived from; null for one that has a source of its own, and where field and id do not agree. */
export function derivedFromOf(record: Fields): DerivedFrom | null {
  const { derivedFrom, id } = record;
  if (typeof derivedFrom !== "object" || derivedFrom === null) return null;
  const { id: first, index } = derivedFrom as Fields;
  if (!isColumnText(first, 256) || !Number.isSafeInteger(index) || (index as number) < 1) return null;
  const from = { id: first, index: index as number };
  return id === derivedRecordId(from) ? from : null;
}

/** The id of the record that one with this id may be derived from; null when the id is none of a derived record. */
export function firstRecordIdOf(id: string): string | null {
  const at = id.lastIndexOf("~d");
  return at > 0 && /^[1-9][0-9]*$/.test(id.slice(at + 2)) ? id.slice(0, at) : null;
}

/**
 * What is wrong with the fields of a new record that say where it comes from; null: nothing. Lines of other programs are not
 * asked: they are kept whatever they say.
 */
export function findOriginProblem(record: Fields): string | null {
  if (record["sourceFormat"] !== undefined && !isSourceFormat(record["sourceFormat"]))
    return "sourceFormat is a name of at most 64 small letters, digits, dots and hyphens";
  if (record["derivedFrom"] !== undefined && derivedFromOf(record) === null)
    return 'derivedFrom is {id, index} with an index from 1, and the id of the record is "<id>~d<index>"';
  return null;
}
