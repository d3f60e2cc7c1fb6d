import type { SessionStore, StoredRecord, AgentTool } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSessions, type Sessions, type SessionsOptions, type SessionTurnEvent } from "@throughline/session";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";

export const key = "agent:main:cli:direct:home";
export const modelId = "claude-sonnet-4-5";

/** A tool that says what it was given. */
export const echoTool: AgentTool = {
  definition: {
    name: "echo",
    description: "Says it again.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  run: ({ text }) => `echo: ${String(text)}`,
};

export interface Fixture {
  readonly store: SessionStore;
  readonly model: ScriptedModel;
  readonly sessions: Sessions;
  readonly events: SessionTurnEvent[];
  /** All records of the session under `key`. */
  records(): Promise<StoredRecord[]>;
}

export function createFixture(options: Partial<SessionsOptions> & { readonly script?: ScriptedModel } = {}): Fixture {
  const { script, ...given } = options;
  const model = script ?? createScriptedModel();
  const store = given.store ?? createMemoryStore();
  const events: SessionTurnEvent[] = [];
  const sessions = createSessions({
    model: { chat: model, modelId, windowTokens: 200_000 },
    system: "Be kind.",
    tools: [echoTool],
    onEvent: (event) => events.push(event),
    ...given,
    store,
  });
  return { store, model, sessions, events, records: () => allRecords(store) };
}

export async function allRecords(store: SessionStore, of: string = key): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  const ref = { namespace: "", agentId: "main", key: of };
  for await (const page of store.read(ref)) records.push(...page.records);
  return records;
}

/** What a log holds, one word a record. */
export function outline(records: readonly StoredRecord[]): string[] {
  return records.map(({ record, type }) => {
    const message = record["message"] as { role: string; stopReason?: string; isError?: boolean } | undefined;
    if (message !== undefined)
      return [message.role, message.stopReason, message.isError === true ? "error" : null].filter(Boolean).join(":");
    const data = record["data"] as { state?: string; outcome?: string; part?: number } | undefined;
    return type === "custom"
      ? `${String(record["customType"]).slice(12)}:${data?.state ?? data?.outcome ?? "part"}`
      : type;
  });
}
