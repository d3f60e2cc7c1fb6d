import type { RecordDraft } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import type { ExchangeData, FrameEntry } from "./exchange-data.ts";
import type { RequestPart, RequestPiece, SplitRequest } from "./split-request.ts";
import { withLastingIds } from "./lasting-ids.ts";
import type { UnitDraft } from "./unit-drafts.ts";
import { type ChainMatch, draftsOf, unitId, type WireLog } from "./wire-log.ts";
import { unreadFrame } from "./unread-request.ts";
import { apiReadings } from "./wire-api.ts";
import { type FormText, WireNode } from "./wire-node.ts";

/** Describes the records to store for a request before it is answered. */
export interface CallPlan {
  /** Holds the drafts of the parts and messages that the log does not have yet. */
  readonly drafts: readonly RecordDraft[];
  /** Names the last message of the request. Null for a request without messages. */
  readonly tip: WireNode | null;
  /** Lists all messages of the request, in order. */
  readonly nodes: readonly WireNode[];
  /** Lists the messages that the drafts add to the log. */
  readonly added: readonly WireNode[];
}

/** Describes how a request can be rebuilt from the log. */
export interface FramePlan {
  /** Holds the fields that the exchange needs so that the request can be rebuilt. */
  readonly data: Pick<ExchangeData, "knownSeq" | "frame" | "forms" | "separator" | "encoding">;
  /** Lists the ids of the messages whose text the forms contain. */
  readonly copies: readonly string[];
  /**
   * States whether a message of the request is redacted. The provider's answer may quote it, so errors and unknown
   * events must not be stored.
   */
  readonly hasRedacted: boolean;
}

/** Plans the records of a request from its match in the conversation. It does not change the log. */
export function planCall(log: WireLog, split: SplitRequest, match: ChainMatch): CallPlan {
  const drafts: RecordDraft[] = [];
  const parts = new Map<string, RequestPart>();
  for (const piece of split.pieces) if ("part" in piece) parts.set(piece.part.hash, piece.part);
  for (const part of parts.values())
    if (!log.parts.has(part.hash))
      drafts.push(...log.parts.dataOf(part).map((data) => throughlineDraft("prompt", data)));
  const nodes = [...match.nodes];
  const added: WireNode[] = [];
  let tip = match.node;
  for (let index = match.known; index < split.units.length; index++) {
    const read = draftsOf(split, index);
    const id = unitId(split, index, tip);
    const unit = apiReadings[split.api].isWithoutIds ? withLastingIds(read, id.slice(1), tip) : read;
    const node = nodeOf(id, tip, unit);
    drafts.push(...messageDrafts(node, unit));
    added.push(node);
    nodes.push(node);
    tip = node;
  }
  return { drafts, tip, nodes, added };
}

/** Holds a message of the log with its text in the original request. */
export interface KnownText {
  /** Names the message in the log. */
  readonly node: WireNode;
  /** Holds the text of the message. Null when it is no longer available. */
  readonly text: string | null;
}

/**
 * Plans the frame of a request that was rebuilt from messages of the log. An unchanged message is referenced, a
 * shortened one becomes a new form, and a replacement is written as text.
 */
export function planRebuiltFrame(log: WireLog, known: readonly KnownText[], rebuilt: SplitRequest): FramePlan {
  // The replacement of a redacted message may repeat its content, so no part of the request is stored.
  if (known.some(({ node }) => node.isRedacted))
    return { data: { knownSeq: log.lastSeq, frame: [] }, copies: [], hasRedacted: true };
  const aligned = alignedUnits(known, rebuilt);
  const { frame, forms } = new FrameWriter(
    rebuilt,
    aligned.map((index) => (index === null ? null : (known[index]?.node ?? null))),
  ).write();
  const unchanged = new Set(
    aligned.flatMap((index, at) => (index !== null && known[index]?.text === rebuilt.units[at]?.text ? [index] : [])),
  );
  // A summary may repeat any part of the messages that it replaces, so these messages count as copied.
  const copied = known.flatMap(({ node }, index) => (unchanged.has(index) ? [] : [node.id]));
  const own = rebuilt.separator === "," ? {} : { separator: rebuilt.separator };
  const stated = forms.size === 0 ? {} : { forms: Object.fromEntries(forms) };
  const data = { knownSeq: log.lastSeq, frame, ...stated, ...own };
  if (isTooLarge(rebuilt, data)) return { data: withoutFrame(log), copies: [], hasRedacted: false };
  return {
    data,
    copies: [...new Set([...copied, ...forms.keys()])],
    hasRedacted: false,
  };
}

/** Maps each item of the rebuilt request to the message that it came from, or null for a replacement. */
function alignedUnits(known: readonly KnownText[], rebuilt: SplitRequest): readonly (number | null)[] {
  const places = new Map<string, number[]>();
  for (const [index, { text }] of known.entries())
    if (text !== null) {
      const same = places.get(text);
      if (same === undefined) places.set(text, [index]);
      else same.push(index);
    }
  // Reverse the lists, so that `pop` returns the next position of a text first.
  for (const same of places.values()) same.reverse();
  const shift = known.length - rebuilt.units.length;
  let next = 0;
  return rebuilt.units.map(({ text }, at) => {
    const left = places.get(text);
    while ((left?.at(-1) ?? next) < next) left?.pop();
    const same = left?.at(-1) ?? null;
    // A shortened message keeps its position counted from the end, because a summary replaces the beginning.
    const found = same ?? (at + shift >= next ? at + shift : null);
    if (found !== null) next = found + 1;
    return found;
  });
}

/** Plans the frame of a request whose messages are those of the plan. It does not change the log. */
export function planFrame(log: WireLog, split: SplitRequest, { nodes }: Pick<CallPlan, "nodes">): FramePlan {
  if (split.unread !== null)
    return { data: { knownSeq: log.lastSeq, ...unreadFrame(split.unread) }, copies: [], hasRedacted: false };
  const { frame, forms } = new FrameWriter(split, nodes).write();
  const own = split.separator === "," ? {} : { separator: split.separator };
  const stated = forms.size === 0 ? {} : { forms: Object.fromEntries(forms) };
  const data = { knownSeq: log.lastSeq, frame, ...stated, ...own };
  const hasRedacted = nodes.some((node) => node.isRedacted);
  if (isTooLarge(split, data)) return { data: withoutFrame(log), copies: [], hasRedacted };
  return { data, copies: [...forms.keys()], hasRedacted };
}

/** A record holds 16 MiB, and the exchange has more fields than its frame. */
const mostFrameBytes = 15 * 1024 * 1024;

/**
 * Returns whether the frame is too large for a record, for example because the body has megabytes of blanks. The text
 * length is checked first, because a character takes at most six bytes in JSON.
 */
function isTooLarge({ text }: SplitRequest, data: FramePlan["data"]): boolean {
  return text.length * 6 > mostFrameBytes && Buffer.byteLength(JSON.stringify(data)) > mostFrameBytes;
}

/** Stores no frame for a body that is too large. Its hash and size are still stored. */
function withoutFrame({ lastSeq }: WireLog): FramePlan["data"] {
  return { knownSeq: lastSeq, frame: [], encoding: "base64" };
}

function nodeOf(id: string, parent: WireNode | null, drafts: readonly UnitDraft[]): WireNode {
  const contents = drafts.map((draft) => ("message" in draft ? draft.message : draft.data));
  return new WireNode(parent, id, id.slice(1), contents);
}

/** The first record has the message's id. The ids of the other records are derived from it. */
function messageDrafts({ id, parent }: WireNode, drafts: readonly UnitDraft[]): readonly RecordDraft[] {
  return drafts.map((draft, index) => {
    if (index === 0) return { ...draft, id, parentId: parent?.lastId ?? null };
    const parentId = index === 1 ? id : `${id}~d${index - 1}`;
    return { ...draft, id: `${id}~d${index}`, parentId, derivedFrom: { id, index } };
  });
}

class FrameWriter {
  readonly #split: SplitRequest;
  /** Holds null for an item that is not in the log, because such an item is written as text. */
  readonly #nodes: readonly (WireNode | null)[];
  readonly frame: FrameEntry[] = [];
  readonly forms = new Map<string, FormText>();
  #run: { last: WireNode; count: number; readonly forms: number[] } | null = null;
  #literal = "";

  constructor(split: SplitRequest, nodes: readonly (WireNode | null)[]) {
    this.#split = split;
    this.#nodes = nodes;
  }

  write(): this {
    const { pieces, separator } = this.#split;
    for (const [index, piece] of pieces.entries()) {
      const isBetween = this.#isUnit(pieces[index - 1]) && this.#isUnit(pieces[index + 1]);
      if ("literal" in piece) {
        if (!isBetween || piece.literal !== separator) this.#addLiteral(piece.literal);
      } else if ("part" in piece) this.#addPart(piece);
      else this.#addUnit(piece.unit);
    }
    this.#endRun();
    this.#endLiteral();
    return this;
  }

  #isUnit(piece: RequestPiece | undefined): boolean {
    return piece !== undefined && "unit" in piece && this.#nodes[piece.unit] !== null;
  }

  /** An empty text between two messages counts too: it states that no separator is there. */
  #addLiteral(text: string): void {
    this.#endRun();
    this.#literal += text;
  }

  #addPart({ part }: Extract<RequestPiece, { readonly part: RequestPart }>): void {
    this.#endRun();
    this.#endLiteral();
    this.frame.push({ part: part.hash });
  }

  #addUnit(index: number): void {
    const node = this.#nodes[index];
    const text = this.#split.units[index]?.text;
    if (node === undefined || text === undefined) throw new RangeError("A request has no such message.");
    if (node === null) return this.#addLiteral(text);
    this.#endLiteral();
    // A redacted message must not reappear as the form of a later request.
    if (node.isRedacted) return this.#addRedacted(node);
    const form = node.findForm(text);
    const isNewest = form === node.current;
    const before = this.#run;
    // A run states explicit form numbers for its newest messages only, so any other message ends the run.
    if (before === null || before.last !== node.parent || (isNewest && before.forms.length > 0)) this.#endRun();
    const run = (this.#run ??= { last: node, count: 0, forms: [] });
    run.last = node;
    run.count += 1;
    if (form === null) this.forms.set(node.id, node.newForm(text));
    if (!isNewest) run.forms.push(form ?? node.forms.length + 1);
  }

  #addRedacted({ id, current }: WireNode): void {
    this.#endRun();
    this.frame.push({ id, form: current });
  }

  #endRun(): void {
    if (this.#run === null) return;
    const { last, count, forms } = this.#run;
    const [form] = forms;
    if (count === 1 && form !== undefined) this.frame.push({ id: last.id, form });
    else this.frame.push({ last: last.id, count, ...(forms.length === 0 ? {} : { forms }) });
    this.#run = null;
  }

  #endLiteral(): void {
    if (this.#literal !== "") this.frame.push(this.#literal);
    this.#literal = "";
  }
}
