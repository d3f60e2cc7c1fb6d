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

/** What is to be stored of a request before it is answered. */
export interface CallPlan {
  /** Parts and messages that the log does not have yet. */
  readonly drafts: readonly RecordDraft[];
  /** The last message of the request; null for one without messages. */
  readonly tip: WireNode | null;
  /** All messages of the request, in order. */
  readonly nodes: readonly WireNode[];
  /** Messages that the log has once the drafts are stored. */
  readonly added: readonly WireNode[];
}

/** How a request is rebuilt. */
export interface FramePlan {
  /** The fields that the exchange states so that the request can be rebuilt. */
  readonly data: Pick<ExchangeData, "knownSeq" | "frame" | "forms" | "separator" | "encoding">;
  /** Messages of which the forms hold text. */
  readonly copies: readonly string[];
  /** Whether a message of the request is redacted: what the provider says of it must not be stored. */
  readonly hasRedacted: boolean;
}

/** Plans what is stored of a request, from where it stands in the conversation. Changes nothing of the log. */
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

/** A message that the log has, as it was written where a request was made of it. */
export interface KnownText {
  /** The message in the log. */
  readonly node: WireNode;
  /** Null: it cannot be given any more. */
  readonly text: string | null;
}

/**
 * Plans the frame of a request that was made of messages of the log. An unchanged message is named, and a shortened one is
 * a further form of it. What stands in place of others is written out.
 */
export function planRebuiltFrame(log: WireLog, known: readonly KnownText[], rebuilt: SplitRequest): FramePlan {
  // What stands in place of a redacted message may say what that said: nothing of the request is kept.
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
  // A summary may repeat anything of what it stands for.
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

/** For each unit of a rebuilt request the message that it was; null for one that stands for others. */
function alignedUnits(known: readonly KnownText[], rebuilt: SplitRequest): readonly (number | null)[] {
  const places = new Map<string, number[]>();
  for (const [index, { text }] of known.entries())
    if (text !== null) {
      const same = places.get(text);
      if (same === undefined) places.set(text, [index]);
      else same.push(index);
    }
  // The next place of a text comes first.
  for (const same of places.values()) same.reverse();
  const shift = known.length - rebuilt.units.length;
  let next = 0;
  return rebuilt.units.map(({ text }, at) => {
    const left = places.get(text);
    while ((left?.at(-1) ?? next) < next) left?.pop();
    const same = left?.at(-1) ?? null;
    // What was shortened is where it was, counted from the end: a summary stands before what it leaves.
    const found = same ?? (at + shift >= next ? at + shift : null);
    if (found !== null) next = found + 1;
    return found;
  });
}

/** Plans the frame of a request whose messages are those of a plan. Changes nothing of the log. */
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

/** A record holds 16 MiB, and the exchange has more in it than its frame. */
const mostFrameBytes = 15 * 1024 * 1024;

/** Whether the frame of a request is no record, as where a body is blank for megabytes. In JSON a character takes six bytes at most. */
function isTooLarge({ text }: SplitRequest, data: FramePlan["data"]): boolean {
  return text.length * 6 > mostFrameBytes && Buffer.byteLength(JSON.stringify(data)) > mostFrameBytes;
}

/** What is stored of a body that is too large to be kept: its hash and size are. */
function withoutFrame({ lastSeq }: WireLog): FramePlan["data"] {
  return { knownSeq: lastSeq, frame: [], encoding: "base64" };
}

function nodeOf(id: string, parent: WireNode | null, drafts: readonly UnitDraft[]): WireNode {
  const contents = drafts.map((draft) => ("message" in draft ? draft.message : draft.data));
  return new WireNode(parent, id, id.slice(1), contents);
}

/** The records of a message: the first has its id, the others are derived from it. */
function messageDrafts({ id, parent }: WireNode, drafts: readonly UnitDraft[]): readonly RecordDraft[] {
  return drafts.map((draft, index) => {
    if (index === 0) return { ...draft, id, parentId: parent?.lastId ?? null };
    const parentId = index === 1 ? id : `${id}~d${index - 1}`;
    return { ...draft, id: `${id}~d${index}`, parentId, derivedFrom: { id, index } };
  });
}

class FrameWriter {
  readonly #split: SplitRequest;
  /** Null: a message that the log does not have, and that is written out. */
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

  /** Whether a piece is a message that the log has. */
  #isUnit(piece: RequestPiece | undefined): boolean {
    return piece !== undefined && "unit" in piece && this.#nodes[piece.unit] !== null;
  }

  /** An empty text between two messages is one too: it says that no separator stands there. */
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
    // What was redacted must not come back as the form of a later request.
    if (node.isRedacted) return this.#addRedacted(node);
    const form = node.findForm(text);
    const isNewest = form === node.current;
    const before = this.#run;
    // Of a run, only the newest messages may be in other forms than their newest.
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
