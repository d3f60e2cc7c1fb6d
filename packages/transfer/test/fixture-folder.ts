import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import type { ExportFormat } from "../src/export-types.ts";
import { exportSession, type ImportOptions, importPaths } from "@throughline/transfer";
import type { ImportSource } from "../src/import-types.ts";
import { replaceMembers } from "@throughline/test-kit";

/** A directory that goes when the test does. */
export interface FixtureFolder extends Disposable {
  readonly path: string;
  at(...names: readonly string[]): string;
  write(name: string, content: string | Uint8Array): string;
  /** Every file below, with hash, size and time of change. */
  state(): Readonly<Record<string, string>>;
}

export function fixtureFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): FixtureFolder {
  const path = mkdtempSync(join(tmpdir(), "throughline-transfer-"));
  const folder: FixtureFolder = {
    path,
    at: (...names: readonly string[]): string => join(path, ...names),
    write(name: string, content: string | Uint8Array): string {
      const file = join(path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    state: (): Readonly<Record<string, string>> => stateOf(path),
    [Symbol.dispose](): void {
      rmSync(path, { recursive: true, force: true });
    },
  };
  for (const [name, content] of Object.entries(files)) folder.write(name, content);
  return folder;
}

export function stateOf(path: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const { mtimeMs, size, mode } = statSync(file);
    found[file.slice(path.length + 1)] =
      `${createHash("sha256").update(readFileSync(file)).digest("hex")} ${size} ${mtimeMs} ${mode}`;
  }
  return found;
}

export function importAll(
  store: SessionStore,
  path: string | readonly string[],
  options: ImportOptions = {},
): Promise<ImportSource[]> {
  return Array.fromAsync(importPaths(store, typeof path === "string" ? [path] : path, options));
}

export async function exported(store: SessionStore, ref: SessionRef, to: ExportFormat): Promise<string> {
  return Buffer.concat(await Array.fromAsync(exportSession(store, ref, { to }))).toString("latin1");
}

export function refOf(source: Pick<ImportSource, "agentId" | "key">): SessionRef {
  return { namespace: "", agentId: source.agentId ?? "", key: source.key ?? "" };
}

export async function recordsOf(store: SessionStore, ref: SessionRef): Promise<SourcedRecord[]> {
  const pages = await Array.fromAsync(store.read(ref, { payload: "source" }));
  return pages.flatMap(({ records }) => records);
}

export const sessionId: string = "0b83cd1e-54ce-4a39-9089-188d2669ead4";
export const header: Readonly<Record<string, unknown>> = {
  type: "session",
  version: 3,
  id: sessionId,
  timestamp: "2026-02-01T16:10:50.414Z",
  cwd: "/home/u/project",
};

export function message(id: string, parentId: string | null, text: string = id): Record<string, unknown> {
  return {
    type: "message",
    id,
    parentId,
    timestamp: "2026-02-01T16:10:51.000Z",
    message: { role: "user", content: text },
  };
}

/** One JSON value a line; texts as they are. */
export function jsonLines(...values: readonly unknown[]): string {
  return values.map((value) => `${typeof value === "string" ? value : JSON.stringify(value)}\n`).join("");
}

/** A store that fails every append after so many, as a process that was killed between two commits leaves it. */
export function failingAfter(store: SessionStore, appends: number): SessionStore {
  let left = appends;
  return replaceMembers(store, {
    append: (...given) => (left-- <= 0 ? Promise.reject(new Error("killed")) : store.append(...given)),
  });
}
