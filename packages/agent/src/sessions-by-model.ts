import type { SessionRef } from "@throughline/core";
import type { SessionRow } from "@throughline/core/internal";
import type { AgentSession, AgentSessions } from "@throughline/session/whole-turn";
import { type AgentListener, type AgentParts, openAgentSessions } from "./agent-sessions.ts";
import { chooseModel, problemNote } from "./choose-model.ts";
import type { ChosenModel, ModelChoice } from "./choose-model.ts";
import { readSessionModels } from "./session-models.ts";

/** Opens each session with its own model, unless the configuration names one. */
export class SessionsByModel implements AgentSessions {
  readonly #parts: AgentParts;
  readonly #choice: Omit<ModelChoice, "session">;
  readonly #listener: AgentListener;
  readonly #usual: ChosenModel;
  readonly #main: AgentSessions;
  /** Holds the sessions of the other models by the name of the model. */
  readonly #others = new Map<string, AgentSessions>();

  constructor(
    parts: AgentParts,
    { choice, usual }: { readonly choice: Omit<ModelChoice, "session">; readonly usual: ChosenModel },
    listener: AgentListener,
  ) {
    this.#parts = parts;
    this.#choice = choice;
    this.#listener = listener;
    this.#usual = usual;
    this.#main = openAgentSessions(parts, usual, listener);
  }

  get files(): AgentSessions["files"] {
    return this.#main.files;
  }

  async open(...[name, options]: Parameters<AgentSessions["open"]>): Promise<AgentSession> {
    const session = await this.#main.open(name, options);
    const chosen = await this.#modelOf(session.ref);
    if (chosen.name === this.#usual.name) return session;
    await session.close();
    return this.#sessionsOf(chosen).open(session.ref, options);
  }

  async #modelOf(ref: SessionRef): Promise<ChosenModel> {
    const state = this.#choice.wanted === null ? await this.#parts.store.load(ref) : null;
    if (state === null) return this.#usual;
    const chosen = chooseModel({ ...this.#choice, session: await readSessionModels(this.#parts.store, state) });
    const note = problemNote(chosen);
    if (note !== null) this.#listener.onNote(note);
    return chosen;
  }

  #sessionsOf(chosen: ChosenModel): AgentSessions {
    const opened = this.#others.get(chosen.name) ?? openAgentSessions(this.#parts, chosen, this.#listener);
    this.#others.set(chosen.name, opened);
    return opened;
  }

  find(...session: Parameters<AgentSessions["find"]>): Promise<SessionRow | null> {
    return this.#main.find(...session);
  }

  attach(...session: Parameters<AgentSessions["attach"]>): ReturnType<AgentSessions["attach"]> {
    return this.#main.attach(...session);
  }

  list(...query: Parameters<AgentSessions["list"]>): ReturnType<AgentSessions["list"]> {
    return this.#main.list(...query);
  }

  delete(...session: Parameters<AgentSessions["delete"]>): Promise<SessionRow | null> {
    return this.#main.delete(...session);
  }

  deleteUser(...user: Parameters<AgentSessions["deleteUser"]>): ReturnType<AgentSessions["deleteUser"]> {
    return this.#main.deleteUser(...user);
  }

  restore(archiveId: string): Promise<SessionRow> {
    return this.#main.restore(archiveId);
  }

  fork(...session: Parameters<AgentSessions["fork"]>): Promise<SessionRow> {
    return this.#main.fork(...session);
  }

  rename(...session: Parameters<AgentSessions["rename"]>): Promise<SessionRow> {
    return this.#main.rename(...session);
  }

  usage(...query: Parameters<AgentSessions["usage"]>): ReturnType<AgentSessions["usage"]> {
    return this.#main.usage(...query);
  }

  async close(): Promise<void> {
    await Promise.all([this.#main, ...this.#others.values()].map((sessions) => sessions.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
