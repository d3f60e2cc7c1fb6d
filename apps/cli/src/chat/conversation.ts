import type { SessionSettings } from "@throughline/config/internal";
import { type AgentTool, hasErrorCode, openSession } from "@throughline/core";
import { forkToNewSession, freeRef, systemRandom, updateEntry } from "@throughline/core/internal";
import type { ChatDelta, SessionRef, SessionState, SessionStore } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import type { Turn } from "@throughline/session";
import type { AgentSession, AgentSessions, WholeTurnEvent } from "@throughline/session/whole-turn";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import { openAgent } from "../agent/open-agent.ts";
import { createBackgroundWork } from "./background-work.ts";
import type { BackgroundWork, SettleOptions } from "./background-work.ts";
import { causeText } from "./event-note.ts";
import { chooseModel } from "./choose-model.ts";
import type { ChosenModel, ModelChoice } from "./choose-model.ts";
import { forkFields, turnTitle } from "./made-session.ts";
import { readSessionModels } from "./session-models.ts";
import type { StartingSession } from "./starting-session.ts";

/** What a person talks to: one session at a time, and the model that answers in it. */
export interface Conversation extends AsyncDisposable {
  readonly store: SessionStore;
  /** Where the next turn goes. There may be no session yet: it is made for the first word. */
  readonly ref: SessionRef;
  /** The imported session that the first message forks; null for any other, and from then on. */
  readonly origin: SessionState | null;
  /** Null until the session is there. */
  readonly session: AgentSession | null;
  readonly chosen: ChosenModel;
  /**
   * Makes another session the current one; one that is there is opened, one that is not, or that is a fork of an import, waits
   * for its first word.
   */
  switchTo(start: StartingSession): Promise<AgentSession | null>;
  /** Another model from now on. @throws {ThroughlineError} INPUT_INVALID, MODEL_KEY_MISSING */
  useModel(name: string): Promise<ChosenModel>;
  /** Opens the session if it is not, and gives it. */
  open(): Promise<AgentSession>;
  runTurn(text: string | null, options: ConversationTurnOptions): Promise<Turn>;
  /** What another program put in the place of this session; null when none did. Asks the store. */
  replacement(): Promise<AgentSession["replacement"]>;
  /** Stops what runs in the session or beside it. `open` opens it again. */
  stop(): Promise<void>;
  /** How those fare who write summaries, by name. */
  readonly breakers: SummarizerBreakers;
  /** Sends events to this listener from now on, and to no other. */
  listen(listener: ConversationListener): void;
  /** Waits for what goes on beside the turns. */
  settle(options: SettleOptions): Promise<void>;
}

export interface ConversationListener {
  onEvent(event: WholeTurnEvent): void;
  /** What is worth knowing beside the events. */
  onNote(message: string): void;
}

interface ConversationTurnOptions {
  readonly signal: AbortSignal;
  readonly onDelta: (delta: ChatDelta) => void;
  readonly whenBusy: "queue" | "reject" | "branch" | null;
  readonly maxSteps?: number;
}

export interface ConversationOptions {
  readonly store: SessionStore;
  readonly system: string | null;
  readonly tools: readonly AgentTool[];
  /** The folder of the tools. */
  readonly workspaceRoot: string | null;
  /** The folder that a new session belongs to. */
  readonly folder: string;
  /** What the session says of its model is put in when one is opened. */
  readonly choice: Omit<ModelChoice, "session">;
  readonly settings: SessionSettings;
  readonly breakers: SummarizerBreakers;
}

/** Begins at `start`. @throws {ThroughlineError} what choosing a model and opening the session throw */
export async function createConversation(options: ConversationOptions, start: StartingSession): Promise<Conversation> {
  const conversation = new OpenConversation(options, start);
  await conversation.switchTo(start);
  return conversation;
}

class OpenConversation implements Conversation {
  readonly store: SessionStore;
  readonly breakers: SummarizerBreakers;
  readonly #options: ConversationOptions;
  readonly #work: BackgroundWork = createBackgroundWork();
  #wanted: ModelChoice["wanted"];
  /** For the model of that name: who summarizes goes with who answers. */
  #agent: { readonly name: string; readonly sessions: AgentSessions } | null = null;
  /** What opening the first session led to, before anybody listens. */
  readonly #early: ((listener: ConversationListener) => void)[] = [];
  #listener: ConversationListener = {
    onEvent: (event) => this.#early.push((listener) => listener.onEvent(event)),
    onNote: (message) => this.#early.push((listener) => listener.onNote(message)),
  };
  ref: SessionRef;
  origin: SessionState | null;
  /** Whether the first word may go to another free key than `ref`. */
  #isAnyKey = false;
  session: AgentSession | null = null;
  chosen: ChosenModel;

  constructor(options: ConversationOptions, { ref, origin }: StartingSession) {
    this.#options = options;
    this.store = options.store;
    this.breakers = options.breakers;
    this.ref = ref;
    this.origin = origin;
    this.#wanted = options.choice.wanted;
    this.chosen = chooseModel({ ...options.choice, session: null });
  }

  async switchTo({ ref, origin, isAnyKey = false }: StartingSession): Promise<AgentSession | null> {
    await this.session?.close();
    this.session = null;
    this.ref = ref;
    this.origin = origin;
    this.#isAnyKey = isAnyKey;
    const state = origin ?? (await this.store.load(ref));
    await this.#choose(state);
    return state === null || origin !== null ? null : this.open();
  }

  async #choose(state: SessionState | null): Promise<void> {
    const wanted = this.#wanted;
    const { choice } = this.#options;
    const isOwnAsked = state !== null && wanted === null;
    const session = isOwnAsked ? await readSessionModels(this.store, state) : null;
    // The model of an import comes last: another program used it, and nobody here has chosen it.
    const usual = this.origin === null ? null : chooseModel({ ...choice, wanted, session: null });
    this.chosen = usual === null || usual.isOffline ? chooseModel({ ...choice, wanted, session }) : usual;
    const { problem, name } = this.chosen;
    if (problem !== null) this.#listener.onNote(`${problem.message} ${name} answers. ${problem.remedy}`);
  }

  async useModel(name: string): Promise<ChosenModel> {
    // It is opened again below: a session that was reset by another program must not be left without a word.
    await this.session?.refresh();
    const wanted = { name, source: "/model" };
    this.chosen = chooseModel({ ...this.#options.choice, wanted, session: null });
    this.#wanted = wanted;
    if (this.session !== null) {
      await this.session.close();
      this.session = null;
      await this.open();
    }
    return this.chosen;
  }

  async open(): Promise<AgentSession> {
    const sessions = await this.#sessions();
    if (this.session === null) {
      await this.#create();
      this.session = await sessions.open(this.ref);
      await this.session.setModel(this.#model());
    }
    return this.session;
  }

  /** Makes the session that the first word waits for: of this folder, and of an import a fork. */
  async #create(): Promise<void> {
    const { store, origin } = this;
    const { folder } = this.#options;
    if (origin === null) {
      for (;;) {
        const { isNew } = await openSession(store, this.ref, { random: systemRandom, entry: { cwd: folder } });
        if (isNew || !this.#isAnyKey) break;
        // A conversation that began beside this one took the key: what is said here is no part of it.
        this.ref = await freeRef(store, this.ref);
      }
      this.#isAnyKey = false;
      return;
    }
    const fork = await this.#fork(origin);
    await updateEntry(store, fork.ref, (entry) => ({ ...entry, ...forkFields(origin, folder) }));
    this.origin = null;
  }

  async #fork(origin: SessionState): Promise<SessionState> {
    for (;;) {
      try {
        const options = { sessionId: systemRandom.uuid(), label: "", target: this.ref };
        return await forkToNewSession(this.store, origin, options);
      } catch (error) {
        if (!hasErrorCode(error, "SESSION_EXISTS")) throw error;
        // Another process took the key since it was found free.
        this.ref = await freeRef(this.store, this.ref);
      }
    }
  }

  #model(): SessionModel {
    return { ...this.chosen.model, maxOutputTokens: this.#options.settings.maxOutputTokens };
  }

  async #sessions(): Promise<AgentSessions> {
    if (this.#agent !== null && this.#agent.name !== this.chosen.name) {
      await this.#agent.sessions.close();
      this.#agent = null;
      this.session = null;
    }
    this.#agent ??= { name: this.chosen.name, sessions: this.#openAgent() };
    return this.#agent.sessions;
  }

  #openAgent(): AgentSessions {
    const { choice, ...parts } = this.#options;
    const onEvent = (event: WholeTurnEvent): void => {
      this.#work.see(event);
      this.#listener.onEvent(event);
    };
    const onSummarizerFailed = (name: string, cause: unknown): void =>
      this.#listener.onNote(`No summary by ${name}: ${causeText(cause)}`);
    const onNote = (message: string): void => this.#listener.onNote(message);
    return openAgent({ ...parts, environment: choice.environment, onEvent, onSummarizerFailed, onNote }, this.chosen);
  }

  async runTurn(text: string | null, options: ConversationTurnOptions): Promise<Turn> {
    const session = await this.open();
    const { whenBusy: asked, onDelta, ...rest } = options;
    const whenBusy = asked ?? (await this.#whenBusyOfEntry(session));
    const turnOptions = { ...rest, onDelta, ...(whenBusy === null ? {} : { whenBusy }) };
    const turn = await (text === null ? session.resume(turnOptions) : session.runTurn(text, turnOptions));
    if (turn.outcome === "done" && text !== null) await this.#title(turn.ref, text);
    // A branch is a session of its own: what is said next belongs there.
    if (turn.ref.key !== this.ref.key) await this.switchTo({ ref: turn.ref, origin: null });
    return turn;
  }

  /** An entry with a `queueMode` wants words to wait. Words of one process cannot join a turn of another. */
  async #whenBusyOfEntry({ ref }: AgentSession): Promise<"queue" | null> {
    const queueMode: unknown = (await this.store.load(ref))?.entry.queueMode;
    return typeof queueMode === "string" && queueMode !== "" ? "queue" : null;
  }

  /** The turn is stored: a title that cannot be written is a note, and the next turn makes one. */
  async #title(ref: SessionRef, text: string): Promise<void> {
    try {
      await turnTitle(this.store, ref, text);
    } catch (error) {
      this.#listener.onNote(`The session was not given a title: ${causeText(error)}`);
    }
  }

  async replacement(): Promise<AgentSession["replacement"]> {
    try {
      await this.session?.refresh();
      return null;
    } catch (error) {
      if (!hasErrorCode(error, "SESSION_REPLACED")) throw error;
      return this.session?.replacement ?? null;
    }
  }

  async stop(): Promise<void> {
    await this.#agent?.sessions.close();
    this.#agent = null;
    this.session = null;
  }

  listen(listener: ConversationListener): void {
    this.#listener = listener;
    for (const tell of this.#early.splice(0)) tell(listener);
  }

  settle(options: SettleOptions): Promise<void> {
    return this.#work.settle(this.store, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.sessions.close();
  }
}
