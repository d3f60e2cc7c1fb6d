import {
  type AppendDraft,
  appendOnce,
  type AppendResult,
  type AssistantMessage,
  hasErrorCode,
  isRecordOfType,
  type Message,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
  type ThroughlineError,
} from "@throughline/core";
import type { AppendOnceOptions } from "@throughline/core/internal";
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
    try {
      const mirrored = await appendMirror(context, state, { blocks, idempotencyKey, signal });
      if (mirrored !== null) return { ok: true, sessionFile, ...mirrored };
      return { ok: false, code: "blocked", reason: "the idempotency key belongs to another message" };
    } catch (error) {
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

interface MessageToMirror {
  readonly blocks: readonly TextBlock[];
  readonly idempotencyKey: string | undefined;
  readonly signal: AbortSignal | undefined;
}

interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

type MirroredMessage = Pick<MirrorResult & { readonly ok: true }, "messageId" | "isDuplicate">;

/**
 * Finds the message in the transcript or appends it. Null means that the key belongs to another message.
 * @throws {ThroughlineError} SESSION_BUSY, APPEND_CONFLICT when the session changed since `state` was loaded
 */
async function appendMirror(
  context: CompatContext,
  state: SessionState,
  { blocks, idempotencyKey, signal }: MessageToMirror,
): Promise<MirroredMessage | null> {
  const { store, random } = context;
  const stored = await storedReply(context, state, blocks);
  // The append expects the head of this read. If a reply is stored in between, the append fails and the next round
  // reads that reply.
  const options = { expect: { head: state.head.headId }, ...(signal === undefined ? {} : { signal }) };
  const newKey = (): AppendOnceOptions => ({ ...options, idempotencyKey: random.uuid(), isNewKey: true });
  const key = idempotencyKey === undefined ? null : { ...options, idempotencyKey: `mirror:${idempotencyKey}` };
  const draft = { type: "message", message: mirrored(blocks) };
  if (stored !== null) {
    // A read may return records whose flush failed. An append without records fails in that case, so its success proves
    // that the reply is on disk. The caller's key is kept with it, so that a later retry finds the reply. A replay
    // proves nothing about this reply.
    const kept = key === null ? null : await appendUnlessOther(store, state.ref, [], key);
    if (kept === null || kept.replayed) await appendOnce(store, state.ref, [], newKey());
    return { messageId: stored.id, isDuplicate: true };
  }
  if (key === null) {
    const { records } = await appendOnce(store, state.ref, [draft], newKey());
    return { messageId: records[0]?.id ?? "", isDuplicate: false };
  }
  const result = await appendUnlessOther(store, state.ref, [draft], key);
  if (result !== null) return { messageId: result.records[0]?.id ?? "", isDuplicate: result.replayed };
  // The key may have come with a reply that was stored already.
  const earlier = await appendUnlessOther(store, state.ref, [], key);
  const reply = earlier === null ? null : await earlierReply(context, state, blocks);
  return reply === null ? null : { messageId: reply.id, isDuplicate: true };
}

/** Returns null when the key came with other records before. */
async function appendUnlessOther(
  store: SessionStore,
  ref: SessionRef,
  drafts: readonly AppendDraft[],
  options: AppendOnceOptions,
): Promise<AppendResult | null> {
  try {
    return await appendOnce(store, ref, drafts, options);
  } catch (error) {
    if (hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) return null;
    throw error;
  }
}

/** Another program may have stored a `sessionFile` that is not text. Such a value is ignored. */
function fileOf({ stateDir }: CompatContext, agentId: string, { sessionId, entry }: SessionState): string {
  const stated: unknown = entry.sessionFile;
  const file = typeof stated === "string" ? { sessionFile: stated } : {};
  return resolveSessionFile(resolveSessionsDir({ stateDir, agentId }), { sessionId, ...file }).path;
}

function blocksOf({ text = "", mediaUrls = [] }: MirrorParams): readonly TextBlock[] {
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
  blocks: readonly TextBlock[],
): Promise<StoredRecord | null> {
  for await (const { record, message } of newestMessages(context, state.ref)) {
    if (message.role !== "assistant") return null;
    const text = normal(textOf((message as AssistantMessage).content));
    if (text !== "") return isText(text, blocks) ? record : null;
  }
  return null;
}

/** Returns the newest reply with the text, also one of an earlier turn. */
async function earlierReply(
  context: CompatContext,
  state: SessionState,
  blocks: readonly TextBlock[],
): Promise<StoredRecord | null> {
  for await (const { record, message } of newestMessages(context, state.ref))
    if (message.role === "assistant" && isText(normal(textOf((message as AssistantMessage).content)), blocks))
      return record;
  return null;
}

function isText(text: string, blocks: readonly TextBlock[]): boolean {
  return text === normal(blocks.map((block) => block.text).join("\n")) || text === normal(blocks[0]?.text ?? "");
}

interface NewestMessage {
  readonly record: StoredRecord;
  readonly message: Message;
}

async function* newestMessages(context: CompatContext, ref: SessionRef): AsyncGenerator<NewestMessage> {
  for await (const { records } of context.store.read(ref, { order: "descending", limit: 50 }))
    for (const record of records)
      if (!record.side && isRecordOfType(record.record, "message")) yield { record, message: record.record.message };
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
