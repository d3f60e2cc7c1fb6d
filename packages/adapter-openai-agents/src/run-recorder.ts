import type { Fields } from "@throughline/core/internal";
import type { ModelRequest } from "@openai/agents-core";
import {
  agentItemAsStored,
  isAgentCall,
  isAgentResult,
  isSameAgentItem,
  plainJson,
} from "@throughline/foreign-formats/internal";

/** What a recorder needs of the session that it writes to. */
interface RecordedSession {
  /** Appends items to the session, in order. */
  recordItems(items: readonly Fields[]): Promise<void>;
}

/** Stores the items of one run as they come, and knows which of them the runner hands over again at its end. */
export class RunRecorder {
  readonly #session: RecordedSession;
  /** Not stored yet: the input of the run. */
  #input: readonly Fields[];
  /** Stored by the recorder, and not handed over by the runner so far. */
  #recorded: Fields[] = [];
  /** Calls of the last reply that have no result in the log. */
  #openCalls: Set<unknown>;
  #isHandedOff = false;
  readonly #beforeNextCall: () => Promise<void>;
  #hasAsked = false;
  /** One append after the other; a failure is thrown before the next step. */
  #last: Promise<void> = Promise.resolve();

  /**
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

  /** What is new of the input, where a callback of the caller decides. */
  setInput(items: readonly Fields[]): void {
    this.#input = items;
  }

  /** Call before a model is asked: everything that it is asked with is stored afterwards. False: it is another run's call. */
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

  /** Call with a whole reply, before anything is done with it. */
  async afterReply(output: readonly unknown[]): Promise<void> {
    const items = output.map((item) => agentItemAsStored(plainJson(item) ?? {}));
    this.#openCalls = new Set(items.filter(isAgentCall).map((item) => item["callId"]));
    await this.#store(items);
  }

  /** A tool has run. Structured results are stored as the runner sends them, with the next call. */
  toolEnded(toolCall: Fields, result: unknown): void {
    const { type, name, namespace, callId } = toolCall;
    if (type !== "function_call" || typeof result !== "string" || !this.#openCalls.has(callId)) return;
    if (/^\s*[[{]/.test(result.slice(0, 100))) return;
    const named = typeof namespace === "string" ? { name, namespace } : { name };
    const output = { type: "text", text: result };
    const item = { type: "function_call_result", ...named, callId, status: "completed", output };
    this.#openCalls.delete(callId);
    this.#last = this.#store([item]);
    // It is thrown before the next step.
    this.#last.catch(() => {});
  }

  /** The next call continues another agent: nothing of the calls before it may be in its input. */
  handedOff(): void {
    this.#isHandedOff = true;
  }

  /** Waits for what is being stored. */
  settled(): Promise<void> {
    return this.#last;
  }

  /** The items that the recorder has not stored. Each is found once: by its call, or by its content in order. */
  unrecorded(items: readonly Fields[]): readonly Fields[] {
    return items.filter((item) => {
      const at = this.#recorded.findIndex((one) => isSameAgentItem(one, item));
      if (at >= 0) this.#recorded.splice(at, 1);
      // The session stores it now.
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
