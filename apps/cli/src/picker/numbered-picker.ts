import { sessionProgram } from "@throughline/core/internal";
import type { SessionState, SessionStore } from "@throughline/core";
import { bell, interruptedExitCode } from "../chat/chat-view.ts";
import type { CommandContext } from "../command.ts";
import { counted, grouped } from "../counted.ts";
import { firstWords } from "../session-names.ts";
import { ageText } from "../time-text.ts";
import { createLister, isInScope, type ListedContext, type ListedSession, readSessions } from "./listed-session.ts";
import { NameMatches } from "./name-matches.ts";
import type { Picked } from "./picked.ts";
import type { PickerOptions } from "./session-picker.ts";
import { loadPreview } from "./session-preview.ts";
import { findTexts } from "./text-hits.ts";

const pageSize = 20;

interface Row {
  readonly session: ListedSession;
  readonly hitSeq: number | null;
}

/** Lets a person choose a session by its number in a printed list, on a terminal whose rows are not painted again. */
export class NumberedPicker {
  readonly #context: CommandContext;
  readonly #store: SessionStore;
  readonly #listed: ListedContext;
  readonly #escape: PickerOptions["escape"];
  #sessions: readonly ListedSession[] = [];
  #rows: readonly Row[] = [];
  /** Counts the rows that were printed. */
  #shown = 0;

  constructor(context: CommandContext, store: SessionStore, listed: ListedContext, { escape }: PickerOptions) {
    this.#context = context;
    this.#store = store;
    this.#listed = listed;
    this.#escape = escape;
  }

  async pick(): Promise<Picked> {
    await this.#read();
    await this.#printMore();
    for (;;) {
      const answer = await this.#ask(this.#question());
      const picked = answer === null ? this.#left : await this.#answer(answer.trim());
      if (picked !== null) return picked;
    }
  }

  /** The end of the input, such as Ctrl-D, leaves without an error. */
  get #left(): Picked {
    return { kind: "leave", code: this.#context.signal.aborted ? interruptedExitCode : 0 };
  }

  async #read(): Promise<void> {
    const read: ListedSession[] = [];
    for await (const page of readSessions(this.#store, this.#listed, this.#context.signal)) read.push(...page);
    this.#sessions = read;
    const scope = read.some((session) => isInScope(session, "folder")) ? "folder" : "agent";
    this.#list(read.filter((session) => isInScope(session, scope)));
    const left = read.length - this.#rows.length;
    const where = scope === "folder" ? "of this folder" : "of all folders";
    const rest = left === 0 ? "" : ` ${grouped(left)} more elsewhere.`;
    await this.#context.output.line(`${counted(this.#rows.length, "session")} ${where}.${rest}`);
  }

  #list(sessions: readonly ListedSession[]): void {
    this.#rows = sessions.map((session) => ({ session, hitSeq: null }));
    this.#shown = 0;
  }

  async #printMore(): Promise<void> {
    const { output, signal } = this.#context;
    const nowMs = Date.now();
    for (const { session } of this.#rows.slice(this.#shown, this.#shown + pageSize)) {
      this.#shown += 1;
      const words = session.isNamed ? null : await firstWords(this.#store, session, signal);
      const name = words === null ? session.name : `"${words}"`;
      const facts = [session.program, session.folder, ageText(session.updatedAtMs, nowMs)];
      const more = [counted(session.messageCount, "message"), ...(session.isArchived ? ["archived"] : [])];
      await output.line(`${this.#shown}. ${[name, ...facts, ...more].filter((fact) => fact !== "").join(", ")}`);
    }
  }

  #question(): string {
    const left = this.#rows.length - this.#shown;
    const parts = [
      ...(this.#rows.length > 0 ? ["a number opens"] : []),
      "words search",
      ...(left > 0 ? [`more lists ${Math.min(left, pageSize)} of ${grouped(left)} more`] : []),
      "all lists every session",
      this.#escape === "new" ? "Enter begins a new session" : "new begins a session, Enter goes back",
    ];
    return `Which session? ${parts.join("; ")}: `;
  }

  async #ask(question: string): Promise<string | null> {
    const { askLine, host, output, signal } = this.#context;
    await output.flush();
    host.stdout.write(bell);
    try {
      return await askLine(question);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }

  /** Returns null to ask again. */
  async #answer(answer: string): Promise<Picked | null> {
    if (answer === "") return { kind: this.#escape };
    if (answer === "new") return { kind: "new" };
    if (/^\d{1,6}$/.test(answer)) return this.#open(Number(answer));
    if (answer === "all") this.#list(this.#sessions);
    else if (answer !== "more") await this.#search(answer);
    await this.#printMore();
    return null;
  }

  async #search(text: string): Promise<void> {
    const { namespace } = this.#listed;
    const { signal, output } = this.#context;
    const named = await new NameMatches().find(this.#sessions, text, ({ name }) => name, signal);
    const query = { text, namespace, agentId: null, isWithArchives: true, isWanted: () => true, signal };
    const { sessions: found } = await findTexts(this.#store, query);
    const listed = new Map(this.#sessions.map((session) => [session.id, session]));
    const lister = createLister(this.#listed);
    const names = named.map(({ session }) => ({ session, hitSeq: null }));
    const known = new Set(names.map(({ session }) => session.id));
    const texts: Row[] = [];
    for (const { hit } of found) {
      const state = await this.#store.load(hit.ref, { signal });
      const session = state === null ? undefined : listed.get(lister(state).id);
      if (session !== undefined && !known.has(session.id)) texts.push({ session, hitSeq: hit.seq });
    }
    this.#rows = [...names, ...texts];
    this.#shown = 0;
    await output.line(`${counted(names.length, "session")} by name, ${grouped(texts.length)} more by their texts.`);
  }

  /** An own session opens at once. What another program wrote, and an archive, needs a second answer. */
  async #open(number: number): Promise<Picked | null> {
    const { output, signal } = this.#context;
    const row = this.#rows[number - 1];
    const preview = row === undefined ? null : await loadPreview(this.#store, row.session, row.hitSeq, signal);
    if (preview === null) {
      await output.line(row === undefined ? `The list has no number ${number}.` : "This session was removed.");
      return null;
    }
    const { state, resume } = preview;
    if (state.archived) {
      await output.line(output.asTyped(`Archived. Restore it: \`throughline restore --archive ${state.sessionId}\``));
      return null;
    }
    return sessionProgram(state.entry) === null ? { kind: "continue", state } : this.#openImport(state, resume);
  }

  async #openImport(
    state: SessionState,
    resume: { readonly text: string; readonly isPossible: boolean } | null,
  ): Promise<Picked | null> {
    const answer = await this.#ask("c continues it here in a fork; r prints its own command; Enter goes back: ");
    if (answer === null) return this.#left;
    switch (answer.trim().toLowerCase()) {
      case "c":
        return { kind: "continue", state };
      case "r":
        if (resume?.isPossible === true) return { kind: "resume", line: resume.text };
        await this.#context.output.line(resume?.text ?? "Its program has no command for that.");
    }
    return null;
  }
}
