import { asText } from "../as-text.ts";
import { isFields, type Fields } from "@throughline/core/internal";
import type { StoredRecord, Usage } from "@throughline/core";
import {
  type AssistantTurn,
  providerMappings,
  type ProviderRules,
  type ReplayResult,
  type ReplayTurn,
  type ReplayUserBlock,
} from "@throughline/history/internal";
import { walkBranch } from "@throughline/history";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";
import { isUuid, uuidOf } from "../made-ids.ts";
import { detailsOf, timeOf, WrittenConversation, type TurnOrigin } from "../write-conversation.ts";
import { LossLog } from "../write-losses.ts";

/** The lines have the form of this version, so they state it. */
const writtenVersion = "2.1.274";

export const claudeCodeWriter: FormatWriter = {
  writesHistory: true,
  *write(session, options) {
    for (const line of new ClaudeCodeLines(session, options).all())
      yield line === undefined ? undefined : `${JSON.stringify(line)}\n`;
  },
  sessionId: ({ sessionId }) => uuidOf(sessionId),
  path: ({ sessionId, cwd }) => {
    const folder = projectFolder(cwd);
    // For a longer name, the program keeps the beginning and appends a hash of its own. The path is then unknown here.
    return folder.length > longestFolder ? null : ["projects", folder, `${sessionId}.jsonl`];
  },
  nameIn: ({ customType, data }) => {
    const field = customType === "claude-code.custom-title" ? "customTitle" : "agentName";
    const isName = field === "customTitle" || customType === "claude-code.agent-name";
    const name = isName && isFields(data) ? data[field] : null;
    return typeof name === "string" ? name.trim() : null;
  },
};

/** Claude Code replaces every character except ASCII letters and digits with a hyphen. */
function projectFolder(cwd: string): string {
  const name = cwd.replace(/[^A-Za-z0-9]/g, "-");
  return name === "" ? "-" : name;
}

const longestFolder = 200;

const anthropic = providerMappings.anthropic({}).rules;

/**
 * Claude Code merges messages and repairs the beginning itself when it builds a request. The lines therefore stay as
 * they are in the log.
 */
const rules: ProviderRules = {
  ...anthropic,
  mergesUsers: false,
  mergesReplies: false,
  beginsWithUser: false,
  trailingAssistant: () => "keep",
};

const stopReasons: ReadonlyMap<unknown, string> = new Map([
  ["stop", "end_turn"],
  ["toolUse", "tool_use"],
  ["length", "max_tokens"],
]);

/** No person typed messages of these roles, so their lines are marked as `isMeta`. */
const programRoles: ReadonlySet<unknown> = new Set(["custom", "system"]);

/** Creates the lines of a session, and maps them to their records. */
export class ClaudeCodeLines {
  /** Maps each line's uuid to the last record of the line. A line without a record has no entry. */
  readonly lastRecords: Map<string, string> = new Map();
  readonly #session: WrittenSession;
  readonly #losses: LossLog;
  readonly #conversation: WrittenConversation;
  /** A compaction names kept messages by uuid, so the map gives the line's uuid for a record id. */
  readonly #uuids = new Map<string, string>();
  readonly #callLines = new Map<string, string>();
  #parentUuid: string | null;
  #timestamp: string;

  constructor(session: WrittenSession, { onLoss }: WriteOptions) {
    this.#session = session;
    this.#losses = new LossLog(onLoss);
    this.#conversation = new WrittenConversation(session, rules, this.#losses);
    this.#timestamp = new Date(session.createdAtMs).toISOString();
    for (const { seq, id } of session.records) {
      if (seq > (session.writtenSeq ?? 0)) break;
      this.#uuids.set(id, id);
    }
    this.#parentUuid = session.writtenSeq === undefined ? null : this.#lastOfFile();
  }

  *all(): Generator<Fields | undefined> {
    yield* this.#names();
    for (const part of this.#conversation.wholeBranch()) {
      if (part === undefined) yield;
      else if (part.kind === "turn") yield* this.#turn(part.turn);
      else if (part.kind === "reset") this.#parentUuid = null;
      else yield* this.#compaction(part.stored, part.keptIds);
    }
  }

  /** New lines continue from this line of the file. */
  #lastOfFile(): string | null {
    const { records, headId, writtenSeq = 0 } = this.#session;
    const isLine = (stored: StoredRecord): boolean => stored.seq <= writtenSeq && isUuidLine(stored);
    const stored = walkBranch(records, headId).path.findLast(isLine);
    return stored?.id.replace(/~d\d{1,9}$/, "") ?? null;
  }

  *#names(): Generator<Fields> {
    const { sessionId, label, title, writtenSeq } = this.#session;
    if (label !== null) yield { type: "custom-title", customTitle: label, sessionId };
    if (writtenSeq !== undefined) return;
    if (title !== null) yield { type: "ai-title", aiTitle: title, sessionId };
  }

  *#turn(turn: ReplayTurn): Generator<Fields> {
    const origin = this.#conversation.originOf(turn.recordId);
    if (turn.role === "assistant") return yield this.#reply(turn, origin);
    if (turn.role === "system")
      return yield this.#user([{ type: "text", text: turn.text }], origin, { isProgram: true });
    for (const result of turn.results) yield this.#result(result);
    if (turn.blocks.length > 0) {
      const isProgram = programRoles.has(origin?.message?.role);
      yield this.#user(turn.blocks, origin, { isProgram });
    }
  }

  #user(
    blocks: readonly ReplayUserBlock[],
    origin: TurnOrigin | null,
    { isProgram }: { readonly isProgram: boolean },
  ): Fields {
    const [only] = blocks;
    const isText = blocks.length === 1 && only?.type === "text";
    const content = isText ? only.text : blocks.map(userBlock);
    if (origin !== null) this.#tellRole(origin);
    return this.#line("user", origin, {
      message: { role: "user", content },
      ...(isProgram ? { isMeta: true } : {}),
    });
  }

  #reply(turn: AssistantTurn, origin: TurnOrigin | null): Fields {
    const message = origin?.message?.role === "assistant" ? origin.message : null;
    const { model = null, responseId = null, stopReason = null } = message ?? {};
    if (message !== null && message.provider !== null && message.provider !== "anthropic")
      this.#losses.tell("changed", "provider of a reply", origin);
    if (model === null) this.#losses.tell("made", "model of a reply", origin);
    const own = origin === null ? this.#uuidOfMade() : uuidOf(this.#session.sessionId, origin.stored.id);
    const id = responseId ?? `throughline_${own}`;
    const line = this.#line("assistant", origin, {
      message: {
        model: model ?? "<synthetic>",
        id,
        type: "message",
        role: "assistant",
        content: turn.blocks.map(replyBlock),
        stop_reason: stopReasons.get(stopReason) ?? null,
        stop_sequence: null,
        usage: usageOf(message?.usage ?? null),
      },
    });
    for (const block of turn.blocks) if (block.type === "toolCall") this.#callLines.set(block.id, asText(line["uuid"]));
    if (turn.lastRecordId !== null) {
      this.#uuids.set(turn.lastRecordId, asText(line["uuid"]));
      this.lastRecords.set(asText(line["uuid"]), turn.lastRecordId);
    }
    return line;
  }

  #result(result: ReplayResult): Fields {
    const origin = this.#conversation.originOf(result.recordId);
    const details = detailsOf(origin);
    const own = details !== undefined && origin?.stored.record["sourceFormat"] === "claude-code";
    if (details !== undefined && !own) this.#losses.tell("left-out", "details of a result", origin);
    const source = this.#callLines.get(result.callId);
    const [only] = result.content;
    const isText = result.content.length === 1 && only?.type === "text";
    return this.#line("user", origin, {
      message: {
        role: "user",
        content: [
          {
            tool_use_id: result.callId,
            type: "tool_result",
            content: isText ? only.text : result.content.map(userBlock),
            ...(result.isError ? { is_error: true } : {}),
          },
        ],
      },
      ...(own ? { toolUseResult: details } : {}),
      ...(source === undefined ? {} : { sourceToolAssistantUUID: source }),
    });
  }

  *#compaction(stored: StoredRecord, keptIds: readonly string[]): Generator<Fields> {
    const { summary, tokensBefore } = stored.record;
    const logicalParentUuid = this.#parentUuid;
    const summaryUuid = this.#uuidOf(stored.id);
    const uuids = this.#inOrder(keptIds);
    const preserved = uuids.length === 0 ? {} : { preservedMessages: { anchorUuid: summaryUuid, uuids } };
    const boundary = uuidOf(this.#session.sessionId, stored.id, "boundary");
    this.lastRecords.set(boundary, stored.id);
    const place = { sessionId: this.#session.sessionId, timestamp: this.#timeOf(stored) };
    yield {
      parentUuid: null,
      logicalParentUuid,
      ...this.#envelope(),
      type: "system",
      subtype: "compact_boundary",
      content: "Conversation compacted",
      isMeta: false,
      level: "info",
      compactMetadata: {
        trigger: "auto",
        preTokens: typeof tokensBefore === "number" ? tokensBefore : 0,
        ...preserved,
      },
      uuid: boundary,
      ...place,
    };
    this.#parentUuid = summaryUuid;
    yield {
      parentUuid: boundary,
      ...this.#envelope(),
      type: "user",
      message: { role: "user", content: asText(summary) },
      isVisibleInTranscriptOnly: true,
      isCompactSummary: true,
      uuid: summaryUuid,
      ...place,
    };
  }

  /** The program takes the kept lines in their order in the file, where a result follows its call at once. */
  #inOrder(ids: readonly string[]): readonly string[] {
    const uuids = new Set(ids.flatMap((id) => this.#uuids.get(id) ?? []));
    return [...new Set(this.#uuids.values())].filter((uuid) => uuids.has(uuid));
  }

  #line(type: string, origin: TurnOrigin | null, fields: Fields): Fields {
    const uuid = origin === null ? this.#uuidOfMade() : this.#uuidOf(origin.stored.id);
    const timestamp = origin === null ? this.#timestamp : this.#timeOf(origin.stored);
    const line = {
      parentUuid: this.#parentUuid,
      ...this.#envelope(),
      type,
      ...fields,
      uuid,
      timestamp,
      sessionId: this.#session.sessionId,
    };
    this.#parentUuid = uuid;
    return line;
  }

  #envelope(): Fields {
    const { cwd } = this.#session;
    return { isSidechain: false, userType: "external", cwd, version: writtenVersion, gitBranch: "" };
  }

  #uuidOf(id: string): string {
    const uuid = uuidOf(this.#session.sessionId, id);
    this.#uuids.set(id, uuid);
    this.lastRecords.set(uuid, id);
    return uuid;
  }

  /** The id depends on the line before, so that it stays the same when the session grows. */
  #uuidOfMade(): string {
    return uuidOf(this.#session.sessionId, `made behind ${this.#parentUuid}`);
  }

  #timeOf(stored: StoredRecord): string {
    this.#timestamp = timeOf(stored, this.#timestamp);
    return this.#timestamp;
  }

  /** The format has no line for these roles, so their messages become user text and a loss is reported. */
  #tellRole(origin: TurnOrigin): void {
    const role = origin.message?.role;
    if (role === "bashExecution" || role === "branchSummary" || role === "redacted")
      this.#losses.tell("changed", `${roleNames[role]} as user text`, origin);
  }
}

const roleNames: Readonly<Record<"bashExecution" | "branchSummary" | "redacted", string>> = {
  bashExecution: "command",
  branchSummary: "summary of a branch",
  redacted: "redacted message",
};

function isUuidLine({ id, record }: StoredRecord): boolean {
  return record["sourceFormat"] === "claude-code" && isUuid(id.slice(0, 36));
}

function usageOf(usage: Usage | null): Fields {
  return {
    input_tokens: usage?.input ?? 0,
    cache_creation_input_tokens: usage?.cacheWrite ?? 0,
    cache_read_input_tokens: usage?.cacheRead ?? 0,
    output_tokens: usage?.output ?? 0,
  };
}

function userBlock(block: ReplayUserBlock): Fields {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
      return { type: "image", source: block.source };
    case "file":
      return { type: "document", source: block.source, ...(block.name === null ? {} : { title: block.name }) };
    case "raw":
      return block.block;
  }
}

function replyBlock(block: AssistantTurn["blocks"][number]): Fields {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "toolCall":
      return { type: "tool_use", id: block.id, name: block.name, input: block.arguments };
    case "thinking":
      return block.redacted
        ? { type: "redacted_thinking", data: block.signature ?? "" }
        : { type: "thinking", thinking: block.thinking, signature: block.signature ?? "" };
    case "raw":
      return block.block;
  }
}
