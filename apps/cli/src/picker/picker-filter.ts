import type { SessionState, SessionStore } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import { terminalSafeLine } from "../terminal-safe.ts";
import { createLister, isInScope, type ListedContext, type ListedSession, type Scope } from "./listed-session.ts";
import type { NameMatches } from "./name-matches.ts";
import type { PickerList } from "./picker-list.ts";
import type { SeenSessions } from "./seen-sessions.ts";
import type { TextHits } from "./text-hits.ts";

export interface PickerFilterOptions {
  readonly store: SessionStore;
  readonly listed: ListedContext;
  readonly list: PickerList;
  readonly seen: SeenSessions;
  readonly onChange: () => void;
}

const noPositions: ReadonlySet<number> = new Set();
/** A search of the texts waits for a pause in the typing. */
const textDelayMs = 80;
const leastCharacters = 2;
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The typed filter, and what it finds: names at once, texts after a pause. Each new text ends the search before it. */
export class PickerFilter {
  readonly #options: PickerFilterOptions;
  readonly #stateOf: (state: SessionState) => ListedSession;
  #text = "";
  #isFresh = false;
  #isFinding = false;
  #afterFound: (() => void) | null = null;
  #matches: NameMatches | null = null;
  #running = new AbortController();
  #textSearch = new AbortController();
  #searched = "";
  #timer: NodeJS.Timeout | null = null;
  #known: readonly ListedSession[] = [];
  #note: string | null = null;

  constructor(options: PickerFilterOptions) {
    this.#options = options;
    this.#stateOf = createLister(options.listed);
  }

  get text(): string {
    return this.#text;
  }

  /** Says why texts are not searched, if they are not. */
  get note(): string | null {
    return this.#note;
  }

  set(text: string): void {
    this.#text = text;
    this.#isFresh = true;
    this.#afterFound = null;
  }

  /** Does the work when the list shows what the typed text finds; typing on drops it. */
  whenFound(work: () => void): void {
    if (this.#isFinding) this.#afterFound = work;
    else work();
  }

  /** Returns the filter after an editing key; null for any other key. */
  edited(name: string): string | null {
    const text = this.#text;
    if (name === "ctrl+u") return "";
    if (name === "ctrl+w" || name === "alt+backspace") return text.slice(0, text.trimEnd().lastIndexOf(" ") + 1);
    if (name !== "backspace" && name !== "ctrl+h") return null;
    return Array.from(graphemes.segment(text), ({ segment }) => segment)
      .slice(0, -1)
      .join("");
  }

  /** Finds what the filter finds among these sessions, and puts it into the list. */
  search(sessions: readonly ListedSession[], scope: Scope): void {
    this.#known = sessions;
    this.#running.abort();
    this.#running = new AbortController();
    const { list } = this.#options;
    const query = this.#text.trim();
    const isFresh = this.#isFresh;
    this.#isFresh = false;
    this.#searchTexts(query, scope);
    this.#isFinding = query !== "";
    if (query !== "") return void this.#findNames(sessions, query, isFresh, this.#running.signal);
    list.setNames(sessions.map((session) => ({ session, positions: noPositions })));
    if (isFresh) list.chooseFirst();
  }

  close(): void {
    this.#running.abort();
    this.#textSearch.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #findNames(
    sessions: readonly ListedSession[],
    query: string,
    isFresh: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#matches === null) {
      const { NameMatches: Matches } = await import("./name-matches.ts");
      this.#matches ??= new Matches();
    }
    const { list, seen, onChange } = this.#options;
    const found = await this.#matches.find(sessions, query, (session) => seen.knownName(session), signal);
    if (signal.aborted) {
      // The filter that was typed meanwhile chooses its first session.
      this.#isFresh ||= isFresh;
      return;
    }
    list.setNames(found);
    if (isFresh) list.chooseFirst();
    this.#isFinding = false;
    this.#afterFound?.();
    this.#afterFound = null;
    onChange();
  }

  #searchTexts(query: string, scope: Scope): void {
    const searched = `${scope} ${query}`;
    if (searched === this.#searched) return;
    this.#searched = searched;
    this.#textSearch.abort();
    this.#textSearch = new AbortController();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#note = null;
    if (query.length < leastCharacters) return void this.#setTexts({ sessions: [], hitCount: 0, isCut: false });
    const { signal } = this.#textSearch;
    this.#timer = setTimeout(() => {
      void this.#findTexts(query, scope, signal).catch((error: unknown) => {
        if (signal.aborted) return;
        this.#note = terminalSafeLine(causeText(error));
        this.#options.onChange();
      });
    }, textDelayMs);
  }

  async #findTexts(text: string, scope: Scope, signal: AbortSignal): Promise<void> {
    const { store, listed, onChange } = this.#options;
    const { findTexts } = await import("./text-hits.ts");
    const hits = await findTexts(store, {
      text,
      namespace: listed.namespace,
      agentId: scope === "all" ? null : listed.agentId,
      isWithArchives: scope === "all",
      isWanted: (state) => isInScope(this.#stateOf(state), scope),
      signal,
    });
    if (signal.aborted) return;
    this.#setTexts(hits);
    onChange();
  }

  #setTexts(hits: TextHits): void {
    const ids = new Map(this.#known.map((session) => [session.id, session]));
    this.#options.list.setTexts(hits, ({ hit: { ref } }) => {
      return ids.get(JSON.stringify([ref.agentId, ref.key, ref.archiveId ?? null])) ?? null;
    });
  }
}
