import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  openSession,
  sessionRef,
  type Clock,
  type RecordDraft,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import { systemRandom, systemRecordIds } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { CheckpointerOptions, CheckpointWriter } from "@throughline/checkpoint";
import type { CheckpointRequest } from "../src/checkpoint-writer.ts";

export const ref: SessionRef = sessionRef({ key: "agent:main:cli:direct:home" });

export interface Place {
  open(): SessionStore;
  remove(): void;
}

/** Stores that can be opened again on what they kept. */
export const places: readonly { readonly name: string; create(): Place }[] = [
  {
    name: "memory",
    create: () => {
      const data = createMemoryData();
      return { open: () => createMemoryStore({ data }), remove: () => {} };
    },
  },
  { name: "jsonl", create: () => onDisk((directory) => createJsonlStore({ root: directory })) },
  { name: "sqlite", create: () => onDisk((directory) => createSqliteStore({ path: join(directory, "s.db") })) },
];

function onDisk(open: (directory: string) => SessionStore): Place {
  const directory = mkdtempSync(join(tmpdir(), "throughline-checkpoint-"));
  return { open: () => open(directory), remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** A clock that is moved by hand. */
export class ManualClock implements Clock {
  private atMs = 1_772_366_400_000;
  private readonly sleepers = new Set<{ readonly untilMs: number; readonly wake: () => void }>();

  nowMs(): number {
    return this.atMs;
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { untilMs: this.atMs + delayMs, wake: resolve };
      this.sleepers.add(sleeper);
      const abort = (): void => {
        this.sleepers.delete(sleeper);
        reject(new ThroughlineError("ABORTED", "woken"));
      };
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }

  move(byMs: number): void {
    this.atMs += byMs;
    for (const sleeper of this.sleepers) {
      if (sleeper.untilMs > this.atMs) continue;
      this.sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}

export interface ScriptedWriter extends CheckpointWriter {
  readonly requests: CheckpointRequest[];
}

export function writer(
  answer: string | ((request: CheckpointRequest) => ReturnType<CheckpointWriter["write"]> | string),
  name = "scripted",
): ScriptedWriter {
  const requests: CheckpointRequest[] = [];
  return {
    name,
    requests,
    write: async (request) => {
      requests.push(request);
      return typeof answer === "string" ? answer : answer(request);
    },
  };
}

export const good: string = JSON.stringify({
  summary: "They are building an importer and have settled on JSON Lines.",
  topics: ["importer", "formats"],
  keyDecisions: ["JSON Lines, because it can be appended to"],
  openQuestions: ["How are torn lines shown?"],
});

export async function begin(store: SessionStore, drafts: readonly RecordDraft[]): Promise<void> {
  await openSession(store, ref, { random: systemRandom });
  await store.append(ref, drafts);
}

export function user(text: string, more: Readonly<Record<string, unknown>> = {}): RecordDraft {
  return { type: "message", message: { role: "user", content: text, ...more } };
}

export function assistant(text: string): RecordDraft {
  return { type: "message", message: { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" } };
}

export async function checkpointsIn(store: SessionStore): Promise<readonly StoredRecord[]> {
  const found: StoredRecord[] = [];
  for await (const page of store.read(ref)) found.push(...page.records.filter(({ type }) => type === "checkpoint"));
  return found;
}

export function options(store: SessionStore, clock: Clock, writers: readonly CheckpointWriter[]): CheckpointerOptions {
  return { store, clock, ids: systemRecordIds, owner: "one", writers };
}
