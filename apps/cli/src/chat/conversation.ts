import type { ChatDelta, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { createSessions } from "@throughline/session";
import type { Session, Sessions, SessionTool, SessionTurnEvent, Turn } from "@throughline/session";
import { chooseModel } from "./choose-model.ts";
import type { ChosenModel, ModelChoice } from "./choose-model.ts";

/** What a person talks to: one session at a time, and the model that answers in it. */
export interface Conversation extends AsyncDisposable {
  readonly store: SessionStore;
  /** Where the next turn goes. There may be no session yet: it is made for the first word. */
  readonly ref: SessionRef;
  /** Null until the session is there. */
  readonly session: Session | null;
  readonly chosen: ChosenModel;
  /** Makes another session the current one; one that is there is opened, one that is not waits for its first word. */
  switchTo(ref: SessionRef): Promise<Session | null>;
  /** Another model from now on. @throws {ThroughlineError} INPUT_INVALID, MODEL_KEY_MISSING */
  useModel(name: string): Promise<ChosenModel>;
  /** Opens the session if it is not, and gives it. */
  open(): Promise<Session>;
  runTurn(text: string | null, options: ConversationTurnOptions): Promise<Turn>;
}

interface ConversationTurnOptions {
  readonly signal: AbortSignal;
  readonly onDelta: (delta: ChatDelta) => void;
  readonly onEvent: (event: SessionTurnEvent) => void;
  readonly whenBusy: "queue" | "reject" | "branch" | null;
  readonly maxSteps?: number;
}

export interface ConversationOptions {
  readonly store: SessionStore;
  readonly system: string | null;
  readonly tools: readonly SessionTool[];
  /** The session's own model is put in when one is opened. */
  readonly choice: Omit<ModelChoice, "own">;
}

/** Begins at `ref`. @throws {ThroughlineError} what choosing a model and opening the session throw */
export async function createConversation(options: ConversationOptions, ref: SessionRef): Promise<Conversation> {
  const conversation = new OpenConversation(options, ref);
  await conversation.switchTo(ref);
  return conversation;
}

class OpenConversation implements Conversation {
  readonly store: SessionStore;
  readonly #options: ConversationOptions;
  #wanted: ModelChoice["wanted"];
  #sessions: Sessions | null = null;
  ref: SessionRef;
  session: Session | null = null;
  chosen: ChosenModel;

  constructor(options: ConversationOptions, ref: SessionRef) {
    this.#options = options;
    this.store = options.store;
    this.ref = ref;
    this.#wanted = options.choice.wanted;
    this.chosen = chooseModel({ ...options.choice, own: null });
  }

  async switchTo(ref: SessionRef): Promise<Session | null> {
    await this.session?.close();
    this.session = null;
    this.ref = ref;
    const state = await this.store.load(ref);
    this.#choose(state);
    return state === null ? null : this.open();
  }

  #choose(state: SessionState | null): void {
    const { modelProvider, model } = state?.entry ?? {};
    const own = modelProvider === undefined || model === undefined ? null : { provider: modelProvider, modelId: model };
    this.chosen = chooseModel({ ...this.#options.choice, wanted: this.#wanted, own });
  }

  async useModel(name: string): Promise<ChosenModel> {
    const wanted = { name, source: "/model" };
    this.chosen = chooseModel({ ...this.#options.choice, wanted, own: null });
    this.#wanted = wanted;
    await this.session?.setModel(this.chosen.model);
    return this.chosen;
  }

  async open(): Promise<Session> {
    const { store, system, tools } = this.#options;
    this.#sessions ??= createSessions({ store, model: this.chosen.model, system, tools });
    if (this.session === null) {
      this.session = await this.#sessions.open(this.ref);
      await this.session.setModel(this.chosen.model);
    }
    return this.session;
  }

  async runTurn(text: string | null, options: ConversationTurnOptions): Promise<Turn> {
    const session = await this.open();
    const { whenBusy, onDelta, ...rest } = options;
    const turnOptions = { ...rest, onDelta, ...(whenBusy === null ? {} : { whenBusy }) };
    const turn = await (text === null ? session.resume(turnOptions) : session.runTurn(text, turnOptions));
    // A branch is a session of its own: what is said next belongs there.
    if (turn.ref.key !== this.ref.key) await this.switchTo(turn.ref);
    return turn;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sessions?.close();
  }
}
