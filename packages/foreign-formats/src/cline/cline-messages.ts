import type { Usage } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import { blockBodies, hasSignature, isClaude } from "../block-messages.ts";
import type { UnitPlace } from "../foreign-format.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { isHistoryName } from "../message-samples.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";
import { blocksOf } from "./cline-blocks.ts";
import { callsOfBlocks, withResults, type OpenCall } from "./cline-results.ts";
import { countOf } from "../token-count.ts";

const knownFields: ReadonlySet<string> = new Set(["role", "content", "ts"]);

/** A summary repeats at most this number of earlier messages, because an item is stored in one append. */
const mostKept = 400;

interface KeptMessage {
  readonly marks: readonly string[];
  readonly bodies: readonly RecordBody[];
}

/** Reads the messages that the task's model got: Anthropic's, or the AI SDK's in Roo's newer version. */
export class ClineMessages implements MessageList {
  readonly name = "cline";
  sessionId: string | null;
  spawnedBy: string | null = null;
  readonly entry = {};
  /** Messages that name one of these summaries or truncation marks are hidden. */
  readonly #hidingIds = new Set<string>();
  #kept: KeptMessage[] = [];
  #calls: readonly OpenCall[] = [];

  /** @param path of the history file; its folder has the task's name */
  constructor(path: string | null) {
    this.sessionId = path === null || !isHistoryName(path) ? null : folderName(path);
  }

  /** The documents of the newer program state the session beside its messages. */
  frame({ sessionId, agent, origin }: Fields): ReadFrame {
    if (typeof sessionId !== "string" || sessionId === "") return { bodies: [] };
    this.sessionId = sessionId;
    const parent = isFields(origin) ? origin["parentThreadId"] : undefined;
    // The id of a sub-agent's session begins with that of the session that started it.
    const [root = ""] = sessionId.split("__", 1);
    if (agent !== "lead" && root !== sessionId && root !== "") this.spawnedBy = root;
    if (typeof parent === "string" && parent !== "") this.spawnedBy = parent;
    return { bodies: [] };
  }

  element(value: Fields, _place: UnitPlace): ReadElement {
    const { role, ts: time } = value;
    const bodies = role === undefined ? [] : this.#bodies(value);
    const marks = hidingMarks(value);
    const isHidden = marks.some((mark) => this.#hidingIds.has(mark));
    const before = this.#hide(value);
    if (bodies !== null && bodies.length > 0 && !isHidden) this.#kept.push({ marks, bodies });
    const isUnreadable = bodies === null;
    return { bodies: before === null ? (bodies ?? []) : [...before, ...(bodies ?? [])], isUnreadable, time, isHidden };
  }

  #bodies(value: Fields): readonly RecordBody[] | null {
    const { role, content } = value;
    if (role !== "user" && role !== "assistant" && role !== "tool") return null;
    if (typeof content !== "string" && !Array.isArray(content)) return null;
    const blocks = blocksOf(content);
    if (role !== "assistant") return messageBodies(value, withResults(blocks, this.#calls));
    this.#calls = callsOfBlocks(blocks);
    return messageBodies(value, blocks);
  }

  /**
   * A message that hides earlier ones restarts the context with the messages that remain. Null means that it hides
   * none.
   */
  #hide(value: Fields): readonly RecordBody[] | null {
    const id = hidingId(value);
    if (id === null || this.#hidingIds.has(id)) return null;
    this.#hidingIds.add(id);
    const left = this.#kept.filter(({ marks }) => !marks.includes(id));
    if (left.length === this.#kept.length) return null;
    this.#kept = left.slice(-mostKept);
    return [{ type: "reset", reason: "cline.condense" }, ...this.#kept.flatMap(({ bodies }) => bodies)];
  }
}

function hidingId({ isSummary, condenseId, isTruncationMarker, truncationId }: Fields): string | null {
  if (isSummary === true && typeof condenseId === "string") return `condense ${condenseId}`;
  return isTruncationMarker === true && typeof truncationId === "string" ? `truncation ${truncationId}` : null;
}

/** A message is hidden once a summary or truncation mark with one of these names appears. */
function hidingMarks({ condenseParent, truncationParent }: Fields): readonly string[] {
  return [
    ...(typeof condenseParent === "string" ? [`condense ${condenseParent}`] : []),
    ...(typeof truncationParent === "string" ? [`truncation ${truncationParent}`] : []),
  ];
}

function messageBodies(value: Fields, blocks: readonly Fields[]): readonly RecordBody[] | null {
  const { role, modelInfo } = value;
  const info = isFields(modelInfo) ? modelInfo : {};
  const author = { model: info["modelId"] ?? info["id"], provider: info["providerId"] ?? info["provider"] };
  const given = { role: role === "assistant" ? "assistant" : "user", content: blocks.length === 0 ? "" : blocks };
  const isSigned = role === "assistant" && hasSignature(blocks) && !isOtherModel(info);
  const bodies = blockBodies([given], author, isSigned);
  const native = fieldsWithout(value, knownFields);
  const more = Object.keys(native).length === 0 ? {} : { native };
  const usage = role === "assistant" ? usageOf(value["metrics"]) : null;
  return (
    bodies?.map((body, index) => {
      if (index > 0) return body;
      return usage === null
        ? { ...body, ...more }
        : { ...body, ...more, message: { ...(body["message"] as Fields), usage } };
    }) ?? null
  );
}

/** The newer program signs the thinking of every provider, and only Anthropic takes its own signatures back. */
function isOtherModel({ id }: Fields): boolean {
  return typeof id === "string" && !isClaude(id);
}

/** The count of the input includes what was read from the cache and written to it. */
function usageOf(metrics: unknown): Usage | null {
  if (!isFields(metrics)) return null;
  const count = (name: string): number => countOf(metrics[name]);
  const { cost } = metrics;
  const [cacheRead, cacheWrite, output] = [count("cacheReadTokens"), count("cacheWriteTokens"), count("outputTokens")];
  const input = Math.max(0, count("inputTokens") - cacheRead - cacheWrite);
  const totalTokens = input + cacheRead + cacheWrite + output;
  if (totalTokens === 0) return null;
  const usage = { input, output, cacheRead, cacheWrite, totalTokens };
  return typeof cost === "number" && cost > 0 ? { ...usage, cost: { total: cost } } : usage;
}

function folderName(path: string): string | null {
  const name = path.split(/[/\\]/).at(-2) ?? "";
  return name === "" ? null : name;
}
