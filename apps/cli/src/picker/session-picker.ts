import { setImmediate as pause } from "node:timers/promises";
import type { SessionStore } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import { interruptedExitCode } from "../chat/chat-view.ts";
import { markdownOptions } from "../chat/screen/live-turn-writer.ts";
import type { MarkdownOptions } from "../chat/screen/markdown-inline.ts";
import { LiveTerminal } from "../chat/screen/live-terminal.ts";
import type { Frame, Screen } from "../chat/screen/screen.ts";
import type { Signs } from "../chat/screen/signs.ts";
import type { Styles } from "../chat/screen/styles.ts";
import type { TypedKey } from "../chat/screen/typed-text.ts";
import { clipboard } from "../clipboard.ts";
import type { CommandContext } from "../command.ts";
import { grouped } from "../counted.ts";
import { shownFolder } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { type ListFacts, listRows, type RowParts } from "./list-rows.ts";
import {
  isInScope,
  type ListedContext,
  type ListedSession,
  mostListed,
  readSessions,
  scopes,
} from "./listed-session.ts";
import type { Scope } from "./listed-session.ts";
import { OpenPreview, type PreviewStep } from "./open-preview.ts";
import type { Picked } from "./picked.ts";
import { PickerFilter } from "./picker-filter.ts";
import { stepOf } from "./picker-keys.ts";
import { PickerList } from "./picker-list.ts";
import { SeenSessions } from "./seen-sessions.ts";
import { loadPreview } from "./session-preview.ts";

export interface PickerOptions {
  /** States what Esc does with an empty filter. */
  readonly escape: Extract<Picked["kind"], "new" | "back">;
}

const updateMs = 100;
/** Rows that the picker leaves to what stands above it. */
const spareRows = 4;
const escapeTexts = { new: "new session", back: "back to chat" } as const;
const pageRows = 10;

/** Lets a person choose a session of any program, below what stands on the terminal. */
export class SessionPicker {
  readonly #context: Pick<CommandContext, "host" | "output" | "signal">;
  readonly #store: SessionStore;
  readonly #listed: ListedContext;
  readonly #escape: PickerOptions["escape"];
  readonly #styles: Styles;
  readonly #signs: Signs;
  readonly #terminal: LiveTerminal;
  readonly #screen: Screen;
  readonly #closing = new AbortController();
  readonly #list = new PickerList();
  readonly #filter: PickerFilter;
  readonly #seen: SeenSessions;
  #sessions: readonly ListedSession[] = [];
  #programs: ListFacts["programs"] = [];
  #hiddenCount = 0;
  #scope: Scope = "folder";
  #isScopeChosen = false;
  #isReading = true;
  #problem: string | null = null;
  #preview: OpenPreview | null = null;
  #markdown: MarkdownOptions | null = null;
  #finish: (picked: Picked) => void = () => {};

  constructor(
    context: Pick<CommandContext, "host" | "output" | "signal">,
    store: SessionStore,
    listed: ListedContext,
    { escape }: PickerOptions,
  ) {
    const { host, output } = context;
    this.#context = context;
    this.#store = store;
    this.#listed = listed;
    this.#escape = escape;
    this.#terminal = new LiveTerminal(host, output);
    this.#styles = this.#terminal.styles;
    this.#signs = this.#terminal.signs;
    this.#screen = this.#terminal.screen;
    const signal = AbortSignal.any([context.signal, this.#closing.signal]);
    const onChange = (): void => this.#screen.invalidate();
    this.#seen = new SeenSessions(store, signal, onChange);
    this.#filter = new PickerFilter({ store, listed, list: this.#list, seen: this.#seen, onChange });
  }

  async pick(): Promise<Picked> {
    const { signal } = this.#context;
    const leave = (): void => this.#finish({ kind: "leave", code: interruptedExitCode });
    const picked = new Promise<Picked>((resolve) => (this.#finish = resolve));
    // The time limit of the command counts here too.
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      this.#terminal.use(() => this.#draw(), leave);
      void this.#read();
      void this.#load();
      return await picked;
    } finally {
      this.#closing.abort();
      this.#filter.close();
      signal.removeEventListener("abort", leave);
      this.#terminal.close();
    }
  }

  async #load(): Promise<void> {
    const { createKeyReader } = await import("../chat/screen/typed-text.ts");
    this.#terminal.readTo(
      createKeyReader(
        (key) => this.#press(key),
        (text) => this.#type(terminalSafeLine(text)),
      ),
    );
  }

  async #read(): Promise<void> {
    const { signal } = this.#closing;
    const read: ListedSession[] = [];
    let updatedMs = Number.NEGATIVE_INFINITY;
    try {
      for await (const page of readSessions(this.#store, this.#listed, signal)) {
        for (const session of page) read.push(session);
        if (performance.now() - updatedMs > updateMs) {
          this.#update([...read]);
          updatedMs = performance.now();
        }
        await pause();
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#problem = causeText(error);
    }
    this.#isReading = false;
    this.#sessions = read;
    this.#widen();
    this.#update(read);
    this.#chooseStart();
  }

  /** A person who has not chosen a scope starts in the first one that has a session. */
  #widen(): void {
    if (this.#isScopeChosen) return;
    this.#scope = scopes.find((scope) => this.#sessions.some((session) => isInScope(session, scope))) ?? "folder";
  }

  #chooseStart(): void {
    if (this.#scope === "folder" && this.#filter.text === "" && this.#list.chosen.kind === "new")
      this.#list.chooseFirst();
    this.#screen.invalidate();
  }

  #update(sessions: readonly ListedSession[]): void {
    this.#sessions = sessions;
    const shown = sessions.filter((session) => isInScope(session, this.#scope));
    const counts = new Map<string, number>();
    for (const { program } of shown) counts.set(program, (counts.get(program) ?? 0) + 1);
    this.#programs = [...counts].toSorted(([, one], [, other]) => other - one);
    this.#hiddenCount = sessions.length - shown.length;
    this.#filter.search(shown, this.#scope);
    this.#screen.invalidate();
  }

  get #parts(): RowParts {
    return { styles: this.#styles, signs: this.#signs, columns: this.#screen.columns };
  }

  #draw(): Frame {
    const mostRows = Math.max(4, this.#screen.mostRows + 2 - spareRows);
    const nowMs = Date.now();
    if (this.#preview !== null)
      return this.#preview.draw({ mostRows, parts: this.#parts, userHome: this.#listed.userHome, nowMs });
    const facts: ListFacts = {
      folder: terminalSafeLine(shownFolder(this.#listed.folder, this.#listed.userHome)),
      scope: this.#scope,
      filter: this.#filter.text,
      programs: this.#programs,
      hiddenCount: this.#hiddenCount,
      reading: this.#readingText(),
      escape: escapeTexts[this.#escape],
      nameOf: (session) => this.#seen.nameOf(session),
      isActive: (session) => this.#seen.isActive(session, nowMs),
      nowMs,
    };
    const region = listRows(this.#list, facts, mostRows, this.#parts);
    this.#seen.learn();
    return region;
  }

  #readingText(): string | null {
    if (this.#problem !== null) return terminalSafeLine(this.#problem);
    if (this.#isReading) return `reading, ${grouped(this.#sessions.length)} so far`;
    return this.#sessions.length >= mostListed ? `the newest ${grouped(mostListed)}` : this.#filter.note;
  }

  #press(key: TypedKey): void {
    if (key.name === "ctrl+c") return this.#finish({ kind: "leave", code: interruptedExitCode });
    if (this.#preview === null) this.#pressInList(key);
    else this.#take(this.#preview.press(key));
    this.#screen.invalidate();
  }

  #pressInList({ name, character }: TypedKey): void {
    const step = stepOf(name, pageRows);
    if (step !== undefined) return this.#list.move(step);
    if (character !== null)
      return character === " " && this.#filter.text === "" ? this.#show(null) : this.#type(character);
    switch (name) {
      case "enter":
        return this.#filter.whenFound(() => this.#open());
      case "escape":
        if (this.#filter.text === "") return this.#finish({ kind: this.#escape });
        return this.#setFilter("");
      case "tab":
        return this.#changeScope(1);
      case "shift+tab":
        return this.#changeScope(scopes.length - 1);
      case "alt+c":
      case "alt+r":
      case "alt+h":
      case "alt+y":
        return this.#filter.whenFound(() => this.#show(name.slice(-1)));
      case "ctrl+l":
        return this.#screen.clear();
    }
    const edited = this.#filter.edited(name ?? "");
    if (edited !== null) this.#setFilter(edited);
  }

  #type(text: string): void {
    if (this.#preview === null) this.#setFilter(`${this.#filter.text}${text}`);
    else this.#preview.paste(text);
    this.#screen.invalidate();
  }

  #setFilter(text: string): void {
    this.#filter.set(text);
    this.#update(this.#sessions);
  }

  #changeScope(by: number): void {
    this.#isScopeChosen = true;
    this.#scope = scopes[(scopes.indexOf(this.#scope) + by) % scopes.length] ?? "folder";
    this.#update(this.#sessions);
  }

  /** An own session opens at once; what another program wrote, and an archive, is shown first. */
  #open(): void {
    const item = this.#list.chosen;
    if (item.kind === "new") return this.#finish({ kind: "new" });
    const session = item.kind === "name" ? item.match.session : item.session;
    const isOpened = session.format === null && !session.isArchived && item.kind === "name";
    this.#show(isOpened ? "c" : null);
  }

  /** Shows the chosen session, and does what a key of its preview does. */
  #show(key: string | null): void {
    const item = this.#list.chosen;
    if (item.kind === "new") return;
    const session = item.kind === "name" ? item.match.session : item.session;
    const hitSeq = item.kind === "text" ? item.found.hit.seq : null;
    void this.#loadPreview(session, hitSeq, key).catch((error: unknown) => {
      if (this.#closing.signal.aborted) return;
      this.#screen.commit([this.#styles.red(terminalSafeLine(causeText(error)))]);
    });
  }

  async #loadPreview(session: ListedSession, hitSeq: number | null, key: string | null): Promise<void> {
    const parts = { styles: this.#styles, signs: this.#signs, environment: this.#context.host.environment };
    const { signal } = this.#closing;
    const [preview, options] = await Promise.all([
      loadPreview(this.#store, session, hitSeq, signal),
      this.#markdown ?? markdownOptions(parts),
    ]);
    this.#markdown = options;
    if (signal.aborted) return;
    if (preview === null) return this.#screen.commit([this.#styles.red("This session was removed.")]);
    const open = new OpenPreview(this.#store, preview, {
      options,
      onRename: (label) => this.#seen.rename(session, label),
      onChange: () => this.#screen.invalidate(),
    });
    const step = key === null ? null : open.press({ name: null, character: key, sequence: key });
    if (step?.kind !== "picked") this.#preview = open;
    if (step !== null) this.#take(step);
    this.#screen.invalidate();
  }

  #take(step: PreviewStep): void {
    if (step.kind === "picked") {
      if (step.picked.kind === "resume") this.#context.host.stdout.write(clipboard(step.picked.line));
      this.#finish(step.picked);
    } else if (step.kind === "closed") this.#preview = null;
    else if (step.kind === "copy") this.#context.host.stdout.write(clipboard(step.text));
  }
}
