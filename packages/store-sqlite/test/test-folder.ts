import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionRef, SessionStore } from "@throughline/core";
import { afterEach } from "vitest";
import { refOf } from "./append-drafts.ts";

const folders: string[] = [];

/** A folder that is gone after the test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "throughline-sqlite-"));
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
