import { type SessionStore, ThroughlineError } from "@throughline/core";
import { renameSession, sessionProgram } from "@throughline/core/internal";
import type { MarkdownOptions } from "../chat/screen/markdown-inline.ts";
import type { Frame } from "../chat/screen/screen.ts";
import type { TypedKey } from "../chat/screen/typed-text.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import type { RowParts } from "./list-rows.ts";
import { drawPreview, previewRows, type PreviewRows, type SessionPreview } from "./session-preview.ts";
import type { Picked } from "./picked.ts";
import { stepOf } from "./picker-keys.ts";

export type PreviewStep =
  | { readonly kind: "stays" }
  | { readonly kind: "closed" }
  | { readonly kind: "copy"; readonly text: string }
  | { readonly kind: "picked"; readonly picked: Picked };

export interface PreviewFrame {
  readonly mostRows: number;
  readonly parts: RowParts;
  readonly userHome: string;
  readonly nowMs: number;
}

interface PreviewParts {
  readonly options: MarkdownOptions;
  readonly onRename: (label: string) => void;
  readonly onChange: () => void;
}

const stays: PreviewStep = { kind: "stays" };
const handOffPrograms = ["claude-code", "codex", "gemini", "pi", "openclaw"] as const;

/** One session before it is opened: its end or a hit, and what can be done with it. */
export class OpenPreview {
  readonly #store: SessionStore;
  readonly #options: MarkdownOptions;
  readonly #onRename: (label: string) => void;
  readonly #onChange: () => void;
  #preview: SessionPreview;
  #rows: { readonly columns: number; readonly printed: PreviewRows } | null = null;
  #scroll: number | null = null;
  #first = 0;
  #page = 1;
  #note: string | null = null;
  #asks: "program" | "label" | null = null;
  #label = "";

  constructor(store: SessionStore, preview: SessionPreview, { options, onRename, onChange }: PreviewParts) {
    this.#store = store;
    this.#preview = preview;
    this.#options = options;
    this.#onRename = onRename;
    this.#onChange = onChange;
  }

  draw({ mostRows, parts, userHome, nowMs }: PreviewFrame): Frame {
    const { columns } = parts;
    if (this.#rows?.columns !== columns)
      this.#rows = { columns, printed: previewRows(this.#preview, this.#options, columns) };
    const look = { scroll: this.#scroll, note: this.#foot(), escape: "back", userHome, nowMs };
    const { region, first } = drawPreview(this.#preview, this.#rows.printed, look, mostRows, parts);
    this.#first = first;
    this.#page = Math.max(1, mostRows - 6);
    return region;
  }

  #foot(): string | null {
    if (this.#asks === "label") return `New name: ${this.#label}`;
    if (this.#asks === null) return this.#note;
    return `Hand off to ${handOffPrograms.map((program, at) => `${at + 1} ${program}`).join(", ")} (Esc: not)`;
  }

  press(key: TypedKey): PreviewStep {
    if (this.#asks === "program") return this.#chooseProgram(key);
    if (this.#asks === "label") return this.#editLabel(key);
    this.#note = null;
    const { name, character } = key;
    const by = stepOf(name, this.#page);
    if (by !== undefined) {
      this.#scroll = this.#first + by;
      return stays;
    }
    if (name === "escape") return { kind: "closed" };
    return this.#do(name === "enter" ? "c" : (character ?? ""));
  }

  paste(text: string): void {
    if (this.#asks === "label") this.#label += text;
  }

  #do(key: string): PreviewStep {
    const { state, resume } = this.#preview;
    switch (key) {
      case "c":
        if (!state.archived) return { kind: "picked", picked: { kind: "continue", state } };
        return this.#say(`Archived. To restore it: throughline restore --archive ${state.sessionId}`);
      case "r":
        if (resume?.isPossible === true) return { kind: "picked", picked: { kind: "resume", line: resume.text } };
        return this.#say(resume?.text ?? "The session began here: c continues it, h hands it to another program.");
      case "h":
        this.#asks = "program";
        return stays;
      case "y":
        this.#say(`Copied: ${state.ref.key}`);
        return { kind: "copy", text: state.ref.key };
      case "R":
        this.#asks = "label";
        this.#label = "";
        return stays;
    }
    return stays;
  }

  #chooseProgram({ character }: TypedKey): PreviewStep {
    this.#asks = null;
    const to = handOffPrograms[Number(character ?? 0) - 1];
    const { state, resume } = this.#preview;
    if (to === undefined) return stays;
    // To its own program a session needs no copy.
    const isOwn = sessionProgram(state.entry) === to && resume?.isPossible === true;
    return { kind: "picked", picked: isOwn ? { kind: "resume", line: resume.text } : { kind: "handoff", state, to } };
  }

  #editLabel({ name, character }: TypedKey): PreviewStep {
    if (character !== null) this.#label += character;
    else if (name === "escape") this.#asks = null;
    else if (name === "ctrl+u") this.#label = "";
    else if (name === "backspace") this.#label = Array.from(this.#label).slice(0, -1).join("");
    else if (name === "enter") {
      this.#asks = null;
      const label = this.#label.trim();
      if (label !== "") void this.#rename(label);
    }
    return stays;
  }

  async #rename(label: string): Promise<void> {
    try {
      await renameSession(this.#store, this.#preview.state, { label });
      this.#onRename(label);
      this.#preview = { ...this.#preview, name: terminalSafeLine(label) };
      this.#say("Renamed.");
    } catch (error) {
      if (!ThroughlineError.isInstance(error)) throw error;
      this.#say(terminalSafeLine(error.message));
    }
    this.#onChange();
  }

  #say(note: string): PreviewStep {
    this.#note = note;
    return stays;
  }
}
