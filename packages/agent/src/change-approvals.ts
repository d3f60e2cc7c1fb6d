import { sep } from "node:path";
import type { SessionEntry, SessionRef, SessionStore } from "@throughline/core";
import { isFields, systemClock, updateEntry } from "@throughline/core/internal";
import type { SessionsOptions } from "@throughline/session";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";
import type { PlanChange, PlannedChange } from "@throughline/tools/internal";

type ApproveTool = NonNullable<SessionsOptions["approveTool"]>;
type ToolCall = Parameters<ApproveTool>[0];
type CallContext = Parameters<ApproveTool>[1];
type Decision = Awaited<ReturnType<ApproveTool>>;

/** Holds what a person decides on: one call of `write` or `edit`. */
export interface ChangeQuestion extends PlannedChange {
  readonly tool: string;
  /** Counts the changes of the reply from 1. */
  readonly number: number;
  readonly total: number;
}

export type ChangeAnswer =
  /** `session` also allows the changes that follow in this session and folder. */
  | { readonly decision: "once" | "session" }
  /** The model reads the words; null for the usual sentence. */
  | { readonly decision: "no"; readonly words: string | null }
  | { readonly decision: "cancel" };

/** Asks a person. The signal aborts with the turn; the answer does not matter then. */
export type AskChange = (question: ChangeQuestion, signal: AbortSignal) => Promise<ChangeAnswer>;

export interface ChangeApprovalsOptions {
  readonly store: SessionStore;
  readonly plan: PlanChange;
  /** Names the real folder of the tools. */
  readonly folder: string;
  /** Names the folder of memories, relative to `folder`. */
  readonly memoryFolder: string;
  /** Holds the setting `approval`. */
  readonly rule: "ask" | "allow" | "deny";
  /** States what the records of unasked decisions name: a setting, or a flag of the command line. */
  readonly decider: "setting" | "flag";
  /** Is null where no person can be asked. */
  readonly ask: AskChange | null;
}

/** Holds the standing answer of a person, in the entry of the session. */
export interface AllowedEdits {
  readonly folder: string;
  readonly sinceMs: number;
}

const field = "allowedEdits";

/** Returns the standing answer for changes in a folder; null without one. It counts for one session id, so no fork has it. */
export function readAllowedEdits({ sessionId, [field]: given }: SessionEntry, folder: string): AllowedEdits | null {
  if (!isFields(given) || given["sessionId"] !== sessionId || given["folder"] !== folder) return null;
  const { sinceMs } = given;
  return { folder, sinceMs: typeof sinceMs === "number" ? sinceMs : 0 };
}

/** Takes the standing answer back: each change is asked again. */
export async function withdrawAllowedEdits(store: SessionStore, ref: SessionRef): Promise<void> {
  await updateEntry(store, ref, (entry) => {
    const { [field]: given, ...rest } = entry;
    return given === undefined ? entry : (rest as SessionEntry);
  });
}

/**
 * Decides on the changes of files that a model asks for: by the setting, by a standing answer, or by asking a person. The
 * decision is about the bytes that the person saw.
 */
export class ChangeApprovals {
  readonly #options: ChangeApprovalsOptions;
  /** Holds the hash of the file that a call was approved for, by the id of the call. */
  readonly #expected = new Map<string, string | null>();
  /** Holds the calls that may run, by the path that they change. */
  readonly #running = new Map<string, { readonly callId: string; readonly ended: Promise<void>; end(): void }>();
  #asked = 0;
  #total = 0;
  #flushTurnId: string | null = null;

  constructor(options: ChangeApprovalsOptions) {
    this.#options = options;
  }

  readonly expectBefore = (callId: string): string | null | undefined => this.#expected.get(callId);

  readonly approveTool: ApproveTool = async (call, context) => {
    const plan = await this.#planAfterOthers(call, context.signal);
    if (plan === null) return "unasked";
    if (this.#isUnrecorded && (plan.kind === "refused" || !plan.isDelicate)) return "unasked";
    this.#asked += 1;
    if (plan.kind === "refused") return { refuse: plan.reason, decision: "no", by: "program" };
    const decision = await this.#decide(plan, call, context);
    if (typeof decision === "object" && "approve" in decision) this.#allow(plan, context.callId);
    return decision;
  };

  /** Learns of each event of a turn. */
  see(event: WholeTurnEvent): void {
    switch (event.name) {
      case "record.appended": {
        const changes = changesIn(event.record.record);
        if (changes === null) return;
        this.#asked = 0;
        this.#total = changes;
        break;
      }
      case "tool.finished":
      case "tool.refused":
        this.#end((callId) => callId === event.callId);
        break;
      case "flush.asked":
        this.#flushTurnId = event.turnId;
        break;
      case "flush.silent":
      case "flush.ended":
      case "flush.failed":
        this.#flushTurnId = null;
        break;
      case "turn.closed":
        this.#flushTurnId = null;
        this.#end(() => true);
        break;
    }
  }

  /** A setting that allows changes without a person needs no record of each: its program stated it for all. */
  get #isUnrecorded(): boolean {
    const { ask, rule, decider } = this.#options;
    return ask === null && rule !== "deny" && decider === "setting";
  }

  /** A call is planned on the file as the call before leaves it, so that a person sees what will happen. */
  async #planAfterOthers(call: ToolCall, signal: AbortSignal): ReturnType<PlanChange> {
    for (;;) {
      const plan = await this.#options.plan(call);
      const running = this.#running.get(plan?.path ?? "");
      if (running === undefined || signal.aborted) return plan;
      await Promise.race([running.ended, aborted(signal)]);
    }
  }

  async #decide(plan: PlannedChange, call: ToolCall, context: CallContext): Promise<Decision> {
    const { rule, decider, ask, store, folder } = this.#options;
    const { ref, signal, turnId } = context;
    const facts = factsOf(plan);
    if (rule === "deny") return { ...facts, refuse: deniedText, decision: "no", by: decider };
    if (turnId !== undefined && turnId === this.#flushTurnId && this.#isMemory(plan))
      return { approve: { ...facts, decision: "once", by: "setting" } };
    if (!plan.isDelicate && (rule === "allow" || ask === null))
      return { approve: { ...facts, decision: "once", by: decider } };
    if (ask === null) return { ...facts, refuse: unaskedText, decision: "no", by: "program" };
    const state = ref === undefined ? null : await store.load(ref);
    if (!plan.isDelicate && state !== null && readAllowedEdits(state.entry, folder) !== null)
      return { approve: { ...facts, decision: "once", by: "session" } };
    const askedMs = systemClock.nowMs();
    const number = this.#asked;
    const question = { ...plan, tool: call.name, number, total: Math.max(number, this.#total) };
    const answer = await ask(question, signal);
    const asked = { ...facts, askedMs, by: "person" } as const;
    switch (answer.decision) {
      case "once":
        return { approve: { ...asked, decision: "once" } };
      case "session":
        // Stored before the change, so that the next question is not asked again after a crash.
        if (ref !== undefined) await this.#keepAnswer(ref);
        return { approve: { ...asked, decision: "session" } };
      case "no":
        return answer.words === null
          ? { ...asked, refuse: refusedText(call.name), decision: "no" }
          : { ...asked, refuse: answer.words, words: answer.words, decision: "no" };
      case "cancel":
        return { ...asked, refuse: "The user canceled the turn; the call was not run.", decision: "cancel" };
    }
  }

  async #keepAnswer(ref: SessionRef): Promise<void> {
    const { store, folder } = this.#options;
    const sinceMs = systemClock.nowMs();
    await updateEntry(store, ref, (entry) => ({
      ...entry,
      [field]: { sessionId: entry.sessionId, folder, sinceMs },
    }));
  }

  #isMemory({ path }: PlannedChange): boolean {
    const names = this.#options.memoryFolder.split(sep).join("/").replace(/\/$/, "");
    return path.startsWith(`${names}/`);
  }

  #allow({ path, beforeSha256 }: PlannedChange, callId: string): void {
    this.#expected.set(callId, beforeSha256);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    this.#running.set(path, { callId, ended, end });
  }

  #end(isEnded: (callId: string) => boolean): void {
    for (const [path, { callId, end }] of this.#running) {
      if (!isEnded(callId)) continue;
      this.#running.delete(path);
      this.#expected.delete(callId);
      end();
    }
  }
}

const unaskedText =
  "A person decides on each change of this file, and nobody can be asked here. Nothing was changed; `throughline chat` on a terminal asks.";
const deniedText = "The setting `approval` denies changes of files. Nothing was changed.";

function refusedText(tool: string): string {
  return tool === "edit" ? "The user did not allow this edit." : "The user did not allow this file to be written.";
}

interface ChangeFacts {
  readonly path: string;
  readonly beforeSha256?: string;
  readonly afterSha256: string;
}

function factsOf({ path, beforeSha256, afterSha256 }: PlannedChange): ChangeFacts {
  return { path, ...(beforeSha256 === null ? {} : { beforeSha256 }), afterSha256 };
}

/** Counts the changes that a reply asks for. Null for any other record. */
function changesIn(record: Readonly<Record<string, unknown>>): number | null {
  const message = record["message"];
  if (!isFields(message) || message["role"] !== "assistant" || !Array.isArray(message["content"])) return null;
  const blocks: readonly unknown[] = message["content"];
  return blocks.filter(
    (block) =>
      isFields(block) && block["type"] === "toolCall" && (block["name"] === "write" || block["name"] === "edit"),
  ).length;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
