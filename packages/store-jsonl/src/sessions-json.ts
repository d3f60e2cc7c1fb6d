import { crc32 } from "node:zlib";
import type { AgentFolder } from "./agent-folder.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { DeepJson, jsonMembers, parseObject } from "./json-members.ts";
import type { Slices } from "./slices.ts";

export interface ReadView {
  /**
   * Holds the entries of the file. For a damaged file these are its readable entries, and those of the base for all
   * others.
   */
  readonly theirs: ReadonlyMap<string, unknown>;
  /** Counts the readable entries of a damaged file; null when the file is intact or missing. */
  readonly salvaged: number | null;
  readonly base: ReadonlyMap<string, unknown>;
  readonly changed: readonly string[];
  readonly crc: number | null;
  readonly baseCrc: number | null;
  /** Is true when another program wrote the base, and this store merged it. */
  readonly isBaseTheirs: boolean;
}

/**
 * Reads the file and its base. After an interrupted write there are two bases, and the checksum of the file shows which
 * one applies.
 */
export function* readView(files: Files, folder: AgentFolder, fingerprint: string): Generator<undefined, ReadView> {
  const view = fingerprint === "" ? null : yield* readInSteps(files, folder.sessionsJson);
  const crc = view?.crc ?? null;
  const whole = fingerprint === "" ? new Map<string, unknown>() : yield* readEntries(view?.bytes ?? null);
  const next = splitBase(yield* readInSteps(files, folder.viewNext));
  const last = splitBase(yield* readInSteps(files, folder.viewBase));
  const isWritten = next?.crc !== undefined && next.crc === crc;
  const written = yield* readEntries((isWritten ? next : last)?.entries ?? null);
  const base = written ?? new Map<string, unknown>();
  const salvaged = whole === null ? yield* salvageEntries(view?.bytes ?? Buffer.alloc(0)) : null;
  // An unreadable entry was not deleted, so the base's entry stays.
  const theirs = whole ?? new Map([...base, ...(salvaged ?? [])]);
  const changed: string[] = [];
  for (const key of new Set([...theirs.keys(), ...base.keys()])) {
    if (!isSame(theirs.get(key), base.get(key))) changed.push(key);
    yield;
  }
  const isBaseTheirs = (isWritten ? next : last)?.isTheirs === true;
  return { theirs, salvaged: salvaged?.size ?? null, base, changed, crc, baseCrc: last?.crc ?? null, isBaseTheirs };
}

interface ReadFile {
  readonly bytes: Uint8Array;
  readonly crc: number;
}

const stepBytes = 1024 * 1024;

function* readInSteps(files: Files, path: string): Generator<undefined, ReadFile | null> {
  const handle = openIfThere(files, path);
  if (handle === null) return null;
  try {
    // One buffer holds the whole file, because joining parts would take as long as reading some of them.
    const bytes = Buffer.allocUnsafe(files.factsOf(handle).sizeBytes);
    let crc = 0;
    let filled = 0;
    while (filled < bytes.length) {
      const wanted = bytes.subarray(filled, filled + stepBytes);
      const count = withFileErrors(path, () => files.read(handle, wanted, filled));
      if (count === 0) break;
      crc = crc32(wanted.subarray(0, count), crc);
      filled += count;
      yield;
    }
    return { bytes: bytes.subarray(0, filled), crc };
  } finally {
    files.close(handle);
  }
}

export function crcOfBase(files: Files, path: string): number | null {
  const handle = openIfThere(files, path);
  if (handle === null) return null;
  try {
    const [line = ""] = Buffer.from(readRange(files, handle, 0, maxFirstLineBytes))
      .toString()
      .split("\n", 1);
    const crc = parseObject(line)?.["crc"];
    return typeof crc === "number" ? crc : null;
  } finally {
    files.close(handle);
  }
}

const maxFirstLineBytes = 256;

function splitBase(read: ReadFile | null): SplitBase | null {
  if (read === null) return null;
  const { bytes } = read;
  const end = bytes.indexOf(0x0a);
  const first = parseObject(Buffer.from(bytes.subarray(0, Math.max(0, end))).toString());
  const crc = first?.["crc"];
  // Older versions wrote no such line. Their base has the same bytes as sessions.json, so its checksum identifies the
  // file.
  if (typeof crc !== "number") return { crc: read.crc, entries: bytes, isTheirs: false };
  return { crc, entries: bytes.subarray(end + 1), isTheirs: first?.["theirs"] === true };
}

interface SplitBase {
  readonly crc: number;
  readonly entries: Uint8Array;
  readonly isTheirs: boolean;
}

function* readEntries(bytes: Uint8Array | null): Generator<undefined, ReadonlyMap<string, unknown> | null> {
  if (bytes === null) return null;
  const entries = new Map<string, unknown>();
  try {
    for (const [key, entry] of jsonMembers(bytes)) {
      entries.set(key, entry);
      yield;
    }
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  return entries;
}

export function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

const lineFeed = 0x0a;

/**
 * Yields the readable entries of a damaged sessions.json. These are the entries before the damage, and later ones on
 * lines of their own, as OpenClaw and this store write them. A value that may be truncated does not count.
 */
function* salvageEntries(bytes: Uint8Array): Generator<undefined, ReadonlyMap<string, unknown>> {
  const entries = new Map<string, unknown>();
  const take = (member: Uint8Array): void => {
    try {
      for (const [key, value] of jsonMembers(member))
        if (typeof value === "object" && value !== null && !Array.isArray(value) && !entries.has(key))
          entries.set(key, value);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  };
  take(bytes);
  for (const member of membersByLines(bytes)) {
    take(member);
    yield;
  }
  return entries;
}

const maxStartBytes = 2048;

function* membersByLines(bytes: Uint8Array): Generator<Uint8Array> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let start = -1;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf(lineFeed, at);
    const behind = end === -1 ? text.length : end;
    // A line of an entry may be very long, as with a skills snapshot. Only short lines matter here.
    const line = behind - at > maxStartBytes ? "" : text.toString("utf8", at, behind);
    if (line.startsWith('  "') && line.endsWith('": {')) start = at;
    else if (start !== -1 && (line === "  }" || line === "  },")) {
      yield Buffer.concat([Buffer.from("{"), text.subarray(start, at), Buffer.from("}}")]);
      start = -1;
    }
    at = behind + 1;
  }
}

export interface ViewText {
  readonly parts: readonly Uint8Array[];
  readonly crc: number;
}

/** Builds the text of sessions.json. Own properties are used, so a key such as `__proto__` is not special. */
export async function viewText(entries: ReadonlyMap<string, unknown>, slices: Slices): Promise<ViewText> {
  const parts: Uint8Array[] = [];
  let crc = 0;
  const add = (text: string): void => {
    const bytes = Buffer.from(text);
    crc = crc32(bytes, crc);
    parts.push(bytes);
  };
  let text = "";
  let count = 0;
  for (const [key, entry] of entries) {
    text += `${count++ === 0 ? "{\n" : ",\n"}${memberText(key, entry)}`;
    // A pause is checked for every entry, because entries may be large and the check is cheap.
    await slices.next();
    if (text.length < partLength) continue;
    add(text);
    text = "";
  }
  add(count === 0 ? "{}\n" : `${text}\n}\n`);
  return { parts, crc };
}

const partLength = 64 * 1024;

function memberText(key: string, entry: unknown): string {
  if (entry instanceof DeepJson) return `  ${JSON.stringify(key)}: ${entry.text}`;
  return JSON.stringify(Object.fromEntries([[key, entry]]), null, 2).slice(2, -2);
}
