import type { Fields } from "@throughline/core/internal";
import type { ModelRequest } from "@openai/agents-core";
import {
  agentItemAsStored,
  isAgentCall,
  isAgentResult,
  isSameAgentItem,
  plainJson,
} from "@throughline/foreign-formats/internal";

/** Describes the part of a session that a recorder uses. */
interface RecordedSession {
  /** Appends items to the session, in order. */
  recordItems(items: readonly Fields[]): Promise<void>;
}

/** Stores the items of one run as they arrive, and recognizes them when the runner passes them again at its end. */
export class RunRecorder {
  readonly #session: RecordedSession;
  /** Holds the input of the run until it is stored. */
  #input: readonly Fields[];
  /** Holds items that the recorder stored and the runner has not passed yet. */
  #recorded: Fields[] = [];
  /** Holds the ids of calls in the last reply without a result in the log. */
  #openCalls: Set<unknown>;
  #isHandedOff = false;
  readonly #beforeNextCall: () => Promise<void>;
  #hasAsked = false;
  /** Serializes the appends; a failure is thrown before the next step. */
  #last: Promise<void> = Promise.resolve();

  /**
   * Creates a recorder for one run.
   * @param input the input of the run
   * @param openCalls the ids of calls that a resumed run carries out, because the session has no result of them
   * @param beforeNextCall asked before each call of a model except the first; what it throws ends the run
   */
  constructor(
    session: RecordedSession,
    {
      input,
      openCalls,
      beforeNextCall,
    }: {
      readonly input: readonly Fields[];
      readonly openCalls: readonly unknown[];
      readonly beforeNextCall: () => Promise<void>;
    },
  ) {
    this.#session = session;
    this.#input = input;
    this.#openCalls = new Set(openCalls);
    this.#beforeNextCall = beforeNextCall;
  }

  /** Sets the new items of the input, because a callback of the caller may change them. */
  setInput(items: readonly Fields[]): void {
    this.#input = items;
  }

  /**
   * Stores all input of a model call; await it before the model is asked. Returns false when the call belongs to
   * another run.
   */
  async beforeCall(request: Pick<ModelRequest, "input">): Promise<boolean> {
    const isOwn = await this.#keepInput(request);
    if (this.#hasAsked) await this.#beforeNextCall();
    this.#hasAsked = true;
    return isOwn;
  }

  async #keepInput({ input }: Pick<ModelRequest, "input">): Promise<boolean> {
    const items = typeof input === "string" ? [] : input.map((item) => plainJson(item) ?? {});
    const results = items.filter((item) => isAgentResult(item) && this.#openCalls.has(item["callId"]));
    const asked = new Set(items.map((item) => item["callId"]));
    // An agent that serves as a tool asks its own model while the calls are open.
    const isHandedOff = this.#isHandedOff;
    this.#isHandedOff = false;
    if (!isHandedOff && this.#openCalls.size > 0 && ![...this.#openCalls].some((id) => asked.has(id))) return false;
    const fresh = this.#input;
    this.#input = [];
    this.#openCalls.clear();
    await this.#store([...fresh, ...results]);
    return true;
  }

  /** Stores a complete reply; await it before the reply is used. */
  async afterReply(output: readonly unknown[]): Promise<void> {
    const items = output.map((item) => agentItemAsStored(plainJson(item) ?? {}));
    this.#openCalls = new Set(items.filter(isAgentCall).map((item) => item["callId"]));
    await this.#store(items);
  }

  /**
   * Stores the text result of a tool that has ended. Structured results are stored with the next call, in the runner's
   * form.
   */
  toolEnded(toolCall: Fields, result: unknown): void {
    const { type, name, namespace, callId } = toolCall;
    if (type !== "function_call" || typeof result !== "string" || !this.#openCalls.has(callId)) return;
    if (/^\s*[[{]/.test(result.slice(0, 100))) return;
    const named = typeof namespace === "string" ? { name, namespace } : { name };
    const output = { type: "text", text: result };
    const item = { type: "function_call_result", ...named, callId, status: "completed", output };
    this.#openCalls.delete(callId);
    this.#last = this.#store([item]);
    // The next append rethrows the failure. Without this handler, the rejection would end the process first.
    this.#last.catch(() => {});
  }

  /** Marks that the next call continues another agent, whose input need not contain the earlier calls. */
  handedOff(): void {
    this.#isHandedOff = true;
  }

  /** Waits until all started appends have ended. */
  settled(): Promise<void> {
    return this.#last;
  }

  /**
   * Returns the items that the recorder has not stored. Each stored item matches once: by its call, or by its content
   * in order.
   */
  unrecorded(items: readonly Fields[]): readonly Fields[] {
    return items.filter((item) => {
      const at = this.#recorded.findIndex((one) => isSameAgentItem(one, item));
      if (at >= 0) this.#recorded.splice(at, 1);
      // The session stores this result now, so the next model call must not store it again.
      else if (isAgentResult(item)) this.#openCalls.delete(item["callId"]);
      return at < 0;
    });
  }

  async #store(items: readonly Fields[]): Promise<void> {
    const before = this.#last;
    this.#last = (async () => {
      await before;
      if (items.length === 0) return;
      await this.#session.recordItems(items);
      this.#recorded.push(...items);
    })();
    await this.#last;
  }
}
