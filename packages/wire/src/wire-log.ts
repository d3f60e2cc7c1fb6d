import type { SessionRecord, StoredRecord } from "@throughline/core";
import { throughlineKind } from "@throughline/core/internal";
import { chainHash, rootHash } from "./message-hash.ts";
import type { ExchangeData, FrameEntry, FrameRun, PromptData } from "./exchange-data.ts";
import { PartTexts } from "./part-texts.ts";
import type { RequestUnit, SplitRequest } from "./split-request.ts";
import { unitDrafts, type UnitDraft } from "./unit-drafts.ts";
import { WireNode } from "./wire-node.ts";

const messageId = /^m([0-9a-f]{32})(~d[1-9][0-9]{0,5})?$/;

/** A call that was recorded. */
export interface RecordedCall {
  /** The id that the exchange states; where it states none, the id of its record without `x-`. */
  readonly callId: string;
  /** How often the same body was sent before; 0 for the first time. */
  readonly attempt: number;
  /** How it ended, as `ExchangeData.outcome`. */
  readonly outcome: string;
}

/** Where a request stands in a conversation. */
export interface ChainMatch {
  /** The last message that is known; null: none is. */
  readonly node: WireNode | null;
  /** How many messages of the request are known, from the first on. */
  readonly known: number;
  /** Nodes of these, in order. */
  readonly nodes: readonly WireNode[];
}

/**
 * What a gateway knows of a session: its messages as chains, the forms they were sent in, and the calls. Made of the records
 * of its log alone, in their order.
 */
export class WireLog {
  /** The system prompts and tools that its requests were made of. */
  readonly parts: PartTexts = new PartTexts();
  /** Up to where the log is known. */
  lastSeq = 0;
  /** Bytes of content, roughly: what it takes to keep this in memory. */
  bytes = 0;
  readonly #roots: WireNode[] = [];
  readonly #nodes = new Map<string, WireNode>();
  /** By any record of a message. */
  readonly #byRecord = new Map<string, WireNode>();
  /** By the SHA-256 of the body: the newest attempt. */
  readonly #calls = new Map<string, RecordedCall>();
  readonly #replies = new Map<string, WireNode>();

  readonly #exchanges = new Set<string>();
  /** Summaries that were sent in place of messages, by the last of these. */
  readonly #summaries = new Map<string, string>();

  /** The hash of the tools in the newest request; null for none. */
  tools: string | null = null;

  /** The kept headers of the newest request that states them, as JSON. */
  headers: string | null = null;

  /** Exchanges that may repeat messages which are redacted: whoever wrote them did not know of it yet. */
  readonly outdated: string[] = [];

  /** True while the log has no message. */
  get isEmpty(): boolean {
    return this.#roots.length === 0;
  }

  /** Takes the next record of the log. */
  apply({ seq, record, parentId, side, bytes }: StoredRecord): void {
    if (seq <= this.lastSeq) return;
    this.lastSeq = seq;
    // Prompts, forms and summaries are kept in memory as well as messages.
    this.bytes += bytes;
    const kind = throughlineKind(record);
    if (kind === "exchange") return this.#applyExchange(record.id, record["data"] as ExchangeData);
    if (kind === "prompt") return this.parts.apply(record["data"] as PromptData);
    const [, hash, derived] = messageId.exec(record.id) ?? [];
    if (hash === undefined) {
      const before = side || parentId === null ? undefined : this.#byRecord.get(parentId);
      // What follows a record of another program follows the message before that.
      if (before !== undefined) this.#byRecord.set(record.id, before);
      return;
    }
    const content = contentOf(record);
    if (derived !== undefined) return this.#addDerived(record, content);
    const parent = parentId === null ? null : (this.#byRecord.get(parentId) ?? null);
    this.add(new WireNode(parent, record.id, hash, [content]));
  }

  /** Adds a message that has been stored. */
  add(node: WireNode): void {
    if (this.#nodes.has(node.id)) return;
    this.#nodes.set(node.id, node);
    this.#byRecord.set(node.id, node);
    this.#byRecord.set(node.lastId, node);
    (node.parent?.children ?? this.#roots).push(node);
    for (const content of node.contents) {
      const { responseId } = (content ?? {}) as { readonly responseId?: unknown };
      if (typeof responseId === "string") this.#replies.set(responseId, node);
    }
  }

  #addDerived(record: SessionRecord, content: unknown): void {
    const node = this.#nodes.get(record.id.slice(0, record.id.indexOf("~")));
    if (node === undefined) return;
    node.contents.push(content);
    node.lastId = record.id;
    this.#byRecord.set(record.id, node);
  }

  #applyExchange(id: string, data: ExchangeData): void {
    this.#exchanges.add(id);
    if (this.#repeatsRedacted(data)) this.outdated.push(id);
    this.addForms(data);
    for (const [node, form] of this.#statedForms(data.frame)) node.use(form);
    const used = data.frame.filter((entry) => typeof entry === "object" && "part" in entry).map(({ part }) => part);
    this.tools = data.toolsHash ?? used.find((hash) => this.parts.nameOf(hash) === "tools") ?? null;
    this.#applyCompacted(data);
    if (data["requestHeaders"] !== undefined) this.headers = JSON.stringify(data["requestHeaders"]);
    const sha256 = data.rebuiltFrom ?? data.requestSha256;
    if (sha256 !== undefined)
      this.#calls.set(sha256, {
        callId: data.callId ?? id.replace(/^x-/, ""),
        attempt: data.attempt ?? 0,
        outcome: data.outcome,
      });
    const reply = data.replyId === undefined ? undefined : this.#nodes.get(data.replyId);
    if (data.responseId !== undefined && reply !== undefined) this.#replies.set(data.responseId, reply);
  }

  /** A summary that the provider refused once more is too large, and no use to the next request. */
  #applyCompacted({ compacted, status, outcome }: ExchangeData): void {
    if (compacted === undefined) return;
    const { last, text } = compacted;
    const isRefused = outcome !== "answered" && (status === 400 || status === 413 || status === 422 || status === 200);
    if (isRefused) this.#summaries.delete(last);
    else if (text !== undefined) this.#summaries.set(last, text);
  }

  #repeatsRedacted({ forms = {}, copies = [], frame, errorBody, unknownEvents }: ExchangeData): boolean {
    if (copies.some((of) => this.#nodes.get(of)?.isRedacted === true)) return true;
    if (Object.keys(forms).some((of) => this.#nodes.get(of)?.isRedacted === true)) return true;
    if (errorBody === undefined && unknownEvents === undefined) return false;
    const last = frame.findLast((entry) => typeof entry === "object" && !("part" in entry));
    if (last === undefined || typeof last === "string" || "part" in last) return false;
    let node = this.node("id" in last ? last.id : last.last);
    while (node !== null && !node.isRedacted) node = node.parent;
    return node !== null;
  }

  /** Takes the forms that an exchange states. Its frame gives their numbers. */
  addForms({ forms = {}, frame }: Pick<ExchangeData, "forms" | "frame">): void {
    const numbers = new Map(this.#statedForms(frame).map(([{ id }, form]) => [id, form]));
    for (const [id, form] of Object.entries(forms)) this.#nodes.get(id)?.addForm(form, numbers.get(id) ?? null);
  }

  /** The messages of a frame whose forms it numbers. */
  #statedForms(frame: readonly FrameEntry[]): readonly (readonly [node: WireNode, form: number])[] {
    return frame.flatMap((entry) => {
      if (typeof entry === "string" || "part" in entry) return [];
      const numbers = "id" in entry ? [entry.form] : (entry.forms ?? []);
      let node = this.node("id" in entry ? entry.id : entry.last);
      const stated: (readonly [WireNode, number])[] = [];
      for (const form of numbers.toReversed()) {
        if (node !== null) stated.push([node, form]);
        node = node?.parent ?? null;
      }
      return stated;
    });
  }

  /** The message whose first record has this id; null when the log has none. */
  node(id: string): WireNode | null {
    return this.#nodes.get(id) ?? null;
  }

  /** The message that a record belongs to, or that one of another program follows; null for none. */
  nodeOf(recordId: string): WireNode | null {
    return this.#byRecord.get(recordId) ?? null;
  }

  /** Whether a call is stored, by the id of its exchange. */
  hasExchange(id: string): boolean {
    return this.#exchanges.has(id);
  }

  /** The newest attempt with a body. */
  callOf(requestSha256: string): RecordedCall | null {
    return this.#calls.get(requestSha256) ?? null;
  }

  /** Whether a call has ended here, however. */
  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** Whether a call with another body was answered here. */
  hasAnsweredOther(requestSha256: string): boolean {
    for (const [sha256, { outcome }] of this.#calls)
      if (sha256 !== requestSha256 && outcome === "answered") return true;
    return false;
  }

  /** The messages, as JSON, that were last sent in place of all up to this one; null for none. */
  summaryUpTo(messageId: string): string | null {
    return this.#summaries.get(messageId) ?? null;
  }

  /** The reply that the provider gave this id. */
  reply(responseId: string): WireNode | null {
    return this.#replies.get(responseId) ?? null;
  }

  /**
   * How much of a request is known, from a message on.
   *
   * @param from the message that the request follows; null: it begins a conversation
   * @param earlier what was found for the same request and place before: the search goes on behind it
   */
  match(split: SplitRequest, from: WireNode | null = null, earlier: ChainMatch | null = null): ChainMatch {
    const last = earlier?.node ?? null;
    // A log that was read again has other nodes.
    const nodes: WireNode[] = last !== null && this.#nodes.get(last.id) === last ? [...(earlier?.nodes ?? [])] : [];
    let node = nodes.at(-1) ?? from;
    for (const [index, unit] of split.units.entries()) {
      if (index < nodes.length) continue;
      const next = this.#step(split, index, unit, node);
      if (next === null) break;
      nodes.push(next);
      node = next;
    }
    return { node, known: nodes.length, nodes };
  }

  #step(split: SplitRequest, index: number, unit: RequestUnit, node: WireNode | null): WireNode | null {
    const children = node?.children ?? this.#roots;
    // The same text as last time is the same message: nothing of it needs to be read.
    const same = children.findLast((child) => !child.isRedacted && child.text === unit.text);
    if (same !== undefined) return same;
    const id = unitId(split, index, node);
    return children.find((child) => child.id === id) ?? null;
  }

  /** The text of a frame. @throws {RangeError} for a frame that names what the log does not have */
  frameText(frame: readonly FrameEntry[], separator: string): string {
    let text = "";
    let isAfterUnit = false;
    for (const entry of frame) {
      if (typeof entry === "string") text += entry;
      else if ("part" in entry) text += this.parts.text(entry.part);
      else {
        const units = "id" in entry ? [this.#formText(entry)] : this.#runTexts(entry);
        text += (isAfterUnit ? separator : "") + units.join(separator);
      }
      isAfterUnit = typeof entry === "object" && !("part" in entry);
    }
    return text;
  }

  #formText({ id, form }: { readonly id: string; readonly form: number }): string {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new RangeError(`The log has no message ${id}.`);
    return textOf(node, form);
  }

  #runTexts({ last, count, first, forms = [] }: FrameRun): readonly string[] {
    const nodes: WireNode[] = [];
    let node = this.node(last);
    for (; node !== null && nodes.length < count; node = node.parent) nodes.push(node);
    if (nodes.length !== count || (first !== undefined && nodes.at(-1)?.id !== first))
      throw new RangeError(`The log has no ${count} messages up to ${last}.`);
    nodes.reverse();
    return nodes.map((one, index) => textOf(one, forms[index - count + forms.length] ?? one.current));
  }
}

/** @throws {RangeError} */
function textOf(node: WireNode, form: number): string {
  if (node.isRedacted) throw new RangeError(`The message ${node.id} is redacted.`);
  const text = form === node.current ? node.text : node.textOf(form);
  if (text === null) throw new RangeError(`The log has no form ${form} of the message ${node.id}.`);
  return text;
}

/** What a record holds that a request had. */
function contentOf(record: SessionRecord): unknown {
  if (record.type === "message") return record["message"] ?? null;
  return throughlineKind(record) === null ? (record["data"] ?? null) : null;
}

/** A message is looked for several times, in the log and before there is one; it is read once. */
const readUnits = new WeakMap<RequestUnit, readonly UnitDraft[]>();

/** The records of a message, before anything is known of its place. */
export function draftsOf({ api, units }: SplitRequest, index: number): readonly UnitDraft[] {
  const unit = units[index];
  if (unit === undefined) throw new RangeError("A request has no such message.");
  const drafts = readUnits.get(unit) ?? unitDrafts(api, units, index);
  readUnits.set(unit, drafts);
  return drafts;
}

/** Whether a request says more than is known of it, and each reply in it is known. */
export function isContinued(split: SplitRequest, { known }: Pick<ChainMatch, "known">): boolean {
  if (known >= split.units.length) return false;
  for (let index = known; index < split.units.length; index++)
    if (!draftsOf(split, index).every((draft) => "message" in draft && draft.message.role !== "assistant"))
      return false;
  return true;
}

/** The id of a message behind another one, which is asked for several times as well. */
const unitHashes = new WeakMap<RequestUnit, Map<string, string>>();

/** The id of the first record that a message of a request is kept as. */
export function unitId(split: SplitRequest, index: number, parent: Pick<WireNode, "hash"> | null): string {
  const before = parent?.hash ?? rootHash;
  const unit = split.units[index];
  const hashes = (unit === undefined ? undefined : unitHashes.get(unit)) ?? new Map<string, string>();
  let hash = hashes.get(before);
  if (hash === undefined) {
    const contents = draftsOf(split, index).map((draft) => ("message" in draft ? draft.message : draft.data));
    hash = chainHash(before, contents, split.api);
    hashes.set(before, hash);
    if (unit !== undefined) unitHashes.set(unit, hashes);
  }
  return `m${hash}`;
}

/** The ids that the messages of a request have where it begins a conversation. */
export function chainIds(split: SplitRequest): readonly string[] {
  let parent: { readonly hash: string } | null = null;
  return Array.from(split.units.keys(), (index) => {
    const id: string = unitId(split, index, parent);
    parent = { hash: id.slice(1) };
    return id;
  });
}

/** The ids that the first message of a request and the first reply in it have where the request begins a conversation. */
export function unitIds(split: SplitRequest): { readonly first: string | null; readonly firstReply: string | null } {
  let parent: { readonly hash: string } | null = null;
  let first: string | null = null;
  for (const index of split.units.keys()) {
    const id: string = unitId(split, index, parent);
    first ??= id;
    if (draftsOf(split, index).some((draft) => "message" in draft && draft.message.role === "assistant"))
      return { first, firstReply: id };
    parent = { hash: id.slice(1) };
  }
  return { first, firstReply: null };
}
