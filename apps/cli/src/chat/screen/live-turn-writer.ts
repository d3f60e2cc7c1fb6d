import type { ChatDelta } from "@throughline/core";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";
import { terminalSafe, terminalSafeLine } from "../../terminal-safe.ts";
import { toolTargets } from "../tool-line.ts";
import type { TurnWriter } from "../turn-printer.ts";
import { shorten } from "../../cells.ts";
import type { FoldedTexts } from "./folded-texts.ts";
import type { MarkdownOptions } from "./markdown-inline.ts";
import type { MarkdownStep, MarkdownStream } from "./markdown-stream.ts";
import type { Screen } from "./screen.ts";
import type { Signs } from "./signs.ts";
import type { Styles } from "./styles.ts";
import { proseWidth, wrapRows } from "./wrap-rows.ts";

export interface LiveTurnOptions {
  readonly screen: Screen;
  readonly styles: Styles;
  readonly signs: Signs;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Keeps what is shown of tools in one row only. */
  readonly folded: FoldedTexts;
  readonly onFinish: () => void;
}

/** Shortest time between two frames of the sign of life: eight in a second. */
const pulseMs = 125;

interface Markdown {
  readonly Stream: typeof MarkdownStream;
  readonly options: MarkdownOptions;
}

/** Shows a turn while it runs: replies as Markdown, the lines between them, and a sign of life. */
export class LiveTurnWriter implements TurnWriter {
  readonly #options: LiveTurnOptions;
  readonly #startedMs = performance.now();
  readonly #pulse: NodeJS.Timeout;
  readonly #loaded: Promise<void>;
  #markdown: Markdown | null = null;
  #reply: MarkdownStream | null = null;
  #early = "";
  /** Lines that came while a reply was open; they would cut its blocks in two. */
  #held: string[] = [];
  readonly #targets = new Map<string, string>();
  /** Holds the tools that run, in the order of their start. */
  readonly #running = new Map<string, { readonly text: string; readonly sinceMs: number }>();
  #delayedSinceMs: number | null = null;
  /** Holds when the provider is asked again. */
  #retryAtMs: number | null = null;
  #works: Promise<void> = Promise.resolve();

  constructor(options: LiveTurnOptions) {
    this.#options = options;
    this.#pulse = setInterval(() => options.screen.invalidate(), pulseMs);
    this.#loaded = this.#load();
  }

  /** Loads the printer of Markdown beside the call of the model. */
  async #load(): Promise<void> {
    const [{ MarkdownStream: Stream }, options] = await Promise.all([
      import("./markdown-stream.ts"),
      markdownOptions(this.#options),
    ]);
    this.#markdown = { Stream, options };
  }

  /** Returns what the next frame shows of the reply. */
  frame(mostRows: number): MarkdownStep {
    this.#feed();
    return this.#reply?.take({ columns: this.#options.screen.columns, mostRows }) ?? { finished: [], open: [] };
  }

  /** Gives the reply the text that came since, once the printer of Markdown is there. */
  #feed(): void {
    if (this.#early === "" || this.#markdown === null) return;
    const { Stream, options } = this.#markdown;
    if (this.#reply === null) {
      this.#reply = new Stream(options);
      this.#options.screen.commit([""]);
    }
    this.#reply.push(this.#early);
    this.#early = "";
  }

  /** Returns the row that shows that something happens. */
  activity(): string {
    const { signs, styles, screen } = this.#options;
    const nowMs = performance.now();
    const sign = signs.spinner[Math.floor((nowMs - this.#startedMs) / pulseMs) % signs.spinner.length] ?? "";
    const [tool] = this.#running.values();
    const more = this.#running.size > 1 ? `, ${this.#running.size - 1} more` : "";
    const seconds = ` ${Math.floor((nowMs - (tool?.sinceMs ?? this.#startedMs)) / 1000)} s`;
    const room = Math.max(1, screen.columns - 1 - `${sign} ${more}${seconds}`.length);
    const text = tool === undefined ? "" : ` ${shorten(tool.text, room, "end")}${more}`;
    return styles.dim(`${sign}${text}${seconds}`);
  }

  /** Returns what the status line reports about the turn. */
  states(): readonly string[] {
    const delayedMs = this.#delayedSinceMs === null ? null : Date.now() - this.#delayedSinceMs;
    const retryMs = this.#retryAtMs === null ? 0 : this.#retryAtMs - performance.now();
    return [
      ...(retryMs > 0 ? [`retry in ${Math.ceil(retryMs / 1000)} s`] : []),
      ...(delayedMs === null ? [] : [`not saved for ${Math.max(1, Math.round(delayedMs / 1000))} s`]),
    ];
  }

  onEvent(event: WholeTurnEvent): void {
    switch (event.name) {
      case "record.appended":
        this.#options.folded.take(event.record);
        for (const { id, target } of toolTargets(event.record.record)) this.#targets.set(id, target);
        // The record of the reply holds all of its text.
        this.#delayedSinceMs = null;
        break;
      case "tool.started": {
        const text = terminalSafeLine(`${event.toolName} ${this.#targets.get(event.callId) ?? ""}`).trim();
        this.#running.set(event.callId, { text, sinceMs: performance.now() });
        break;
      }
      case "tool.finished":
        this.#running.delete(event.callId);
        break;
      case "call.waiting":
        this.#retryAtMs = performance.now() + event.delayMs;
        break;
      case "call.finished":
        this.#retryAtMs = null;
        break;
      case "partial.delayed":
        this.#delayedSinceMs = event.sinceMs;
        break;
    }
    this.#options.screen.invalidate();
  }

  write(work: () => Promise<void>): void {
    this.#works = this.#works.then(work);
  }

  closeLine(): void {
    this.write(async () => {
      if (this.#early !== "") await this.#loaded;
      this.#feed();
      const { screen } = this.#options;
      const rest = this.#reply?.take({ columns: screen.columns, mostRows: screen.mostRows }, true);
      this.#reply = null;
      if (rest !== undefined) screen.commit(rest.finished);
      for (const line of this.#held.splice(0)) this.#commitLine(line);
    });
  }

  line(text: string): void {
    this.write(async () => {
      if (this.#reply === null && this.#early === "") this.#commitLine(text);
      else this.#held.push(text);
    });
  }

  delta(delta: ChatDelta): void {
    this.#retryAtMs = null;
    if (delta.type !== "text" || delta.text === "") return;
    this.write(async () => {
      this.#early += delta.text;
      this.#options.screen.invalidate();
    });
  }

  async finish(): Promise<void> {
    this.closeLine();
    await this.#works;
    clearInterval(this.#pulse);
    this.#options.onFinish();
    this.#options.screen.invalidate();
  }

  #commitLine(text: string): void {
    const { screen, styles } = this.#options;
    screen.commit(wrapRows(terminalSafe(text), proseWidth(screen.columns)).map(styles.dim));
  }
}

/** Loads what Markdown is printed with. */
export async function markdownOptions({
  styles,
  signs,
  environment,
}: Pick<LiveTurnOptions, "styles" | "signs" | "environment">): Promise<MarkdownOptions> {
  const { createHighlighter } = await import("./highlight.ts");
  return { styles, signs, hasLinks: opensLinks(environment), highlighter: createHighlighter(styles) };
}

/** Terminals that open a link at its text say who they are. */
function opensLinks(environment: LiveTurnOptions["environment"]): boolean {
  const program = environment["TERM_PROGRAM"] ?? "";
  return (
    ["iTerm.app", "WezTerm", "vscode", "ghostty"].includes(program) ||
    environment["KITTY_WINDOW_ID"] !== undefined ||
    Number(environment["VTE_VERSION"] ?? 0) >= 5000
  );
}
