import { crc32 } from "node:zlib";
import type { AgentFolder } from "./agent-folder.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { jsonMembers } from "./json-members.ts";
import { salvageEntries } from "./salvage-entries.ts";
import { parseObject } from "./stored-line.ts";

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
