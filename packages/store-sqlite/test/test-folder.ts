import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, SessionRef, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { afterEach } from "vitest";
import { runFolder } from "../../../tools/memory-folder.ts";
import { refOf } from "./append-drafts.ts";

const folders: string[] = [];

/** Where a flush costs nothing, for tests of the contract: thousands of commits, of which none meets a failing disk. */
export function quickFolder(): string {
  return runFolder() ?? tmpdir();
}

/** With a clock that stands, writes that are asked for together share a commit, however long each takes. */
export const standingClock: Clock = { ...systemClock, nowMs: () => 1_800_000_000_000 };

/** A folder that is gone after the test. */
export function testFolder(parent: string = tmpdir()): string {
  const folder = mkdtempSync(join(parent, "throughline-sqlite-"));
  folders.push(folder);
  return folder;
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export async function createSession(store: SessionStore, name: string): Promise<SessionRef> {
  await store.save(refOf(name), { sessionId: `session-${name}` }, { ifRevision: null });
  return refOf(name);
}

export async function textsOf(store: SessionStore, ref: SessionRef): Promise<unknown[]> {
  const texts: unknown[] = [];
  for await (const { records } of store.read(ref)) {
    texts.push(
      ...records.map(({ record }) => (record["message"] as { readonly content?: unknown } | undefined)?.content),
    );
  }
  return texts;
}
