// DeepSeek Harness, JSONL backend, raw lines: each append is followed by fsync. Eleven events a turn, as its loop writes them.
import { callId, turnParts, type Contender } from "./contender.ts";

interface Inspection {
  readonly events: readonly { readonly type: string }[];
}
interface Persistence {
  create(meta: unknown): Promise<void>;
  append(id: string, events: readonly unknown[]): Promise<void>;
  load(id: string): Promise<Inspection>;
}
interface Scope {
  plugin(plugin: unknown, config?: unknown): Promise<unknown>;
  readonly sessionPersistence: Persistence;
  readonly fiber: { dispose(): Promise<unknown> };
}

const messageEvents = new Set(["user/message", "assistant/message", "tool/result"]);

async function load(name: string): Promise<Record<string, unknown>> {
  return (await import(name)) as Record<string, unknown>;
}

async function scope(folder: string): Promise<Scope> {
  const [cordis, sessions, jsonl] = await Promise.all([
    load("@deepseek-ai/cordis"),
    load("@deepseek-ai/dsh-session"),
    load("@deepseek-ai/dsh-session-persistence-jsonl"),
  ]);
  const context = new (cordis["Context"] as new () => Scope)();
  await context.plugin(sessions["default"]);
  await context.plugin(jsonl["default"], { root: folder, compression: "none" });
  return context;
}

function events(index: number): readonly { readonly type: string; readonly data: unknown }[] {
  const id = callId(index);
  const model = { kind: "model", provider: "anthropic", model: "claude" };
  const step = { turn: index, step: 0 };
  const next = { turn: index, step: 1 };
  const call = { type: "tool-call", id, name: turnParts.tool, arguments: JSON.stringify(turnParts.toolInput) };
  const result = {
    type: "tool-result",
    toolCallId: id,
    content: [{ type: "text", text: turnParts.result }],
    isError: false,
  };
  const message = (part: string, role: string, content: unknown, source: unknown): unknown => ({
    id: `message-${index}-${part}`,
    role,
    content: [content],
    source,
  });
  const answer = { type: "text", text: turnParts.answer };
  return [
    { type: "turn/start", data: { turn: index } },
    { type: "step/start", data: step },
    {
      type: "user/message",
      data: message("user", "user", { type: "text", text: turnParts.question }, { kind: "user" }),
    },
    { type: "assistant/message", data: { ...step, message: message("call", "assistant", call, model) } },
    { type: "tool/call", data: { ...step, callId: id, name: call.name, arguments: call.arguments } },
    {
      type: "tool/result",
      data: { ...step, message: message("result", "user", result, { kind: "tool", callId: id }) },
    },
    { type: "step/end", data: step },
    { type: "step/start", data: next },
    { type: "assistant/message", data: { ...next, message: message("answer", "assistant", answer, model) } },
    { type: "step/end", data: next },
    { type: "turn/end", data: { turn: index, reason: { kind: "completed" } } },
  ];
}

/** Opens the store with one new session. */
export async function open(folder: string): Promise<Contender> {
  const context = await scope(folder);
  const id = "peers";
  const meta = { version: 0, id, createdAt: Date.now(), cwd: folder, delegationDepth: 0 };
  await context.sessionPersistence.create(meta);
  let seq = 0;
  return {
    turn: (index) =>
      context.sessionPersistence.append(
        id,
        events(index + 1).map((event) => ({
          ...event,
          ...(messageEvents.has(event.type) ? { surfaceOp: "append" } : {}),
          seq: seq++,
          time: Date.now(),
        })),
      ),
    async reopen() {
      const again = await scope(folder);
      const { events: stored } = await again.sessionPersistence.load(id);
      await again.fiber.dispose();
      return stored.filter(({ type }) => messageEvents.has(type)).length;
    },
    close: () => context.fiber.dispose(),
  };
}
