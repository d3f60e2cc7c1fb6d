import {
  isFromNewerVersion,
  runSteps,
  type Steps,
  throughlineKind,
  isContinueMessage,
} from "@throughline/core/internal";
import type { Finding, StoredRecord } from "@throughline/core";
import { contextStateSteps, modelOf, thinkingLevelOf, type Context, type ContextState } from "./build-context.ts";
import { contributingTypes, contribution } from "./collect-messages.ts";
import { reportLostOrigin } from "./lost-origin.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import { beginsWait } from "./waiting-reply.ts";

/** These records change the messages of other records, or move the beginning of the branch, so they cause a rebuild. */
const changingTypes: ReadonlySet<string> = new Set(["compaction", "reset", "context_edit"]);
const changingKinds: ReadonlySet<string | null> = new Set(["edit", "redaction", "note"]);

/**
 * Holds a context that grows with each plain record, because a rebuild reads all records. Any other record causes a
 * rebuild.
 */
export class GrowingContext {
  /** Increases with every rebuild. State that depends on an earlier generation is invalid. */
  generation = 0;
  /** Counts the records that were read, for tests that measure work. */
  recordsRead = 0;
  private readonly records: StoredRecord[] = [];
  /**
   * Holds all ids, and the parent ids that were named before their records arrived. A record with such an id changes
   * the path to the head.
   */
  private readonly known = new Set<string>();
  /**
   * Counts the records that are in `known`. The set is filled lazily, because a session that is only read does not need
   * it.
   */
  private knownCount = 0;
  private headId: string | null = null;
  private state: ContextState | null = null;
  private messages: NeutralMessage[] = [];
  private findings: Finding[] = [];
  private model: Context["model"] = null;
  private thinkingLevel = "off";
  private isGrown = false;

  append(stored: StoredRecord): void {
    const { state } = this;
    const isPlain = state !== null && this.isPlain(stored, state);
    this.records.push(stored);
    if (!stored.side) this.headId = stored.id;
    if (isPlain) this.add(stored, state);
    else this.state = null;
  }

  moveHead(headId: string | null): void {
    this.headId = headId;
    this.state = null;
  }

  current(): Context {
    const state = this.state ?? runSteps(this.rebuild());
    return {
      ...state.context,
      headId: this.isGrown ? this.headId : state.context.headId,
      messages: this.messages.slice(),
      recordsInContext: this.messages.length,
      model: this.model,
      thinkingLevel: this.thinkingLevel,
      omitted: state.omitted.ranges(),
      findings: this.findings.slice(),
    };
  }

  /** Rebuilds the context if needed, so that the next query finds it ready. */
  *prepare(): Steps<void> {
    if (this.state === null) yield* this.rebuild();
  }

  messagesFrom(place: number): readonly NeutralMessage[] {
    runSteps(this.prepare());
    return this.messages.slice(place);
  }

  currentModel(): Context["model"] {
    runSteps(this.prepare());
    return this.model;
  }

  private *rebuild(): Steps<ContextState> {
    const state = yield* contextStateSteps(this.records, this.headId);
    this.recordsRead += this.records.length;
    this.generation++;
    this.state = state;
    this.isGrown = false;
    this.messages = [...state.context.messages];
    this.findings = [...state.context.findings];
    this.model = state.context.model;
    this.thinkingLevel = state.context.thinkingLevel;
    return state;
  }

  private isPlain(stored: StoredRecord, { edits, isWaiting }: ContextState): boolean {
    const { id, parentId, type, record, side } = stored;
    if (isWaiting || beginsWait(record)) return false;
    // A continue message changes an earlier record: the aborted reply before it is then sent.
    if (isContinueMessage(record)) return false;
    if (this.isKnown(id) || edits.has(id) || isFromNewerVersion(record)) return false;
    if (changingTypes.has(type) || changingKinds.has(throughlineKind(record))) return false;
    return side || parentId === this.headId;
  }

  private isKnown(id: string): boolean {
    for (; this.knownCount < this.records.length; this.knownCount++) {
      const { id: knownId, parentId } = this.records[this.knownCount] as StoredRecord;
      this.known.add(knownId);
      if (parentId !== null) this.known.add(parentId);
    }
    return this.known.has(id);
  }

  private add(stored: StoredRecord, state: ContextState): void {
    this.recordsRead++;
    if (stored.side) return;
    this.isGrown = true;
    this.model = modelOf(stored) ?? this.model;
    this.thinkingLevel = thinkingLevelOf(stored) ?? this.thinkingLevel;
    if (!contributingTypes.has(stored.type)) return;
    const outcome = contribution(stored, undefined, state.change.affects(stored), this.findings);
    if (outcome === null) return;
    reportLostOrigin(stored, this.records, this.findings);
    if (typeof outcome === "string") {
      state.omitted.add(stored.seq, outcome);
    } else {
      this.messages.push(outcome);
      state.omitted.add(stored.seq, "included");
    }
  }
}
