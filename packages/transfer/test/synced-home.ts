import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { listSessions } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { ImportSource } from "../src/import-types.ts";
import { SourceSync, type SourceSyncOptions } from "../src/sync/source-sync.ts";
import { fixtureFolder, type FixtureFolder } from "./fixture-folder.ts";

export function idOf(at: number): string {
  return `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
}

export function line(id: string, at: number, text: string, fields: object = {}): string {
  const uuid = `${id.slice(0, -4)}${String(at).padStart(4, "0")}`.replace("4000-8000", "4001-8001");
  const content = { parentUuid: null, isSidechain: false, userType: "external", cwd: "/srv/app", sessionId: id };
  const message = { role: "user", content: text };
  return `${JSON.stringify({ ...content, version: "2.0.0", type: "user", message, uuid, timestamp: "2026-01-01T00:00:00.000Z", ...fields })}\n`;
}

/** A home with sessions of Claude Code, written long enough ago that no tick of a clock hides a change. */
export class Home implements Disposable {
  readonly folder: FixtureFolder = fixtureFolder();
  readonly store: SessionStore = createSqliteStore({ path: this.folder.at("sessions.db") });
  readonly notes: string[] = [];
  nowMs: number = Date.now() + 60_000;

  get places(): string {
    return this.folder.at(".claude", "projects");
  }

  get memory(): string {
    return this.folder.at("home", "synced-files.jsonl");
  }

  path(at: number, project: string = "-srv-app"): string {
    return join(this.places, project, `${idOf(at)}.jsonl`);
  }

  write(at: number, text: string = `words ${at}`, fields: object = {}): string {
    const path = this.path(at);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, line(idOf(at), 1, text, fields));
    return path;
  }

  sync(options: Partial<SourceSyncOptions> = {}): SourceSync {
    return new SourceSync({
      openStore: () => Promise.resolve(this.store),
      places: () => [this.places],
      options: {},
      userHome: this.folder.path,
      memoryPath: this.memory,
      identity: "one",
      clock: { nowMs: () => this.nowMs, sleep: () => Promise.resolve() },
      onNote: (note) => void this.notes.push(note),
      ...options,
    });
  }

  /** Syncs as a process of its own does: with the memory that an earlier one left. */
  async pass(
    options: Partial<SourceSyncOptions> = {},
  ): Promise<{ states: string[]; unchanged: number; sources: ImportSource[] }> {
    await using sync = this.sync(options);
    const sources = await Array.fromAsync(sync.pass());
    return { states: sources.map(({ state }) => state), unchanged: sync.unchanged, sources };
  }

  async texts(): Promise<readonly string[]> {
    const texts: string[] = [];
    for await (const { ref } of listSessions(this.store, { state: "any", sort: "key" }))
      for await (const page of this.store.read(ref))
        for (const { record } of page.records)
          texts.push(String((record["message"] as { content?: unknown } | undefined)?.content));
    return texts.toSorted();
  }

  [Symbol.dispose](): void {
    void this.store.close();
    this.folder[Symbol.dispose]();
  }
}
