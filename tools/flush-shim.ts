import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Which flushes of a process fail, by their numbers from 1. */
export interface FailingFlushes {
  readonly from: number;
  /** @default all that follow */
  readonly until?: number;
}

/** A library for LD_PRELOAD that makes flushes fail and keeps what the disk would have. */
export interface FlushShim {
  /** Null when there is no C compiler, or no Linux. */
  readonly library: string | null;
  /** For a process whose files below `folder` are watched. */
  environment(place: FlushPlace, failing: FailingFlushes | null): Record<string, string>;
}

/** Where the files are, and where the shim keeps its copy of the disk and its list of flushes. */
export interface FlushPlace {
  readonly folder: string;
  readonly disk: string;
  readonly log: string;
}

/** Builds the library into a folder. */
export function buildFlushShim(folder: string): FlushShim {
  const library = join(folder, "flush-shim.so");
  const source = join(import.meta.dirname, "flush-shim.c");
  const compiled = ["cc", "gcc"].some(
    (compiler) => spawnSync(compiler, ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]).status === 0,
  );
  return {
    library: compiled && process.platform === "linux" ? library : null,
    environment: (place, failing) => ({
      LD_PRELOAD: library,
      FLUSH_FOLDER: place.folder,
      FLUSH_DISK: place.disk,
      FLUSH_LOG: place.log,
      ...(failing === null ? {} : { FLUSH_FROM: String(failing.from) }),
      ...(failing?.until === undefined ? {} : { FLUSH_UNTIL: String(failing.until) }),
    }),
  };
}

/** A new place below a folder. */
export function flushPlace(folder: string): FlushPlace {
  const place = { folder: join(folder, "store"), disk: join(folder, "disk"), log: join(folder, "flushes") };
  mkdirSync(place.folder, { recursive: true });
  mkdirSync(place.disk);
  return place;
}

/** What is in the folder now counts as flushed. */
export function countAsFlushed({ folder, disk }: FlushPlace): void {
  for (const { path, copy } of filesOf(folder, disk)) copyFileSync(path, copy);
}

interface WatchedFile {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** What the disk has of it, if anything. */
  readonly copy: string;
}

function filesOf(folder: string, disk: string): readonly WatchedFile[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).flatMap((name) => {
    const path = join(folder, name);
    const facts = statSync(path, { bigint: true });
    if (!facts.isFile() || name.endsWith("-shm")) return [];
    return [{ name, path, sizeBytes: Number(facts.size), copy: join(disk, `${facts.ino}-${facts.birthtimeNs}`) }];
  });
}

/** The flushes there were: the file of each, and whether it failed. */
export function flushesOf({ folder, log }: FlushPlace): { readonly file: string; readonly failed: boolean }[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [, outcome = "", path = ""] = /^\d+ (\w+) (.*)$/.exec(line) ?? [];
    return { file: relative(folder, path), failed: outcome === "failed" };
  });
}

/**
 * The failures to try in the short tier: of each file that was flushed, the first flush alone, and its last one with all
 * that follow.
 */
export function sampledFailures(flushes: readonly { readonly file: string }[]): readonly FailingFlushes[] {
  // Names of temporary files hold numbers; they are one kind.
  const kinds = flushes.map(({ file }) => file.replaceAll(/[0-9a-f]{4,}|\d+/g, "#"));
  return [...new Set(kinds)].flatMap((kind) => {
    const [first, last] = [kinds.indexOf(kind) + 1, kinds.lastIndexOf(kind) + 1];
    return [{ from: first, until: first }, { from: last }];
  });
}

/** Puts the files as a power cut would leave them into another folder. Names are taken to be on the disk. */
export function afterPowerCut({ folder, disk }: FlushPlace, target: string): void {
  for (const { name, sizeBytes, copy } of filesOf(folder, disk)) {
    const path = join(target, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, existsSync(copy) ? readFileSync(copy).subarray(0, sizeBytes) : "");
  }
}

/** Whether a text is on the disk, in whichever file. */
export function isOnDisk(disk: string, text: string): boolean {
  return readdirSync(disk).some((name) => readFileSync(join(disk, name)).includes(text));
}
