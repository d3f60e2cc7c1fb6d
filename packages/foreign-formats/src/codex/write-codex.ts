import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { StoredRecord, Usage } from "@throughline/core";
import {
  providerMappings,
  type AssistantTurn,
  type ProviderRules,
  type ReplayResult,
  type ReplayTurn,
} from "@throughline/history/internal";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";
import { timedUuidOf } from "../made-ids.ts";
import { detailsOf, timeOf, WrittenConversation, type TurnOrigin } from "../write-conversation.ts";
import { LossLog } from "../write-losses.ts";

/** The lines have the form of this version, so they state it. */
const writtenVersion = "0.128.0";

export const codexWriter: FormatWriter = {
  writesHistory: true,
  *write(session, options) {
    for (const line of new CodexLines(session, options).all())
      yield line === undefined ? undefined : `${JSON.stringify(line)}\n`;
  },
  sessionId: ({ sessionId, createdAtMs }) => timedUuidOf(createdAtMs, sessionId),
  path: ({ sessionId, createdAtMs }) => {
    const time = new Date(createdAtMs).toISOString().slice(0, 19);
    const [date = ""] = time.split("T");
    return ["sessions", ...date.split("-"), `rollout-${time.replaceAll(":", "-")}-${sessionId}.jsonl`];
  },
  nameList: {
    file: "session_index.jsonl",
    line: ({ sessionId, name, atMs }) =>
      `${JSON.stringify({ id: sessionId, thread_name: name, updated_at: new Date(atMs).toISOString() })}\n`,
  },
};

const responses = providerMappings["openai-responses"]({});

const rules: ProviderRules = {
  ...responses.rules,
  // Codex stores reasoning without the id that the provider gave it.
  carryThinking: ({ signature }) => (reasoningItem(signature) === null ? null : { itemId: null }),
};

class CodexLines {
  readonly #session: WrittenSession;
  readonly #losses: LossLog;
  readonly #conversation: WrittenConversation;
  /** The arguments of these calls are plain text instead of JSON. */
  readonly #customCalls = new Set<string>();
  #timestamp: string;
  #provider: string;
  #model: string | null = null;
  #turnId: string | null = null;
  #lastText: string | null = null;
  #turnCount = 0;
  #totals = { input: 0, cached: 0, output: 0, reasoning: 0 };

  constructor(session: WrittenSession, { onLoss }: WriteOptions) {
    this.#session = session;
    this.#losses = new LossLog(onLoss);
    this.#conversation = new WrittenConversation(session, rules, this.#losses);
    this.#timestamp = new Date(session.createdAtMs).toISOString();
    this.#provider = firstProvider(session.records) ?? "openai";
    if (session.writtenSeq !== undefined) this.#continueFile(session.records, session.writtenSeq);
  }

  *all(): Generator<Fields | undefined> {
    if (this.#session.writtenSeq === undefined) yield this.#header();
    // Codex stores names in an index of its own, which an export does not write.
    if (this.#session.label !== null && this.#session.writtenSeq === undefined)
      this.#losses.tell("left-out", "name of the session", null);
    for (const part of this.#conversation.wholeBranch()) {
      if (part === undefined) yield;
      else if (part.kind === "turn") yield* this.#turn(part.turn);
      else yield* this.#compaction(part.stored, part.kind === "compaction" ? part.keptIds : []);
    }
    yield* this.#endTurn();
  }

  /** The totals and the model continue from those of the file. */
  #continueFile(records: readonly StoredRecord[], writtenSeq: number): void {
    for (const { seq, type, record } of records) {
      if (seq > writtenSeq) break;
      if (type === "model_change") this.#model = asText(record["modelId"]);
      const native = record["native"];
      const info = type === "usage" && isFields(native) ? native["info"] : null;
      const totals = isFields(info) ? info["total_token_usage"] : null;
      if (isFields(totals)) this.#totals = totalsOf(totals);
    }
  }

  #header(): Fields {
    const { sessionId, cwd, createdAtMs } = this.#session;
    const timestamp = new Date(createdAtMs).toISOString();
    return this.#line("session_meta", {
      id: sessionId,
      timestamp,
      cwd,
      originator: "throughline",
      cli_version: writtenVersion,
      source: "cli",
      model_provider: this.#provider,
    });
  }

  *#turn(turn: ReplayTurn): Generator<Fields> {
    const origin = this.#conversation.originOf(turn.recordId);
    this.#timestamp = timeOf(origin?.stored, this.#timestamp);
    if (turn.role === "system") return yield* this.#items(turn);
    if (turn.role === "assistant") return yield* this.#reply(turn, origin);
    for (const result of turn.results) yield this.#result(result);
    if (turn.blocks.length === 0) return;
    const isTyped = origin?.message?.role === "user";
    if (isTyped) yield* this.#beginTurn(origin.stored.id);
    if (origin?.message !== null && origin !== null && !isTyped)
      this.#losses.tell("changed", `${origin.message.role} as user text`, origin);
    const [item] = responses.turn({ ...turn, results: [] });
    if (item !== undefined) yield this.#line("response_item", item as Fields);
    if (isTyped) {
      const text = turn.blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n");
      yield this.#line("event_msg", { type: "user_message", message: text, images: [] });
    }
  }

  /** Codex reads the events around a turn for its list of sessions and for rollbacks. */
  *#beginTurn(recordId: string): Generator<Fields> {
    yield* this.#endTurn();
    this.#turnCount += 1;
    this.#turnId = timedUuidOf(Date.parse(this.#timestamp), this.#session.sessionId, recordId, asText(this.#turnCount));
    yield this.#line("event_msg", { type: "task_started", turn_id: this.#turnId, model_context_window: null });
    yield* this.#settings(this.#model ?? firstModel(this.#session.records));
  }

  *#settings(model: string | null): Generator<Fields> {
    if (model === null) return;
    this.#model = model;
    const turn = this.#turnId === null ? {} : { turn_id: this.#turnId };
    yield this.#line("turn_context", {
      ...turn,
      cwd: this.#session.cwd,
      approval_policy: "on-request",
      sandbox_policy: { type: "workspace-write" },
      model,
      summary: "auto",
    });
  }

  *#endTurn(): Generator<Fields> {
    if (this.#turnId === null) return;
    const ended = { type: "task_complete", turn_id: this.#turnId, last_agent_message: this.#lastText };
    this.#turnId = null;
    this.#lastText = null;
    yield this.#line("event_msg", ended);
  }

  *#reply(turn: AssistantTurn, origin: TurnOrigin | null): Generator<Fields> {
    const message = origin?.message?.role === "assistant" ? origin.message : null;
    if (message?.model !== null && message?.model !== undefined && message.model !== this.#model)
      yield* this.#settings(message.model);
    if (message?.provider !== null && message?.provider !== undefined && message.provider !== this.#provider)
      this.#losses.tell("changed", "provider of a reply", origin);
    const calls = customCallsOf(origin?.stored);
    for (const block of turn.blocks) {
      if (block.type === "text") {
        this.#lastText = block.text;
        yield this.#line("event_msg", { type: "agent_message", message: block.text });
        const content = [{ type: "output_text", text: block.text }];
        yield this.#line("response_item", { type: "message", role: "assistant", content });
      } else if (block.type === "toolCall") yield this.#call(block, calls);
      else if (block.type === "thinking") {
        const item = reasoningItem(block.signature);
        if (item !== null) yield this.#line("response_item", item);
      }
    }
    if (message?.usage !== null && message?.usage !== undefined) yield this.#usage(message.usage);
  }

  #call(block: Extract<AssistantTurn["blocks"][number], { readonly type: "toolCall" }>, isCustom: boolean): Fields {
    const { id, name, arguments: given } = block;
    const { input } = given;
    if (isCustom && typeof input === "string") {
      this.#customCalls.add(id);
      return this.#line("response_item", { type: "custom_tool_call", status: "completed", call_id: id, name, input });
    }
    const item = { type: "function_call", name, arguments: JSON.stringify(given), call_id: id };
    return this.#line("response_item", item);
  }

  #result(result: ReplayResult): Fields {
    const origin = this.#conversation.originOf(result.recordId);
    this.#timestamp = timeOf(origin?.stored, this.#timestamp);
    if (detailsOf(origin) !== undefined) this.#losses.tell("left-out", "details of a result", origin);
    if (result.isError) this.#losses.tell("changed", "failed result as text", origin);
    const turn = { role: "user", recordId: null, results: [result], blocks: [] } as const;
    const [item] = responses.turn({ ...turn, results: [...turn.results], blocks: [] });
    const isCustom = this.#customCalls.delete(result.callId);
    const type = isCustom ? "custom_tool_call_output" : "function_call_output";
    return this.#line("response_item", { ...(item as Fields), type });
  }

  *#items(turn: ReplayTurn): Generator<Fields> {
    for (const item of responses.turn(turn)) {
      const given = item as Fields;
      yield this.#line("response_item", given["role"] === "system" ? { ...given, role: "developer" } : given);
    }
  }

  /** The summary comes first among the items that replace the conversation, and the kept items follow. */
  *#compaction(stored: StoredRecord, keptIds: readonly string[]): Generator<Fields | undefined> {
    yield* this.#endTurn();
    this.#timestamp = timeOf(stored, this.#timestamp);
    const isCompaction = stored.type === "compaction";
    const summary = isCompaction ? asText(stored.record["summary"]) : "";
    const kept = keptIds.length === 0 ? [] : yield* this.#conversation.keptTurns(stored.id);
    const summaryItem = { type: "message", role: "user", content: [{ type: "input_text", text: summary }] };
    const items = kept.flatMap((turn) => responses.turn(turn) as readonly Fields[]);
    const replacement = [...(summary === "" ? [] : [summaryItem]), ...items.map(storedItem)];
    yield this.#line("compacted", { message: summary, replacement_history: replacement });
  }

  #usage({ input, output, cacheRead, cacheWrite, reasoning = 0 }: Usage): Fields {
    const before = this.#totals;
    const prompt = input + cacheRead + cacheWrite;
    const last = { input: prompt, cached: cacheRead, output, reasoning };
    this.#totals = {
      input: before.input + last.input,
      cached: before.cached + last.cached,
      output: before.output + last.output,
      reasoning: before.reasoning + last.reasoning,
    };
    const info = {
      total_token_usage: counts(this.#totals),
      last_token_usage: counts(last),
      model_context_window: null,
    };
    return this.#line("event_msg", { type: "token_count", info, rate_limits: null });
  }

  #line(type: string, payload: Fields): Fields {
    return { timestamp: this.#timestamp, type, payload };
  }
}

/** Codex stores a reply's text as a part, while a request holds it as plain text. */
function storedItem(item: Fields): Fields {
  const { role, content } = item;
  if (role !== "assistant" || typeof content !== "string") return item;
  return { ...item, content: [{ type: "output_text", text: content }] };
}

function reasoningItem(signature: string | null): Fields | null {
  if (signature === null || !signature.startsWith("{")) return null;
  try {
    const item: unknown = JSON.parse(signature);
    const isWhole = isFields(item) && item["type"] === "reasoning" && typeof item["encrypted_content"] === "string";
    return isWhole ? item : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function customCallsOf(stored: StoredRecord | undefined): boolean {
  const native = stored?.record["native"];
  return isFields(native) && native["type"] === "custom_tool_call";
}

function firstProvider(records: readonly StoredRecord[]): string | null {
  return firstOf(records, "provider");
}

function firstModel(records: readonly StoredRecord[]): string | null {
  return firstOf(records, "model");
}

function firstOf(records: readonly StoredRecord[], field: "provider" | "model"): string | null {
  for (const { type, record } of records) {
    const message = type === "message" ? (record["message"] as Fields | null) : null;
    const value = message?.["role"] === "assistant" ? message[field] : null;
    if (typeof value === "string" && value !== "") return value;
  }
  return null;
}

interface Totals {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
}

function counts({ input, cached, output, reasoning }: Totals): Fields {
  return {
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    reasoning_output_tokens: reasoning,
    total_tokens: input + output,
  };
}

function totalsOf(totals: Fields): Totals {
  const count = (name: string): number => (typeof totals[name] === "number" ? totals[name] : 0);
  return {
    input: count("input_tokens"),
    cached: count("cached_input_tokens"),
    output: count("output_tokens"),
    reasoning: count("reasoning_output_tokens"),
  };
}
