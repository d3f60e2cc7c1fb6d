import {
  appendOnce,
  type AssistantMessage,
  hasErrorCode,
  isRecordOfType,
  type SessionRef,
  type SessionState,
  type StoredRecord,
  type ThroughlineError,
} from "@throughline/core";
import { resolveSessionFile, resolveSessionsDir } from "@throughline/openclaw-format/internal";
import { agentOf, refOf, type CompatContext } from "./compat-context.ts";

/** Holds the parameters of `appendAssistantMessageToSessionTranscript`. */
export interface MirrorParams {
  /** States the path of the agent's `sessions.json`. @default the path in the default directory */
  readonly storePath?: string;
  /** Names the agent that the session belongs to. @default the agent of `storePath`, else "main" */
  readonly agentId?: string;
  /** States the session's key, such as `agent:main:main`. */
  readonly sessionKey: string;
  /** Holds the text that was delivered. A message without text and media is refused as `empty`. @default none */
  readonly text?: string;
  /** Lists the URLs of the media that was delivered. The transcript gets their file names. @default none */
  readonly mediaUrls?: readonly string[];
  /** Identifies the message: the same key is stored once. @default none */
  readonly idempotencyKey?: string;
  /** Refuses the message as `session-rebound` when the key now belongs to another session. @default none */
  readonly expectedSessionId?: string;
  /** Sets how long to wait for a running turn, in milliseconds. @default 15_000 */
  readonly timeoutMs?: number;
  /** Ends the wait and the append with ABORTED. */
  readonly signal?: AbortSignal;
}

/** Reports whether the message is in the transcript, and where. */
export type MirrorResult =
  | {
      /** The message is in the transcript. */
      readonly ok: true;
      /** States the path of the transcript as OpenClaw would name it. */
      readonly sessionFile: string;
      /** States the id of the record that holds the message. */
      readonly messageId: string;
      /** States whether the reply was in the transcript already. Nothing was added in that case. */
      readonly isDuplicate: boolean;
    }
  | {
      /** Nothing was added. */
      readonly ok: false;
      /** Names the rule that refused the message. */
      readonly code: MirrorRefusal;
      /** States the reason as text, for logs. */
      readonly reason: string;
    };

/** Names the rules that refuse a message. */
type MirrorRefusal = "missing-key" | "unknown-session" | "empty" | "session-rebound" | "blocked";

const pollIntervalMs = 50;

/**
 * Stores a message that was delivered outside a run, so that the model knows the message. The function waits while a
 * turn runs. The turn's reply may be this very text, and a record between a tool call and its result would separate the
 * two.
 */
export async function appendAssistantMessageToSessionTranscript(
  context: CompatContext,
  params: MirrorParams,
): Promise<MirrorResult> {
  const { storePath = "", sessionKey, idempotencyKey, expectedSessionId, timeoutMs = 15_000, signal } = params;
  const { agentId = agentOf(storePath) } = params;
  if (sessionKey.trim() === "") return { ok: false, code: "missing-key", reason: "missing sessionKey" };
  const blocks = blocksOf(params);
  if (blocks.length === 0) return { ok: false, code: "empty", reason: "empty text" };
  const ref = refOf(context, agentId, sessionKey);
  const deadlineMs = context.clock.nowMs() + timeoutMs;
  for (;;) {
    const state = await context.store.load(ref);
    if (state === null) return { ok: false, code: "unknown-session", reason: `unknown sessionKey: ${sessionKey}` };
    if (expectedSessionId !== undefined && state.sessionId !== expectedSessionId) {
      return { ok: false, code: "session-rebound", reason: `the session is ${state.sessionId} by now` };
    }
    const sessionFile = fileOf(context, agentId, state);
    const stored = await storedReply(context, state, blocks);
    // The append expects the head of this read. If a reply is stored in between, the append fails and the next round
    // reads that reply.
    const options = { expect: { head: state.head.headId }, ...(signal === undefined ? {} : { signal }) };
    const newKey = { idempotencyKey: context.random.uuid(), isNewKey: true };
    try {
      if (stored !== null) {
        // A read may return records whose flush failed. An append without records fails in that case, so its success
        // proves that the reply is on disk.
        await appendOnce(context.store, ref, [], { ...options, ...newKey });
        return { ok: true, sessionFile, messageId: stored.id, isDuplicate: true };
      }
      const draft = { type: "message", message: mirrored(blocks) };
      const result = await appendOnce(context.store, ref, [draft], {
        ...options,
        ...(idempotencyKey === undefined ? newKey : { idempotencyKey: `mirror:${idempotencyKey}` }),
      });
      return {
        ok: true,
        sessionFile,
        messageId: result.records[0]?.id ?? "",
        isDuplicate: idempotencyKey !== undefined && result.replayed,
      };
    } catch (error) {
      if (hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) {
        return { ok: false, code: "blocked", reason: "the idempotency key belongs to another message" };
      }
      if (!hasErrorCode(error, "SESSION_BUSY", "APPEND_CONFLICT")) throw error;
      if (context.clock.nowMs() >= deadlineMs)
        return {
          ok: false,
          code: "blocked",
          reason: `${(error as ThroughlineError).code}: ${(error as ThroughlineError).message}`,
        };
    }
    await context.clock.sleep(pollIntervalMs, signal);
  }
}

/** Another program may have stored a `sessionFile` that is not text. Such a value is ignored. */
function fileOf({ stateDir }: CompatContext, agentId: string, { sessionId, entry }: SessionState): string {
  const stated: unknown = entry.sessionFile;
  const file = typeof stated === "string" ? { sessionFile: stated } : {};
  return resolveSessionFile(resolveSessionsDir({ stateDir, agentId }), { sessionId, ...file }).path;
}

function blocksOf({
  text = "",
  mediaUrls = [],
}: MirrorParams): readonly { readonly type: "text"; readonly text: string }[] {
  const said = text.trim() === "" ? [] : [text];
  // A message may have text and media; the transcript then holds both.
  const names = mediaUrls.length === 0 ? [] : [mediaUrls.map(mediaName).join(", ")];
  return [...said, ...names].map((part) => ({ type: "text", text: part }));
}

function mediaName(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? "";
  const name = path.slice(path.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name) || "media";
  } catch {
    return name;
  }
}

/**
 * The message has no timestamp, because a retry under the same key must produce the same draft. The record states the
 * time.
 */
function mirrored(content: AssistantMessage["content"]): AssistantMessage {
  return {
    role: "assistant",
    content,
    api: "openclaw-transcript",
    provider: "openclaw",
    model: "delivery-mirror",
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
    stopReason: "stop",
  };
}

/** Only the last reply with text is compared: an older equal text belongs to an earlier turn. */
async function storedReply(
  context: CompatContext,
  state: SessionState,
  blocks: readonly { readonly text: string }[],
): Promise<StoredRecord | null> {
  const wanted = normal(blocks.map(({ text }) => text).join("\n"));
  for await (const record of newestRecords(context, state.ref)) {
    if (record.side || !isRecordOfType(record.record, "message")) continue;
    const { message } = record.record;
    if (message.role !== "assistant") return null;
    const text = normal(textOf((message as AssistantMessage).content));
    if (text !== "") return text === wanted || text === normal(blocks[0]?.text ?? "") ? record : null;
  }
  return null;
}

async function* newestRecords(context: CompatContext, ref: SessionRef): AsyncGenerator<StoredRecord> {
  for await (const page of context.store.read(ref, { order: "descending", limit: 50 })) yield* page.records;
}

function textOf(content: AssistantMessage["content"]): string {
  if (typeof content === "string") return content;
  return content
    .flatMap((block) => (block.type === "text" && typeof block.text === "string" ? [block.text] : []))
    .join("\n");
}

function normal(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
