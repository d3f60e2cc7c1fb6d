// Throughline's own stores, as the benchmarks of their packages open them.
import { join } from "node:path";
import type { RecordDraft, SessionRef, SessionStore, StoredRecord } from "../../packages/core/src/index.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { callId, turnParts, turnUsage, type Contender } from "./contender.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:peers" };
const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude", usage: turnUsage };

function drafts(index: number): RecordDraft[] {
  const id = callId(index);
  const messages: readonly unknown[] = [
    { role: "user", content: turnParts.question },
    {
      role: "assistant",
      content: [{ type: "toolCall", id, name: turnParts.tool, arguments: turnParts.toolInput }],
      ...origin,
      stopReason: "toolUse",
    },
    { role: "toolResult", toolCallId: id, toolName: turnParts.tool, content: turnParts.result, isError: false },
    { role: "assistant", content: [{ type: "text", text: turnParts.answer }], ...origin, stopReason: "stop" },
  ];
  return messages.map((message) => ({ type: "message", message }));
}

/** Every record of the session, and the context that its messages make. */
async function rebuilt(store: SessionStore): Promise<number> {
  const state = await store.load(ref);
  if (state === null) throw new Error("The session is gone.");
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return buildContext(records, { headId: state.head.headId }).messages.length;
}

/** Opens one of the stores; `durability` as in its contract. */
export async function openThroughline(
  folder: string,
  kind: "jsonl" | "sqlite" | "memory",
  durability: "process" | "disk",
): Promise<Contender> {
  const opened = (): SessionStore => {
    if (kind === "jsonl") return createJsonlStore({ root: join(folder, "store") });
    return kind === "sqlite" ? createSqliteStore({ path: join(folder, "sessions.db") }) : createMemoryStore();
  };
  const store = opened();
  await store.save(ref, { sessionId: "peers" }, { ifRevision: null });
  const options = kind === "memory" ? {} : { durability };
  return {
    turn: (index) => store.append(ref, drafts(index), options),
    async reopen() {
      const again = kind === "memory" ? store : opened();
      try {
        return await rebuilt(again);
      } finally {
        if (again !== store) await again.close();
      }
    },
    close: () => store.close(),
  };
}
