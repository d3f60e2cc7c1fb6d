import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  sessionRef,
  type AgentToolResult,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createSessionTools, type SessionToolsOptions } from "../../src/session/create-session-tools.ts";

/** A store and the tools over it. */
export interface ToolFixture extends AsyncDisposable {
  readonly store: SessionStore;
  /** Runs a tool for the session with that key. */
  run(name: string, key: string | null, args?: Readonly<Record<string, unknown>>, callId?: string): Promise<ToolAnswer>;
  open(key: string, entry?: Readonly<Record<string, unknown>>): Promise<SessionRef>;
  /** Spawns by the tool and gives the child. */
  spawn(key: string, args?: Readonly<Record<string, unknown>>): Promise<SessionState>;
  say(key: string, text: string, role?: string): Promise<void>;
}

interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
  readonly reason: unknown;
  readonly details: Readonly<Record<string, unknown>>;
}

export const storeKinds: readonly (readonly [string, (folder: string) => SessionStore])[] = [
  ["memory", () => createMemoryStore()],
  ["jsonl", (folder) => createJsonlStore({ root: join(folder, "jsonl"), create: true })],
  ["sqlite", (folder) => createSqliteStore({ path: join(folder, "sessions.db") })],
];

export async function openFixture(
  open: (folder: string) => SessionStore,
  options: Partial<SessionToolsOptions> = {},
): Promise<ToolFixture> {
  const folder = await mkdtemp(join(tmpdir(), "throughline-session-tools-"));
  const store = open(folder);
  const tools = new Map(createSessionTools({ store, ...options }).map((tool) => [tool.definition.name, tool]));
  let calls = 0;
  const fixture: ToolFixture = {
    store,
    async run(name, key, args = {}, callId = `call_${++calls}`) {
      const tool = tools.get(name);
      if (tool === undefined) throw new Error(`There is no tool ${name}.`);
      const call = { signal: new AbortController().signal, callId };
      const result = await tool.run(args, key === null ? call : { ...call, ref: sessionRef({ key }) });
      const whole: AgentToolResult = typeof result === "string" ? { content: result } : result;
      const details = (whole.details ?? {}) as Readonly<Record<string, unknown>>;
      return { text: String(whole.content), isError: whole.isError === true, reason: details["reason"], details };
    },
    async open(key, entry = {}) {
      const ref = sessionRef({ key });
      const sessionId = key.replaceAll(/[^A-Za-z0-9]+/g, "-");
      await store.save(ref, { sessionId, ...entry }, { ifRevision: null });
      return ref;
    },
    async spawn(key, args = {}) {
      const { details, text, isError } = await fixture.run("sessions_spawn", key, args);
      const state = isError ? null : await store.load(sessionRef({ key: String(details["key"]) }));
      if (state === null) throw new Error(`Nothing was spawned: ${text}`);
      return state;
    },
    async say(key, text, role = "user") {
      const ofCall = role === "toolResult" ? { toolCallId: "call", toolName: "read", isError: false } : {};
      await store.append(sessionRef({ key }), [{ type: "message", message: { role, ...ofCall, content: text } }]);
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return fixture;
}

export async function recordsOf(store: SessionStore, ref: SessionRef): Promise<readonly Record<string, unknown>[]> {
  const records: Record<string, unknown>[] = [];
  for await (const page of store.read(ref)) records.push(...page.records.map(({ record }) => record));
  return records;
}
