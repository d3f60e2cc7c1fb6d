import type { Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { createHash } from "node:crypto";
import type { StoredRecord, Usage } from "@throughline/core";
import {
  providerMappings,
  type AssistantTurn,
  type ProviderRules,
  type ReplayResult,
  type ReplayTurn,
} from "@throughline/history/internal";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";
import { uuidOf } from "../made-ids.ts";
import { detailsOf, timeOf, WrittenConversation, type TurnOrigin } from "../write-conversation.ts";
import { LossLog } from "../write-losses.ts";
import { isUnsentText } from "./gemini-messages.ts";

export const geminiWriter: FormatWriter = {
  writesHistory: true,
  *write(session, options) {
    for (const line of new GeminiLines(session, options).all())
      yield line === undefined ? undefined : `${JSON.stringify(line)}\n`;
  },
  sessionId: ({ sessionId }) => uuidOf("gemini", sessionId),
  path: ({ sessionId, cwd, createdAtMs, projectFolder }) => {
    const time = new Date(createdAtMs).toISOString().slice(0, 16).replaceAll(":", "-");
    // Older versions named a folder by the hash, and the program migrates such a folder.
    const folder = projectFolder ?? hashOf(cwd);
    return [".gemini", "tmp", folder, "chats", `session-${time}-${sessionId.slice(0, 8)}.jsonl`];
  },
  projectNotes: { folders: [".gemini", "tmp"], file: ".project_root" },
};

const gemini = providerMappings.gemini({});

/** The program merges messages itself, and signs calls that lost their signature. */
const rules: ProviderRules = {
  ...gemini.rules,
  mergesUsers: false,
  mergesReplies: false,
  beginsWithUser: false,
  trailingAssistant: () => "keep",
  callSignature: () => null,
};

/** The reply stays open, because later results complete its calls. */
interface OpenReply {
  readonly line: Fields;
  readonly calls: readonly Fields[];
}

class GeminiLines {
  readonly #session: WrittenSession;
  readonly #losses: LossLog;
  readonly #conversation: WrittenConversation;
  #timestamp: string;
  #open: OpenReply | null = null;
  #madeCount = 0;

  constructor(session: WrittenSession, { onLoss }: WriteOptions) {
    this.#session = session;
    this.#losses = new LossLog(onLoss);
    this.#conversation = new WrittenConversation(session, rules, this.#losses, { replacesReplies: true });
    this.#timestamp = new Date(session.createdAtMs).toISOString();
  }

  *all(): Generator<Fields | undefined> {
    if (this.#session.writtenSeq === undefined) yield this.#header();
    for (const part of this.#conversation.wholeBranch()) {
      if (part === undefined) yield;
      else if (part.kind === "turn") yield* this.#turn(part.turn);
      else yield* this.#checkpoint(part.stored, part.kind === "compaction" ? part.keptIds : []);
    }
    yield* this.#closeReply();
  }

  #header(): Fields {
    const { sessionId, cwd, label, title } = this.#session;
    const summary = label ?? title;
    return {
      sessionId,
      projectHash: hashOf(cwd),
      startTime: this.#timestamp,
      lastUpdated: this.#timestamp,
      kind: "main",
      ...(summary === null ? {} : { summary }),
    };
  }

  *#turn(turn: ReplayTurn): Generator<Fields> {
    const origin = this.#conversation.originOf(turn.recordId);
    if (turn.role === "assistant") {
      yield* this.#closeReply();
      this.#timestamp = timeOf(origin?.stored, this.#timestamp);
      this.#openReply(turn, origin);
      return;
    }
    if (turn.role === "user") for (const result of turn.results) yield* this.#result(result);
    yield* this.#closeReply();
    this.#timestamp = timeOf(origin?.stored, this.#timestamp);
    if (turn.role === "user" && turn.blocks.length === 0) return;
    const { message = null } = origin ?? {};
    if (message !== null && message.role !== "user")
      this.#losses.tell("changed", `${message.role} as user text`, origin);
    const parts = userParts(turn);
    if (isUnsentText(parts)) this.#losses.tell("left-out", "message that the program takes for a command", origin);
    yield this.#message("user", turn.recordId, { content: parts });
  }

  #openReply(turn: AssistantTurn, origin: TurnOrigin | null): void {
    const message = origin?.message?.role === "assistant" ? origin.message : null;
    if (message !== null && message.provider !== null && message.provider !== "google")
      this.#losses.tell("changed", "provider of a reply", origin);
    const { model = null, usage = null } = message ?? {};
    const calls = turn.blocks.flatMap((block) =>
      block.type === "toolCall"
        ? [{ id: block.id, name: block.name, args: block.arguments, status: "success", timestamp: this.#timestamp }]
        : [],
    );
    const line = this.#message("gemini", turn.recordId, {
      content: replyParts(turn),
      thoughts: [],
      tokens: usage === null ? null : tokensOf(usage),
      ...(model === null ? {} : { model }),
    });
    this.#open = { line, calls };
  }

  /**
   * A result belongs into the reply with its call. When the file already holds that reply, the result becomes a message
   * of its own.
   */
  *#result(result: ReplayResult): Generator<Fields> {
    const origin = this.#conversation.originOf(result.recordId);
    this.#timestamp = timeOf(origin?.stored, this.#timestamp);
    if (detailsOf(origin) !== undefined) this.#losses.tell("left-out", "details of a result", origin);
    const { callId, isError } = result;
    const answered = {
      status: isError ? "error" : "success",
      result: responseParts(result),
      timestamp: this.#timestamp,
    };
    const open = this.#open;
    if (open !== null) {
      const calls = open.calls.map((call) => (call["id"] === callId ? { ...call, ...answered } : call));
      this.#open = { ...open, calls };
      return;
    }
    yield this.#message("user", result.recordId, { content: responseParts(result) });
  }

  *#closeReply(): Generator<Fields> {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    yield open.calls.length === 0 ? open.line : { ...open.line, toolCalls: open.calls };
  }

  /**
   * The list of messages replaces the conversation: first the summary in the program's form, then the kept messages.
   */
  *#checkpoint(stored: StoredRecord, keptIds: readonly string[]): Generator<Fields | undefined> {
    yield* this.#closeReply();
    this.#timestamp = timeOf(stored, this.#timestamp);
    const summary = stored.type === "compaction" ? asText(stored.record["summary"]) : "";
    const messages: Fields[] =
      summary === "" ? [] : [this.#message("user", stored.id, { content: [{ text: summary }] })];
    const kept = keptIds.length === 0 ? [] : yield* this.#conversation.keptTurns(stored.id);
    for (const turn of kept) messages.push(...this.#turn(turn));
    messages.push(...this.#closeReply());
    yield { $set: { messages, lastUpdated: this.#timestamp } };
  }

  #message(type: "user" | "gemini", recordId: string | null, fields: Fields): Fields {
    this.#madeCount += 1;
    const id = uuidOf(this.#session.sessionId, recordId ?? `made ${this.#madeCount}`, type);
    return { id, timestamp: this.#timestamp, type, ...fields };
  }
}

/** The program finds the answer to a call by the call's id, which the provider does not need. */
function replyParts(turn: AssistantTurn): readonly Fields[] {
  return partsOf(turn).map((part, index) => {
    const block = turn.blocks[index];
    if (block?.type !== "toolCall") return part;
    return { ...part, functionCall: { id: block.id, ...(part["functionCall"] as Fields) } };
  });
}

function responseParts(result: ReplayResult): readonly Fields[] {
  const turn = { role: "user" as const, recordId: null, results: [result], blocks: [] };
  return partsOf(turn).map((part) => ({
    functionResponse: { id: result.callId, ...(part["functionResponse"] as Fields) },
  }));
}

function userParts(turn: Exclude<ReplayTurn, AssistantTurn>): readonly Fields[] {
  return partsOf(turn.role === "user" ? { ...turn, results: [] } : turn);
}

function partsOf(turn: ReplayTurn): readonly Fields[] {
  return gemini.turn(turn).flatMap(({ parts }) => parts);
}

function tokensOf({ input, output, cacheRead, cacheWrite, reasoning = 0 }: Usage): Fields {
  const prompt = input + cacheRead + cacheWrite;
  return {
    input: prompt,
    output: output - reasoning,
    cached: cacheRead,
    thoughts: reasoning,
    tool: 0,
    total: prompt + output,
  };
}

function hashOf(cwd: string): string {
  return createHash("sha256").update(cwd).digest("hex");
}
