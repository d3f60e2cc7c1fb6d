import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, SessionStore } from "@throughline/core";
import { systemClock, systemRandom } from "@throughline/core/internal";
import {
  createOpenclawSessions,
  type OpenclawSessions,
  type OpenclawSessionsOptions,
} from "@throughline/openclaw-compat";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";

export const storePath = "/state/agents/main/sessions/sessions.json";
export const key = "agent:main:discord:direct:7";

export interface CompatFixture extends AsyncDisposable {
  readonly store: SessionStore;
  /** Of the store's files. */
  readonly folder: string;
  readonly sessions: OpenclawSessions;
  /** The same store for another handle, with a cache and a lock of its own. */
  again(options?: Partial<OpenclawSessionsOptions>): OpenclawSessions;
}

export const storeKinds = ["memory", "jsonl", "sqlite"] as const;
export type StoreKind = (typeof storeKinds)[number];

export function openStore(kind: StoreKind, folder: string, clock: Clock = systemClock): SessionStore {
  if (kind === "jsonl") return createJsonlStore({ root: folder, create: true });
  return kind === "sqlite"
    ? createSqliteStore({ path: join(folder, "sessions.db"), create: true })
    : createMemoryStore({ clock });
}

export function compatFixture(
  kind: StoreKind = "memory",
  options: Partial<OpenclawSessionsOptions> = {},
): CompatFixture {
  const folder = mkdtempSync(join(tmpdir(), "throughline-compat-"));
  const store = openStore(kind, folder, options.clock);
  const again = (more: Partial<OpenclawSessionsOptions> = {}): OpenclawSessions =>
    createOpenclawSessions({
      store,
      stateDir: "/state",
      homeDir: "/home/u",
      clock: systemClock,
      random: systemRandom,
      ...options,
      ...more,
    });
  return {
    store,
    folder,
    sessions: again(),
    again,
    async [Symbol.asyncDispose]() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A clock that moves when told, and by as much as somebody sleeps; a sleep that can be ended lasts until it is. */
export function steppedClock(startMs = 1_790_000_000_000): Clock & { advance(ms: number): void } {
  let nowMs = startMs;
  return {
    nowMs: () => nowMs,
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        if (signal !== undefined) {
          signal.addEventListener("abort", () => reject(new Error("ended")), { once: true });
          return;
        }
        nowMs += delayMs;
        setImmediate(resolve);
      }),
    advance: (ms) => {
      nowMs += ms;
    },
  };
}
