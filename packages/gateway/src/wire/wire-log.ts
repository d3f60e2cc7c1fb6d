import type { SessionRecord, StoredRecord } from "@throughline/core";
import { throughlineKind } from "@throughline/core/internal";
import { chainHash, rootHash } from "./message-hash.ts";
import type { ExchangeData, FrameEntry, FrameRun, PromptData } from "./exchange-data.ts";
import { PartTexts } from "./part-texts.ts";
import type { RequestUnit, SplitRequest } from "./split-request.ts";
import { unitDrafts, type UnitDraft } from "./unit-drafts.ts";
import { WireNode } from "./wire-node.ts";

const messageId = /^m([0-9a-f]{32})(~d[1-9][0-9]{0,5})?$/;

/** Describes a call that was recorded. */
export interface RecordedCall {
  /** States the call id of the exchange. Without one, it is the id of the exchange record without `x-`. */
  readonly callId: string;
  /** Counts the earlier attempts with the same body; 0 for the first attempt. */
  readonly attempt: number;
  /** States how the call ended, as in `ExchangeData.outcome`. */
  readonly outcome: string;
}

/** Describes how much of a request a log already has. */
export interface ChainMatch {
  /** Names the last message that the log has. Null when it has none of the request. */
  readonly node: WireNode | null;
  /** Counts the leading messages of the request that the log has. */
  readonly known: number;
  /** Lists the nodes of these messages, in order. */
  readonly nodes: readonly WireNode[];
}

/**
 * Holds the gateway's state of a session: message chains, the forms in which messages were sent, and calls. It is built
 * only from the records of the log, in their order.
 */
export class WireLog {
  /** Holds the system prompts and tools that the requests used. */
  readonly parts: PartTexts = new PartTexts();
  /** States the seq of the last applied record. */
  lastSeq = 0;
  /** Estimates the memory for the log, in bytes of record content. */
  bytes = 0;
  readonly #roots: WireNode[] = [];
  readonly #nodes = new Map<string, WireNode>();
  /** Maps each record of a message to its node. */
  readonly #byRecord = new Map<string, WireNode>();
  /** Maps the SHA-256 of a body to its newest attempt. */
  readonly #calls = new Map<string, RecordedCall>();
  readonly #replies = new Map<string, WireNode>();

  readonly #exchanges = new Set<string>();
  /** Maps the last replaced message to the summary that was sent in its place. */
  readonly #summaries = new Map<string, string>();

  /** States the hash of the tools in the newest request. Null without tools. */
  tools: string | null = null;

  /** Holds the stored headers of the newest request that states them, as JSON. Null when none does. */
  headers: string | null = null;

  /** Lists exchanges that may repeat redacted messages, because their writers had not seen the redaction. */
  readonly outdated: string[] = [];

  /** Returns true while the log has no message. */
  get isEmpty(): boolean {
    return this.#roots.length === 0;
  }

  /** Applies the next record of the log. A record that was applied before is skipped. */
  apply({ seq, record, parentId, side, bytes }: StoredRecord): void {
    if (seq <= this.lastSeq) return;
    this.lastSeq = seq;
    // Prompts, forms and summaries also stay in memory, so every record counts.
    this.bytes += bytes;
    const kind = throughlineKind(record);
    if (kind === "exchange") return this.#applyExchange(record.id, record["data"] as ExchangeData);
    if (kind === "prompt") return this.parts.apply(record["data"] as PromptData);
    const [, hash, derived] = messageId.exec(record.id) ?? [];
    if (hash === undefined) {
      const before = side || parentId === null ? undefined : this.#byRecord.get(parentId);
      // A message after a record of another program follows the message before that record.
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

  /** Drops a summary that the provider refused, because the next request would be refused with it too. */
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

  /** Adds the forms that an exchange states. Its frame gives their numbers. */
  addForms({ forms = {}, frame }: Pick<ExchangeData, "forms" | "frame">): void {
    const numbers = new Map(this.#statedForms(frame).map(([{ id }, form]) => [id, form]));
    for (const [id, form] of Object.entries(forms)) this.#nodes.get(id)?.addForm(form, numbers.get(id) ?? null);
  }

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

  /** Returns the message whose first record has this id, or null. */
  node(id: string): WireNode | null {
    return this.#nodes.get(id) ?? null;
  }

  /** Returns the message of a record, or the message before a record of another program. Null when there is none. */
  nodeOf(recordId: string): WireNode | null {
    return this.#byRecord.get(recordId) ?? null;
  }

  /** Returns whether a call is stored, by the id of its exchange. */
  hasExchange(id: string): boolean {
    return this.#exchanges.has(id);
  }

  /** Returns the newest attempt with a body, or null. */
  callOf(requestSha256: string): RecordedCall | null {
    return this.#calls.get(requestSha256) ?? null;
  }

  /** Returns whether any call has ended in the session, whatever its outcome. */
  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** Returns whether a call with another body was answered in the session. */
  hasAnsweredOther(requestSha256: string): boolean {
    for (const [sha256, { outcome }] of this.#calls)
      if (sha256 !== requestSha256 && outcome === "answered") return true;
    return false;
  }

  /** Returns the summary messages that were last sent in place of all messages up to this one, as JSON, or null. */
  summaryUpTo(messageId: string): string | null {
    return this.#summaries.get(messageId) ?? null;
  }

  /** Returns the reply to which the provider gave this id, or null. */
  reply(responseId: string): WireNode | null {
    return this.#replies.get(responseId) ?? null;
  }

  /**
   * Matches a request with the log, starting after a message.
   *
   * @param from the message that the request follows, or null at the start of a conversation
   * @param earlier an earlier match of the same request after the same message, from which the search continues
   */
  match(split: SplitRequest, from: WireNode | null = null, earlier: ChainMatch | null = null): ChainMatch {
    const last = earlier?.node ?? null;
    // A log that was read again has new nodes, so an earlier match may be outdated.
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
    // An equal text means the same message, so the message need not be parsed.
    const same = children.findLast((child) => !child.isRedacted && child.text === unit.text);
    if (same !== undefined) return same;
    const id = unitId(split, index, node);
    return children.find((child) => child.id === id) ?? null;
  }

  /** Returns the text of a frame. @throws {RangeError} for a frame that names content which the log does not have */
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

  /** Returns the ids of the messages that a frame names, in order. Text of the frame itself has none. */
  frameIds(frame: readonly FrameEntry[]): readonly string[] {
    return frame.flatMap((entry) => {
      if (typeof entry === "string" || "part" in entry) return [];
      return "id" in entry ? [entry.id] : this.#runNodes(entry).map(({ id }) => id);
    });
  }

  #formText({ id, form }: { readonly id: string; readonly form: number }): string {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new RangeError(`The log has no message ${id}.`);
    return textOf(node, form);
  }

  #runTexts(run: FrameRun): readonly string[] {
    const { count, forms = [] } = run;
    return this.#runNodes(run).map((one, index) => textOf(one, forms[index - count + forms.length] ?? one.current));
  }

  #runNodes({ last, count, first }: FrameRun): readonly WireNode[] {
    const nodes: WireNode[] = [];
    let node = this.node(last);
    for (; node !== null && nodes.length < count; node = node.parent) nodes.push(node);
    if (nodes.length !== count || (first !== undefined && nodes.at(-1)?.id !== first))
      throw new RangeError(`The log has no ${count} messages up to ${last}.`);
    return nodes.reverse();
  }
}

/** @throws {RangeError} for a redacted message or a missing form */
function textOf(node: WireNode, form: number): string {
  if (node.isRedacted) throw new RangeError(`The message ${node.id} is redacted.`);
  const text = form === node.current ? node.text : node.textOf(form);
  if (text === null) throw new RangeError(`The log has no form ${form} of the message ${node.id}.`);
  return text;
}

/** Returns the content of a record that came from a request. Throughline's own records have none. */
function contentOf(record: SessionRecord): unknown {
  if (record.type === "message") return record["message"] ?? null;
  return throughlineKind(record) === null ? (record["data"] ?? null) : null;
}

/** Caches parsed messages, because each is looked up several times while a request is matched. */
const readUnits = new WeakMap<RequestUnit, readonly UnitDraft[]>();

/** Returns the records of a message before the message is matched with the log. */
export function draftsOf({ api, units }: SplitRequest, index: number): readonly UnitDraft[] {
  const unit = units[index];
  if (unit === undefined) throw new RangeError("A request has no such message.");
  const drafts = readUnits.get(unit) ?? unitDrafts(api, units, index);
  readUnits.set(unit, drafts);
  return drafts;
}

/** Returns whether a message of a request is a reply of the model. */
export function isReplyAt(split: SplitRequest, index: number): boolean {
  return draftsOf(split, index).some((draft) => "message" in draft && draft.message.role === "assistant");
}

/** Caches message ids by parent, because each id is requested several times. */
const unitHashes = new WeakMap<RequestUnit, Map<string, string>>();

/** Returns the id of the first record of a message. */
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

/** Returns the ids of a request's messages, as if the request started a conversation. */
export function chainIds(split: SplitRequest): readonly string[] {
  let parent: { readonly hash: string } | null = null;
  return Array.from(split.units.keys(), (index) => {
    const id: string = unitId(split, index, parent);
    parent = { hash: id.slice(1) };
    return id;
  });
}

/**
 * Returns the ids of the first message and of the first reply of a request, as if the request started a conversation.
 */
export function unitIds(split: SplitRequest): { readonly first: string | null; readonly firstReply: string | null } {
  let parent: { readonly hash: string } | null = null;
  let first: string | null = null;
  for (const index of split.units.keys()) {
    const id: string = unitId(split, index, parent);
    first ??= id;
    if (isReplyAt(split, index)) return { first, firstReply: id };
    parent = { hash: id.slice(1) };
  }
  return { first, firstReply: null };
}
