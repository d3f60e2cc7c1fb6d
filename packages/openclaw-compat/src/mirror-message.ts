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

/** Parameters of `appendAssistantMessageToSessionTranscript`. */
export interface MirrorParams {
  /** The path of the agent's `sessions.json`. @default the default directory's */
  readonly storePath?: string;
  /** The agent whose session it is. @default the agent of `storePath`, else "main" */
  readonly agentId?: string;
  /** The session's key, such as `agent:main:main`. */
  readonly sessionKey: string;
  /** The text that was delivered. Without text and media the message is refused as `empty`. @default none */
  readonly text?: string;
  /** Media that was delivered; the transcript gets the file names. @default none */
  readonly mediaUrls?: readonly string[];
  /** The same key mirrors once. @default none */
  readonly idempotencyKey?: string;
  /** Refuses when the key has another session by now. @default none */
  readonly expectedSessionId?: string;
  /** How long to wait for a turn that is running. @default 15_000 */
  readonly timeoutMs?: number;
  /** Ends the wait and the append with ABORTED. */
  readonly signal?: AbortSignal;
}

/** Whether a message is in the transcript, and where. */
export type MirrorResult =
  | {
      /** The message is in the transcript. */
      readonly ok: true;
      /** The path of the transcript, as OpenClaw would name it. */
      readonly sessionFile: string;
      /** The id of the record that holds the message. */
      readonly messageId: string;
      /** True when the reply was in the transcript already; nothing was added then. */
      readonly isDuplicate: boolean;
    }
  | {
      /** Nothing was added. */
      readonly ok: false;
      /** Which rule refused the message. */
      readonly code: MirrorRefusal;
      /** The reason as text, for logs. */
      readonly reason: string;
    };

/** Why a message was not added to a transcript. */
type MirrorRefusal = "missing-key" | "unknown-session" | "empty" | "session-rebound" | "blocked";

const pollIntervalMs = 50;

/**
 * Puts a message that was delivered outside a run into the transcript, so that the model knows of it. Waits while a turn
 * runs: its reply may be this very text, and a record between a call and its result would tear them apart.
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
    // What was looked at is what it is appended to: a reply that came in between is seen next time round.
    const options = { expect: { head: state.head.headId }, ...(signal === undefined ? {} : { signal }) };
    const newKey = { idempotencyKey: context.random.uuid(), isNewKey: true };
    try {
      if (stored !== null) {
        // A read may return what is not on the disk. The store acknowledges nothing behind that.
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

/** Where the file is, as OpenClaw would say; what another program wrote that is no path says nothing. */
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
  // Both: what was said, and the names of what came with it.
  const names = mediaUrls.length === 0 ? [] : [mediaUrls.map(mediaName).join(", ")];
  return [...said, ...names].map((part) => ({ type: "text", text: part }));
}

/** The name of the file a URL leads to; `media` when it has none. */
function mediaName(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? "";
  const name = path.slice(path.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name) || "media";
  } catch {
    return name;
  }
}

/** Without a time of its own: the same message under the same key is the same draft. The record has one. */
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

/** The reply at the end of the conversation, when it says the same. */
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
