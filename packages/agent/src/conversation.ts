import { hasErrorCode, openSession } from "@throughline/core";
import { freeRef, systemRandom } from "@throughline/core/internal";
import type { ChatDelta, SessionRef, SessionState, SessionStore } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import type { Turn } from "@throughline/session";
import type { AgentSession, AgentSessions } from "@throughline/session/whole-turn";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import { type AgentContext, conversationFolder } from "./agent-context.ts";
import { type AgentListener, type AgentParts, agentParts, openAgentSessions } from "./agent-sessions.ts";
import type { AskChange } from "./change-approvals.ts";
import { createBackgroundWork } from "./background-work.ts";
import type { BackgroundWork, SettleOptions } from "./background-work.ts";
import { chooseModel, modelChoice, problemNote } from "./choose-model.ts";
import type { ChosenModel, ModelChoice } from "./choose-model.ts";
import { forkConversation } from "./fork-conversation.ts";
import type { NamedFile } from "./node/named-file.ts";
import { type ProjectFile, projectFileTimes, readProjectFiles } from "./node/project-files.ts";
import { readSessionModels } from "./session-models.ts";
import type { StartingSession } from "./starting-session.ts";

export interface Conversation extends AsyncDisposable {
  readonly store: SessionStore;
  /** Names the session of the next turn. It may not exist yet: the first message creates it. */
  readonly ref: SessionRef;
  /** Holds the imported session that the first message forks; null otherwise, and after the fork. */
  readonly origin: SessionState | null;
  readonly session: AgentSession | null;
  readonly chosen: ChosenModel;
  /**
   * Switches to another session. An existing one is opened. A new one, or the fork of an import, is created by its
   * first message.
   */
  switchTo(start: StartingSession): Promise<AgentSession | null>;
  /** @throws {ThroughlineError} INPUT_INVALID, MODEL_KEY_MISSING */
  useModel(name: string): Promise<ChosenModel>;
  open(): Promise<AgentSession>;
  /** @param content null resumes the last turn */
  runTurn(content: TurnContent | null, options: ConversationTurnOptions): Promise<Turn>;
  /** Keeps a file for the message that is sent next, and returns its block. */
  keepFile(file: Pick<NamedFile, "bytes" | "name" | "mediaType">): Promise<FileOfTurn>;
  /** Returns the session by which another program replaced this one; null without a replacement. Reads the store. */
  replacement(): Promise<AgentSession["replacement"]>;
  /** Holds the instructions of the folder that every request begins with; empty where the setting is off. */
  readonly projectFiles: readonly ProjectFile[];
  /** Returns the path of instructions that changed since they were read; null without a change. */
  changedProjectFile(): Promise<string | null>;
  /** Reads the instructions and the session again. */
  reload(): Promise<void>;
  /** Stops running work in the session and beside it. `open` reopens the session. */
  stop(): Promise<void>;
  readonly breakers: SummarizerBreakers;
  /** Replaces the listener; only one listener receives events. */
  listen(listener: AgentListener): void;
  settle(options: SettleOptions): Promise<void>;
}

export type TurnContent = Parameters<AgentSession["runTurn"]>[0];
type FileOfTurn = Awaited<ReturnType<AgentSessions["files"]["put"]>>["block"];

interface ConversationTurnOptions {
  readonly signal: AbortSignal;
  readonly onDelta: (delta: ChatDelta) => void;
  readonly whenBusy: "queue" | "reject" | "branch" | null;
  /** `steer` gives the text to the next call of the running turn. @default by the entry */
  readonly queue?: "steer";
  readonly maxSteps?: number;
}

export interface OpenConversationOptions {
  /** False for work without a turn, which needs no tools. @default true */
  readonly hasTools?: boolean;
  /** Asks a person about each change of a file. @default no person can be asked */
  readonly ask?: AskChange | null;
  /** Receives what is noted while the conversation is opened, before a listener is set. */
  readonly onNote: (message: string) => void;
}

/** @throws {ThroughlineError} CONFIG_INVALID, and errors of the model choice and of opening the session */
export async function openConversation(
  context: AgentContext,
  store: SessionStore,
  start: StartingSession,
  { hasTools = true, ask = null, onNote }: OpenConversationOptions,
): Promise<Conversation> {
  const parts = await agentParts(context, store, { hasTools, ask, onNote });
  const conversation = new OpenConversation(parts, start);
  await conversation.switchTo(start);
  return conversation;
}

class OpenConversation implements Conversation {
  readonly store: SessionStore;
  readonly breakers: SummarizerBreakers;
  readonly #parts: AgentParts;
  readonly #choice: Omit<ModelChoice, "session">;
  readonly #folder: string;
  readonly #work: BackgroundWork = createBackgroundWork();
  #wanted: ModelChoice["wanted"];
  /** Belongs to one model name, because the summarizers depend on the model that answers. */
  #agent: { readonly name: string; readonly sessions: AgentSessions } | null = null;
  /** Holds events from opening the first session until a listener is set. */
  readonly #early: ((listener: AgentListener) => void)[] = [];
  #listener: AgentListener = {
    onEvent: (event) => this.#early.push((listener) => listener.onEvent(event)),
    onNote: (message) => this.#early.push((listener) => listener.onNote(message)),
  };
  /** Holds which instructions were found changed when the files had these times. */
  #lookedAt: { readonly times: string; readonly changed: string | null } | null = null;
  ref: SessionRef;
  origin: SessionState | null;
  /** True if the first message may use another free key than `ref`. */
  #isAnyKey = false;
  session: AgentSession | null = null;
  chosen: ChosenModel;

  constructor(parts: AgentParts, { ref, origin }: StartingSession) {
    this.#parts = parts;
    this.#choice = modelChoice(parts.context);
    this.#folder = conversationFolder(parts.context);
    this.store = parts.store;
    this.breakers = parts.breakers;
    this.ref = ref;
    this.origin = origin;
    this.#wanted = this.#choice.wanted;
    this.chosen = chooseModel({ ...this.#choice, session: null });
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
    const choice = this.#choice;
    const isOwnAsked = state !== null && wanted === null;
    const session = isOwnAsked ? await readSessionModels(this.store, state) : null;
    // An import's model comes last, because another program used it and the user did not choose it here.
    const usual = this.origin === null ? null : chooseModel({ ...choice, wanted, session: null });
    this.chosen = usual === null || usual.isOffline ? chooseModel({ ...choice, wanted, session }) : usual;
    const note = problemNote(this.chosen);
    if (note !== null) this.#listener.onNote(note);
  }

  async useModel(name: string): Promise<ChosenModel> {
    // The session is opened again below, which would hide that another program reset it; refreshing reports that first.
    await this.session?.refresh();
    const wanted = { name, source: "/model" };
    this.chosen = chooseModel({ ...this.#choice, wanted, session: null });
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

  /** Creates the session for the first message, in this folder; for an import, a fork of it. */
  async #create(): Promise<void> {
    const { store, origin } = this;
    const folder = this.#folder;
    if (origin === null) {
      for (;;) {
        const { isNew } = await openSession(store, this.ref, { random: systemRandom, entry: { cwd: folder } });
        if (isNew || !this.#isAnyKey) break;
        // Another process took the key for a separate conversation, so this one needs another key.
        this.ref = await freeRef(store, this.ref);
      }
      this.#isAnyKey = false;
      return;
    }
    await this.#fork(origin, folder);
    this.origin = null;
  }

  async #fork(origin: SessionState, folder: string): Promise<void> {
    for (;;) {
      try {
        await forkConversation(this.store, origin, { folder, target: this.ref });
        return;
      } catch (error) {
        if (!hasErrorCode(error, "SESSION_EXISTS")) throw error;
        // Another process took the key after it was found free.
        this.ref = await freeRef(this.store, this.ref);
      }
    }
  }

  #model(): SessionModel {
    return { ...this.chosen.model, maxOutputTokens: this.#parts.settings.maxOutputTokens };
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
    return openAgentSessions(this.#parts, this.chosen, {
      onEvent: (event) => {
        this.#work.see(event);
        this.#listener.onEvent(event);
      },
      onNote: (message) => this.#listener.onNote(message),
    });
  }

  async keepFile({ bytes, name, mediaType }: Pick<NamedFile, "bytes" | "name" | "mediaType">): Promise<FileOfTurn> {
    const { files } = await this.#sessions();
    return (await files.put(bytes, { name, mediaType })).block;
  }

  async runTurn(content: TurnContent | null, options: ConversationTurnOptions): Promise<Turn> {
    const session = await this.open();
    const { whenBusy: asked, onDelta, ...rest } = options;
    const whenBusy = options.queue === undefined ? (asked ?? (await this.#whenBusyOfEntry(session))) : null;
    const turnOptions = { ...rest, onDelta, ...(whenBusy === null ? {} : { whenBusy }) };
    const turn = await (content === null
      ? session.resume({ ...turnOptions, continueReply: true })
      : session.runTurn(content, turnOptions));
    // A branch is a separate session, so the next message must go there.
    if (turn.ref.key !== this.ref.key) await this.switchTo({ ref: turn.ref, origin: null });
    return turn;
  }

  /**
   * A `queueMode` in the entry asks messages to wait. Another process's running turn cannot take them, so they queue.
   */
  async #whenBusyOfEntry({ ref }: AgentSession): Promise<"queue" | null> {
    const queueMode: unknown = (await this.store.load(ref))?.entry.queueMode;
    return typeof queueMode === "string" && queueMode !== "" ? "queue" : null;
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

  get projectFiles(): readonly ProjectFile[] {
    return this.#parts.projectFiles;
  }

  async changedProjectFile(): Promise<string | null> {
    if (!this.#parts.hasProjectFiles) return null;
    // The times come first: a change while the files are read is seen the next time.
    const times = await projectFileTimes(this.#folder);
    if (times !== this.#lookedAt?.times) this.#lookedAt = { times, changed: await this.#findChangedFile() };
    return this.#lookedAt.changed;
  }

  async #findChangedFile(): Promise<string | null> {
    const before = this.projectFiles;
    const now = await readProjectFiles(this.#folder);
    const isIn = (files: readonly ProjectFile[], { path, version }: ProjectFile): boolean =>
      files.some((each) => each.path === path && each.version === version);
    const changed = now.find((file) => !isIn(before, file)) ?? before.find((file) => !isIn(now, file));
    return changed?.path ?? null;
  }

  async reload(): Promise<void> {
    this.#lookedAt = null;
    if (this.#parts.hasProjectFiles) this.#parts.projectFiles = await readProjectFiles(this.#folder);
    const isOpen = this.session !== null;
    await this.stop();
    if (isOpen) await this.open();
  }

  async stop(): Promise<void> {
    await this.#agent?.sessions.close();
    this.#agent = null;
    this.session = null;
  }

  listen(listener: AgentListener): void {
    this.#listener = listener;
    for (const tell of this.#early.splice(0)) tell(listener);
  }

  settle(options: SettleOptions): Promise<void> {
    return this.#work.settle(this.store, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.sessions.close();
    await this.#parts.meaning?.close();
  }
}
