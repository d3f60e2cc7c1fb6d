import { resolve } from "node:path";
import type * as core from "@throughline/core";
import {
  defaultStoreLimits,
  type OptionKind,
  optionKinds,
  type OptionTable,
  storeFactoryKinds,
  systemClock,
  systemRandom,
  systemRecordIds,
  tellListener,
} from "@throughline/core/internal";
import { createPayloadCoder } from "@throughline/store-kit";
import { remakeOwnFolder } from "./agent-folder.ts";
import { containedFiles } from "./contained-files.ts";
import { DescriptorRoom } from "./descriptor-room.ts";
import { nodeFiles, type Files } from "./files.ts";
import { kernelLocks, type LockPort } from "./lock-file.ts";
import { readableEntry } from "./sealed-entry.ts";
import type { SessionRow } from "./session-row.ts";
import { createSessionLocks, letGoOfIdleLocks } from "./session-lock.ts";
import type { StoreContext } from "./store-context.ts";

/** Options of `createJsonlStore`. */
export interface JsonlStoreOptions {
  /** The folder that holds `agents/`. */
  readonly root: string;
  /** False: a root that does not exist is STORE_NOT_FOUND. @default true */
  readonly create?: boolean;
  /** Around payloads and entries; a store under a codec writes no sessions.json. @default none */
  readonly codec?: core.PayloadCodec;
  /** The time that the store stamps. @default the system's clock */
  readonly clock?: core.Clock;
  /** Source of record ids. @default ids of this process */
  readonly ids?: core.RecordIds;
  /** Source of the names of writers and of temporary files. @default the system's randomness */
  readonly random?: core.RandomSource;
  /** Receives findings, created and removed sessions, and records. What it throws is ignored. @default no listener */
  readonly onEvent?: core.SessionEventListener;
  /** Whether OpenClaw's sessions.json is written. @default true up to 10,000 active sessions of an agent, false above */
  readonly sessionsJson?: boolean;
  /** Limits that differ from the default. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<core.StoreLimits>;
  /** How long a write waits for other processes, in milliseconds from 0 on; then it is STORE_LOCKED. @default 10,000 */
  readonly lockTimeoutMs?: number;
  /**
   * How many milliseconds `sessions.json`, the entries log and the index may lag behind what was appended; Infinity: until
   * `close`. @default 1000
   */
  readonly derivedDelayMs?: number;
  /** How processes exclude one another. @default `kernelLocks` */
  readonly locks?: LockPort;
  /** Whether `index.db` is kept, which makes lists flat. @default true with `kernelLocks`: SQLite's log is for one host */
  readonly index?: boolean;
  /** The folder that the header of a new session names when its entry has no `cwd`. @default that of the process */
  readonly workingDirectory?: string;
  /** The file system; another one in tests that make it fail or count its calls. @default this computer's */
  readonly files?: Files;
}

const { flag, number, objectWith, required, text } = optionKinds;

const folder: OptionKind = {
  expected: "the path of a folder",
  accepts: (value) => typeof value === "string" && value !== "" && !value.includes("\0") && value.isWellFormed(),
};

/** The kinds of the options of `createJsonlStore`. */
export const jsonlStoreTable: OptionTable<JsonlStoreOptions> = {
  ...storeFactoryKinds,
  root: required(folder),
  create: flag,
  sessionsJson: flag,
  lockTimeoutMs: number({ min: 0 }),
  derivedDelayMs: number({ min: 0 }),
  locks: objectWith("open"),
  index: flag,
  workingDirectory: text,
  files: objectWith("open", "facts", "names"),
};

/** The checked options with everything that was left out filled in. `makeRoom`: as `containedFiles`. */
export function contextOf(options: JsonlStoreOptions, limits: core.StoreLimits, makeRoom: () => void): StoreContext {
  const {
    codec,
    clock = systemClock,
    ids = systemRecordIds,
    random = systemRandom,
    onEvent,
    files: allFiles = nodeFiles,
    lockTimeoutMs = 10_000,
    derivedDelayMs = 1000,
    locks = kernelLocks,
    index = locks.isKernels,
  } = options;
  // The folder by its whole path: the process may go to another one while the store is open.
  const root = resolve(options.root);
  const files = containedFiles(allFiles, root, () => {
    makeRoom();
    letGoOfIdleLocks();
  });
  return {
    root,
    files,
    locks: createSessionLocks({
      files,
      port: locks,
      random,
      timeoutMs: lockTimeoutMs,
      remakeFolder: (folder) => remakeOwnFolder(files, folder),
    }),
    lockPort: locks,
    room: new DescriptorRoom(lockTimeoutMs),
    keepsIndex: index,
    // A header is written as it is, whatever is around payloads.
    workingDirectoryOf: (row) => (codec === undefined ? workingDirectoryOf(row, options.workingDirectory) : ""),
    derivedDelayMs,
    codec: { coder: createPayloadCoder(codec), isCoded: codec !== undefined },
    clock,
    ids,
    random,
    limits,
    maxLineBytes: Math.max(limits.recordBytes, defaultStoreLimits.recordBytes),
    writesSessionsJson: options.sessionsJson ?? null,
    emit: (event) => tellListener(onEvent, event),
  };
}

/** A header is read at one look, with the path of a fork's origin in it. */
const maxFolderLength = 1024;

function workingDirectoryOf(row: SessionRow, given: string | undefined): string {
  const stated = readableEntry(row)?.["cwd"];
  const folder = typeof stated === "string" && stated !== "" ? stated : (given ?? ownFolder());
  return folder.isWellFormed() && folder.length <= maxFolderLength ? folder : "";
}

/** Of the process; empty where somebody deleted it. */
function ownFolder(): string {
  try {
    return resolve(".");
  } catch {
    return "";
  }
}
