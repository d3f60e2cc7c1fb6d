import { isFields, type Fields } from "@throughline/core/internal";
import { asText, shownText } from "../as-text.ts";
import type { Usage } from "@throughline/core";
import { replyBodies, toldBodies } from "../ai-sdk/ui-messages.ts";
import type { UnitPlace } from "../foreign-format.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";
import { countOf } from "../token-count.ts";

/** Reads the messages of a session. Each message includes its parts. */
export class OpencodeMessages implements MessageList {
  readonly name = "opencode";
  sessionId: string | null = null;
  spawnedBy: string | null = null;
  readonly #entry = new Map<string, unknown>();
  /** The program removed this message and all later ones. When a part is named, the message's earlier parts stay. */
  #revert: { readonly messageId: string; readonly partId: string | null } | null = null;
  #isReverted = false;
  /** A compaction may keep the messages from one of these on, so their record ids are remembered. */
  readonly #recordIds = new Map<string, string>();
  /** The field holds the first message that the current compaction keeps; undefined while there is no compaction. */
  #keptFrom: string | null | undefined = undefined;

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  frame({ info }: Fields): ReadFrame {
    if (!isFields(info)) return { bodies: [] };
    const { id, title, directory, parentID: parentId, revert, time } = info;
    if (typeof id === "string" && id !== "") this.sessionId ??= id;
    if (typeof parentId === "string" && parentId !== "") this.spawnedBy ??= parentId;
    if (typeof directory === "string" && directory !== "") this.#entry.set("cwd", directory);
    if (typeof title === "string" && title.trim() !== "") {
      this.#entry.set("title", title.trim());
      this.#entry.set("titleBy", "import");
    }
    if (isFields(revert) && typeof revert["messageID"] === "string") {
      const { messageID: messageId, partID: partId } = revert;
      this.#revert = { messageId, partId: typeof partId === "string" ? partId : null };
    }
    return { bodies: [], time: isFields(time) ? time["created"] : undefined };
  }

  element(value: Fields, place: UnitPlace): ReadElement {
    const { info, parts: listed } = value;
    if (!isFields(info)) return { bodies: [], isUnreadable: false };
    const { id, role } = info;
    const time = isFields(info["time"]) ? info["time"]["created"] : undefined;
    const given = Array.isArray(listed) ? (listed as readonly unknown[]).filter(isFields) : [];
    const { parts, isHidden } = this.#shown(given, asText(id), value["reverted"] === true);
    const bodies = this.#bodies(info, parts, place);
    const isMessage = role === "user" || role === "assistant" || (value["unread"] ?? value["data"]) !== undefined;
    const isUnreadable = bodies === null && isMessage;
    if (typeof id === "string") this.#recordIds.set(id, id);
    const hasUnreadablePart = given.some(
      ({ type, unread, data }) => type === undefined && (unread ?? data) !== undefined,
    );
    return { bodies: bodies ?? [], isUnreadable, hasUnreadablePart, id, time, isHidden };
  }

  /** A message that was removed in part keeps its earlier parts. */
  #shown(
    parts: readonly Fields[],
    messageId: string,
    isReverted: boolean,
  ): { readonly parts: readonly Fields[]; readonly isHidden: boolean } {
    if (this.#isReverted || isReverted) return { parts, isHidden: true };
    if (this.#revert?.messageId !== messageId) return { parts, isHidden: false };
    this.#isReverted = true;
    const { partId } = this.#revert;
    const at = partId === null ? 0 : parts.findIndex((part) => part["id"] === partId);
    return at <= 0 ? { parts, isHidden: true } : { parts: parts.slice(0, at), isHidden: false };
  }

  #bodies(info: Fields, parts: readonly Fields[], { line }: UnitPlace): readonly RecordBody[] | null {
    const native = nativeOf(info);
    const compaction = parts.find(({ type }) => type === "compaction");
    if (info["role"] === "user" && compaction !== undefined) {
      const from = compaction["tail_start_id"];
      this.#keptFrom = typeof from === "string" ? (this.#recordIds.get(from) ?? null) : null;
      return [];
    }
    if (info["role"] === "user") return firstWith(toldBodies({ role: "user", parts: parts.flatMap(uiPart) }), native);
    if (info["role"] !== "assistant") return null;
    const usage = usageOf(info["tokens"]);
    if (info["summary"] === true && this.#keptFrom !== undefined) return this.#summary(info, parts, usage, line);
    const { modelID: model, providerID: provider } = info;
    const bodies = replyBodies({ parts: parts.flatMap(uiPart) }, { model, provider });
    if (bodies === null) return null;
    return firstWith(bodies.length === 0 ? [] : ended(counted(bodies, usage), info["error"]), native);
  }

  #summary(info: Fields, parts: readonly Fields[], usage: Usage | null, line: number): readonly RecordBody[] {
    const kept = this.#keptFrom;
    this.#keptFrom = undefined;
    const texts = parts.flatMap(({ type, text }) => (type === "text" && text !== undefined ? [shownText(text)] : []));
    const summary = texts.join("\n\n");
    // A failed summary compacts nothing.
    if (summary === "" || isFields(info["error"])) return [];
    const own = typeof info["id"] === "string" ? info["id"] : `${line}`;
    const counts = usage === null ? {} : { usage };
    const details = { source: "opencode", ...counts };
    return [
      { type: "compaction", summary, firstKeptEntryId: kept ?? own, tokensBefore: 0, details, native: nativeOf(info) },
    ];
  }
}

const knownFields: ReadonlySet<string> = new Set(["id", "sessionID", "role", "time", "tokens"]);

function nativeOf(info: Fields): Fields {
  return fieldsWithout(info, knownFields);
}

function firstWith(bodies: readonly RecordBody[] | null, native: Fields): readonly RecordBody[] | null {
  const [first, ...others] = bodies ?? [];
  return first === undefined ? bodies : [{ ...first, native }, ...others];
}

/** The program states the usage of all calls of a message together, so the first reply gets it. */
function counted(bodies: readonly RecordBody[], usage: Usage | null): readonly RecordBody[] {
  const at = bodies.findIndex(({ message }) => (message as Fields | undefined)?.["role"] === "assistant");
  if (usage === null || at < 0) return bodies;
  return bodies.map((body, index) =>
    index === at ? { ...body, message: { ...(body["message"] as Fields), usage } } : body,
  );
}

/** The program leaves out a message that ended in an error. A message that a person stopped keeps its content. */
function ended(bodies: readonly RecordBody[], error: unknown): readonly RecordBody[] {
  if (!isFields(error) || error["name"] === "MessageAbortedError") return bodies;
  const data = isFields(error["data"]) ? error["data"] : {};
  const errorMessage = typeof data["message"] === "string" ? data["message"] : asText(error["name"]);
  return bodies.map((body) => {
    const message = body["message"] as Fields;
    return message["role"] === "assistant"
      ? { ...body, message: { ...message, stopReason: "error", errorMessage } }
      : body;
  });
}

/** The program sends this text to the model in place of an output that it cleared. */
const clearedOutput = "[Old tool result content cleared]";

const toolStates: ReadonlyMap<unknown, string> = new Map([
  ["completed", "output-available"],
  ["error", "output-error"],
]);

/** The program converts its parts to those of the AI SDK, so the same conversion applies here. */
function uiPart(part: Fields): readonly Fields[] {
  const { type, ignored, mime, tool, callID, state, metadata } = part;
  if (type === "text") return ignored === true ? [] : [part];
  if (type === "reasoning") return [{ ...part, providerMetadata: metadata }];
  if (type === "file") return [{ ...part, mediaType: mime }];
  if (type === "step-start") return [part];
  if (type !== "tool" || !isFields(state)) return [];
  const { status, input, output, error, time } = state;
  const isCleared = isFields(time) && time["compacted"] !== undefined;
  return [
    {
      type: `tool-${asText(tool)}`,
      toolCallId: callID,
      state: toolStates.get(status) ?? "input-available",
      input,
      output: isCleared ? clearedOutput : output,
      errorText: error,
    },
  ];
}

/** The program counts reasoning apart from the output, while records include it there. */
function usageOf(tokens: unknown): Usage | null {
  if (!isFields(tokens)) return null;
  const cache = isFields(tokens["cache"]) ? tokens["cache"] : {};
  const [input, said, reasoning] = [countOf(tokens["input"]), countOf(tokens["output"]), countOf(tokens["reasoning"])];
  const [cacheRead, cacheWrite] = [countOf(cache["read"]), countOf(cache["write"])];
  const output = said + reasoning;
  const totalTokens = input + output + cacheRead + cacheWrite;
  if (totalTokens === 0) return null;
  const usage = { input, output, cacheRead, cacheWrite, totalTokens };
  return reasoning === 0 ? usage : { ...usage, reasoning };
}
