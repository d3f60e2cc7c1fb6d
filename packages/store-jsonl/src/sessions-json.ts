import { crc32 } from "node:zlib";
import type { AgentFolder } from "./agent-folder.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { DeepJson, jsonMembers, parseObject } from "./json-members.ts";
import type { Slices } from "./slices.ts";

/** sessions.json as it is, and what this store wrote there last. */
export interface ReadView {
  /** Of a damaged file: what can be read of it, and for everything else what this store wrote there last. */
  readonly theirs: ReadonlyMap<string, unknown>;
  /** How many entries of a damaged file could be read; null: the file is whole, or not there. */
  readonly salvaged: number | null;
  readonly base: ReadonlyMap<string, unknown>;
  readonly changed: readonly string[];
  readonly crc: number | null;
  readonly baseCrc: number | null;
  /** Whether the base is what another program wrote, and this store took over. */
  readonly isBaseTheirs: boolean;
}

/** The file, and what this store wrote last: the newer of two where the writing was cut off and the file shows it. */
export function* readView(files: Files, folder: AgentFolder, seenAs: string): Generator<undefined, ReadView> {
  const view = seenAs === "" ? null : yield* readInSteps(files, folder.sessionsJson);
  const crc = view?.crc ?? null;
  const whole = seenAs === "" ? new Map<string, unknown>() : yield* readEntries(view?.bytes ?? null);
  const next = splitBase(yield* readInSteps(files, folder.viewNext));
  const last = splitBase(yield* readInSteps(files, folder.viewBase));
  const isWritten = next?.crc !== undefined && next.crc === crc;
  const written = yield* readEntries((isWritten ? next : last)?.entries ?? null);
  const base = written ?? new Map<string, unknown>();
  const salvaged = whole === null ? yield* salvageEntries(view?.bytes ?? Buffer.alloc(0)) : null;
  // Nobody deleted what cannot be read.
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
    // One piece from the beginning: putting parts together would take as long as reading some of them.
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

/** Which sessions.json a base belongs to, by its first line; null when there is none, or it does not say so. */
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

/** A line that says which sessions.json it belongs to, and of its entries those that are ours. */
function splitBase(read: ReadFile | null): SplitBase | null {
  if (read === null) return null;
  const { bytes } = read;
  const end = bytes.indexOf(0x0a);
  const first = parseObject(Buffer.from(bytes.subarray(0, Math.max(0, end))).toString());
  const crc = first?.["crc"];
  // Written before there was such a line: the same bytes as sessions.json.
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
 * The readable entries of a damaged sessions.json: those before the damage, and those behind it on lines of their own,
 * as OpenClaw and this store write them. A value that may be cut off does not count.
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

/** Each member of the outermost object that begins and ends with lines of two spaces, as an object of its own. */
function* membersByLines(bytes: Uint8Array): Generator<Uint8Array> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let start = -1;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf(lineFeed, at);
    const behind = end === -1 ? text.length : end;
    // A line of an entry may be as long as a skills snapshot; those that matter here are short.
    const line = behind - at > maxStartBytes ? "" : text.toString("utf8", at, behind);
    if (line.startsWith('  "') && line.endsWith('": {')) start = at;
    else if (start !== -1 && (line === "  }" || line === "  },")) {
      yield Buffer.concat([Buffer.from("{"), text.subarray(start, at), Buffer.from("}}")]);
      start = -1;
    }
    at = behind + 1;
  }
}

/** What is to be written, in parts. */
export interface ViewText {
  readonly parts: readonly Uint8Array[];
  readonly crc: number;
}

/** By own properties: a key like `__proto__` is a key like any other. */
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
    // A pause that is not due costs nothing, and entries may be large.
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
