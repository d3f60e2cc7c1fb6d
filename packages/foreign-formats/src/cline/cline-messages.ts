import { isFields, type Fields } from "@throughline/core/internal";
import { blockBodies, hasSignature } from "../block-messages.ts";
import type { UnitPlace } from "../foreign-format.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { isHistoryName } from "../message-samples.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";
import { blocksOf } from "./cline-blocks.ts";
import { callsOfBlocks, withResults, type OpenCall } from "./cline-results.ts";

const knownFields: ReadonlySet<string> = new Set(["role", "content", "ts"]);

/** At most this number of messages before a summary are repeated behind it. */
const mostKept = 400;

/** A message that a later summary may keep. */
interface KeptMessage {
  readonly marks: readonly string[];
  readonly bodies: readonly RecordBody[];
}

/** Reads what the model of a task was sent: Anthropic's messages, or those of the AI SDK in Roo's newer version. */
export class ClineMessages implements MessageList {
  readonly name = "cline";
  readonly sessionId: string | null;
  readonly entry = {};
  /** Summaries and marks of truncation so far, by which messages are hidden. */
  readonly #hidingIds = new Set<string>();
  #kept: KeptMessage[] = [];
  /** The calls of the reply before. */
  #calls: readonly OpenCall[] = [];

  /** @param path whose folder is named by the task */
  constructor(path: string | null) {
    this.sessionId = path === null || !isHistoryName(path) ? null : folderName(path);
  }

  frame(): ReadFrame {
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

  /** Where a message hides earlier ones: an empty context with what is left of them. Null where it hides none. */
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

/** What a summary or a mark of truncation is named by. */
function hidingId({ isSummary, condenseId, isTruncationMarker, truncationId }: Fields): string | null {
  if (isSummary === true && typeof condenseId === "string") return `condense ${condenseId}`;
  return isTruncationMarker === true && typeof truncationId === "string" ? `truncation ${truncationId}` : null;
}

/** What hides a message, once it is there. */
function hidingMarks({ condenseParent, truncationParent }: Fields): readonly string[] {
  return [
    ...(typeof condenseParent === "string" ? [`condense ${condenseParent}`] : []),
    ...(typeof truncationParent === "string" ? [`truncation ${truncationParent}`] : []),
  ];
}

function messageBodies(value: Fields, blocks: readonly Fields[]): readonly RecordBody[] | null {
  const { role, modelInfo } = value;
  const info = isFields(modelInfo) ? modelInfo : {};
  const author = { model: info["modelId"], provider: info["providerId"] };
  const given = { role: role === "assistant" ? "assistant" : "user", content: blocks.length === 0 ? "" : blocks };
  const bodies = blockBodies([given], author, role === "assistant" && hasSignature(blocks));
  const native = fieldsWithout(value, knownFields);
  const more = Object.keys(native).length === 0 ? {} : { native };
  return bodies?.map((body, index) => (index === 0 ? { ...body, ...more } : body)) ?? null;
}

/** The name of the folder that a file lies in. */
function folderName(path: string): string | null {
  const name = path.split(/[/\\]/).at(-2) ?? "";
  return name === "" ? null : name;
}
