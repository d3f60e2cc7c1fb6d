import { ThroughlineError } from "@throughline/core";
import { isFields } from "@throughline/core/internal";

/** Describes a file of the page as the build of the page lists it. */
export interface ListedFile {
  /** Is the path below the folder, with `/`. */
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  /** Is the SHA-256 of the bytes in hex. */
  readonly sha256: string;
}

/** Is the file of the folder that lists all others. */
export const listName = "files.json";
/** Is the file that answers every address of the page. */
export const pageName = "index.html";

const mostFiles = 1000;
const mostFileBytes = 16 * 1024 * 1024;
/** A segment starts with no dot, so that no name leads out of the folder or to a hidden file. */
const nameForm = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}\/){0,4}[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const typeForm = /^[a-z]{1,20}\/[a-z0-9.+-]{1,40}(?:; ?charset=utf-8)?$/;

/** @throws {ThroughlineError} INSTALLATION_DAMAGED for a text that no build of the page wrote */
export function parseFileList(text: string): ReadonlyMap<string, ListedFile> {
  const files = new Map<string, ListedFile>();
  for (const item of itemsOf(text)) {
    const { name, type, bytes, sha256 } = item;
    const isListed =
      typeof name === "string" &&
      nameForm.test(name) &&
      typeof type === "string" &&
      typeForm.test(type) &&
      typeof bytes === "number" &&
      Number.isSafeInteger(bytes) &&
      bytes <= mostFileBytes &&
      typeof sha256 === "string" &&
      /^[0-9a-f]{64}$/.test(sha256);
    if (!isListed) throw damaged(`${listName} has an entry that is no file`);
    files.set(name, { name, type, bytes, sha256 });
  }
  if (!files.has(pageName)) throw damaged(`${listName} does not list ${pageName}`);
  return files;
}

function itemsOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(`${listName} is not JSON`);
  }
  if (!Array.isArray(value) || value.length > mostFiles || !value.every(isFields))
    throw damaged(`${listName} is not a list of files`);
  return value;
}

export function damaged(why: string, cause?: unknown): ThroughlineError {
  return new ThroughlineError("INSTALLATION_DAMAGED", `The files of the page are damaged: ${why}.`, {
    outcome: "not-applied",
    ...(cause === undefined ? {} : { cause }),
  });
}
