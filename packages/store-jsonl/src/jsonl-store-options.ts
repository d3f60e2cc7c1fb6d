import type { StoreLimits } from "@throughline/core/internal";
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
import { createPayloadCoder } from "@throughline/store-kit/internal";
import { remakeOwnFolder } from "./agent-folder.ts";
import { containedFiles } from "./contained-files.ts";
import { DescriptorRoom } from "./descriptor-room.ts";
import { nodeFiles, type Files } from "./files.ts";
import { kernelLocks, type LockPort } from "./lock-file.ts";
import { readableEntry } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";
import { createSessionLocks, letGoOfIdleLocks } from "./session-lock.ts";
import type { StoreContext } from "./store-context.ts";

/** Configures `createJsonlStore`. */
export interface JsonlStoreOptions {
  /** Names the folder that contains `agents/`. */
  readonly root: string;
  /** Decides whether a missing root is created; with false it causes STORE_NOT_FOUND. @default true */
  readonly create?: boolean | undefined;
  /** Encodes payloads and entries. A store with a codec writes no sessions.json. @default none */
  readonly codec?: core.PayloadCodec | undefined;
  /** Supplies the times that the store stamps. @default the system's clock */
  readonly clock?: core.Clock | undefined;
  /** Supplies record ids. @default ids of this process */
  readonly ids?: core.RecordIds | undefined;
  /** Supplies the names of writers and of temporary files. @default the system's randomness */
  readonly random?: core.RandomSource | undefined;
  /**
   * Receives findings, created and removed sessions, and records. The store ignores errors that it throws.
   * @default no listener
   */
  readonly onEvent?: core.SessionEventListener | undefined;
  /**
   * Decides whether OpenClaw's sessions.json is written.
   * @default true up to 10,000 active sessions of an agent, false above
   */
  readonly sessionsJson?: boolean | undefined;
  /** Overrides single limits of the store. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits> | undefined;
  /**
   * Limits how long a write waits for other processes, in milliseconds, from 0 on. After that it fails with
   * STORE_LOCKED.
   * @default 10,000
   */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * Limits how far `sessions.json`, the entries log and the index may lag behind appends, in milliseconds. Infinity
   * delays them until `close`.
   * @default 1000
   */
  readonly derivedDelayMs?: number | undefined;
  /** Supplies the locks between processes. @default `kernelLocks` */
  readonly locks?: LockPort | undefined;
  /**
   * Decides whether `index.db` is kept, which makes the time of a list independent of the number of sessions.
   * @default true with `kernelLocks`: SQLite's log is for one host
   */
  readonly index?: boolean | undefined;
  /**
   * Names the folder that the header of a new session states when its entry has no `cwd`.
   * @default that of the process
   */
  readonly workingDirectory?: string | undefined;
  /** Replaces the file system, for tests that count calls or make them fail. @default this computer's */
  readonly files?: Files | undefined;
}

const { flag, number, objectWith, required, text } = optionKinds;

const folder: OptionKind = {
  expected: "the path of a folder",
  accepts: (value) => typeof value === "string" && value !== "" && !value.includes("\0") && value.isWellFormed(),
};

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

/** SQLite's log is for the processes of one host, as locks of the kernel are. */
export function keepsIndex({ locks = kernelLocks, index = locks.isKernels }: JsonlStoreOptions): boolean {
  return index;
}

/** Fills in the defaults of the checked options. `makeRoom` works as in `containedFiles`. */
export function contextOf(options: JsonlStoreOptions, limits: StoreLimits, makeRoom: () => void): StoreContext {
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
  } = options;
  // The root is made absolute, because the process may change its working directory while the store is open.
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
    keepsIndex: keepsIndex(options),
    // A header is never encoded, so under a codec it must not reveal a path.
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

/** Limits the folder's length, because the header with it and the path of a fork's origin must fit into one read. */
const maxFolderLength = 1024;

function workingDirectoryOf(row: SessionRow, given: string | undefined): string {
  const stated = readableEntry(row)?.["cwd"];
  const folder = typeof stated === "string" && stated !== "" ? stated : (given ?? ownFolder());
  return folder.isWellFormed() && folder.length <= maxFolderLength ? folder : "";
}

/** Returns the working directory of the process, or an empty string when it was deleted. */
function ownFolder(): string {
  try {
    return resolve(".");
  } catch {
    return "";
  }
}
