import { isColumnText } from "./column-text.ts";

/** A line may hold several records, such as three tool results. The second and the third are derived from the first. */
export interface DerivedFrom {
  /** The record with this id has the source. */
  readonly id: string;
  /** The index counts the derived records of a source from 1. */
  readonly index: number;
}

/** The name of a source format has small letters, digits, `.` and `-`, at most 64. */
const sourceFormatForm = /^[a-z0-9][a-z0-9.-]{0,63}$/;

type Fields = { readonly [field: string]: unknown };

/**
 * Returns the format of the source that a record was read from. Null for a line of Throughline, pi or OpenClaw, and
 * when the field names no format.
 */
export function sourceFormatOf({ sourceFormat }: Fields): string | null {
  return isSourceFormat(sourceFormat) ? sourceFormat : null;
}

function isSourceFormat(value: unknown): value is string {
  return typeof value === "string" && sourceFormatForm.test(value);
}

export function derivedRecordId({ id, index }: DerivedFrom): string {
  return `${id}~d${index}`;
}

/**
 * Returns the origin of a derived record. Null for a record with its own source, and when the field and the id
 * disagree.
 */
export function derivedFromOf(record: Fields): DerivedFrom | null {
  const { derivedFrom, id } = record;
  if (typeof derivedFrom !== "object" || derivedFrom === null) return null;
  const { id: first, index } = derivedFrom as Fields;
  if (!isColumnText(first, 256) || !Number.isSafeInteger(index) || (index as number) < 1) return null;
  const from = { id: first, index: index as number };
  return id === derivedRecordId(from) ? from : null;
}

/**
 * Returns the id of the record that a record with this id may be derived from. Null when the id has no derived form.
 */
export function firstRecordIdOf(id: string): string | null {
  const at = id.lastIndexOf("~d");
  return at > 0 && /^[1-9][0-9]*$/.test(id.slice(at + 2)) ? id.slice(0, at) : null;
}

/**
 * Returns the problem of the fields of a new record that state its origin, or null. Lines of other programs are not
 * checked, because they are kept whatever they say.
 */
export function findOriginProblem(record: Fields): string | null {
  if (record["sourceFormat"] !== undefined && !isSourceFormat(record["sourceFormat"]))
    return "sourceFormat is a name of at most 64 small letters, digits, dots and hyphens";
  if (record["derivedFrom"] !== undefined && derivedFromOf(record) === null)
    return 'derivedFrom is {id, index} with an index from 1, and the id of the record is "<id>~d<index>"';
  return null;
}
