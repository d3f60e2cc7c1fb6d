import type { ChatDelta, SessionRecord } from "@throughline/core";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";
import type { Output } from "../output.ts";
import { isContinueMessage, messageRole, recordText } from "@throughline/core/internal";
import { eventNote, eventObject } from "./event-note.ts";
import type { EventObject } from "./event-note.ts";
import { createToolLines, toolLineText } from "./tool-line.ts";
import type { ToolLine } from "./tool-line.ts";

/** Prints a turn while it runs. Printed text is never changed afterwards. */
export interface TurnPrinter {
  onDelta(delta: ChatDelta): void;
  onEvent(event: WholeTurnEvent): void;
  onNote(message: string): void;
  /** Shows what the person said. @param note stands behind it */
  say(text: string, note: string): void;
  /** Resolves after all output is written and the cursor is at the start of a line. */
  finish(): Promise<void>;
  readonly toolLines: readonly ToolLine[];
  readonly events: readonly EventObject[];
}

/** Writes the answer and the lines between its parts. */
export interface TurnWriter {
  /** Runs work that writes, after what was given before. */
  write(work: () => Promise<void>): void;
  /** Ends a reply, so that what follows begins on a new line. */
  closeLine(): void;
  line(text: string): void;
  delta(delta: ChatDelta): void;
  /** Learns what happens, to show that it does. @default nothing is shown of it */
  onEvent?(event: WholeTurnEvent): void;
  /** Resolves when all is written. */
  finish(): Promise<void>;
}

interface TurnPrinterOptions {
  /** False suppresses the answer for a reader that gets it as JSON. @default true */
  readonly isText?: boolean;
  /** @default one that writes plain text to the output */
  readonly writer?: TurnWriter | null;
}

export function createTurnPrinter(
  output: Output,
  { isText = true, writer: given = null }: TurnPrinterOptions = {},
): TurnPrinter {
  const writer: TurnWriter = given ?? new PlainTurnWriter(output);
  const tools = createToolLines();
  const toolLines: ToolLine[] = [];
  const events: EventObject[] = [];
  const cut = new CutReply(writer, isText);
  return {
    toolLines,
    events,
    onDelta: (delta) => {
      if (!isText) return;
      if (delta.type === "text") cut.show(null);
      writer.delta(delta);
    },
    onEvent: (event) => {
      writer.onEvent?.(event);
      if (event.name === "record.appended") cut.take(event.record.record);
      if (event.name === "tool.started") tools.started(event.callId, performance.now());
      if (event.name === "call.started") cut.callStarted();
      const tool = event.name === "record.appended" ? tools.take(event.record, performance.now()) : null;
      if (tool !== null) {
        toolLines.push(tool);
        if (output.isTerminal) writer.line(`● ${toolLineText(tool)}`);
        else writer.write(async () => output.note(toolLineText(tool)));
      }
      // The turn ends with an error that reports the same.
      if (event.name === "session.replaced") return;
      const note = eventNote(event);
      if (note === null) return;
      const told = eventObject(event, note);
      events.push(told);
      // The caller reports the denial with its reason.
      if (event.name === "send.denied") return;
      if (output.isTerminal) writer.line(`(${note})`);
      else writer.write(async () => output.event(told));
    },
    onNote: (message) => {
      if (output.isTerminal) writer.line(`(${message})`);
      else writer.write(async () => output.note(message));
    },
    say: (text, note) => writer.line(`> ${text}${note}`),
    finish: () => {
      cut.show(null);
      return writer.finish();
    },
  };
}

/** Holds the text of a reply that was cut off until its rest comes. Notes may come in between. */
class CutReply {
  readonly #writer: TurnWriter;
  readonly #isText: boolean;
  #text = "";
  #isContinued = false;

  constructor(writer: TurnWriter, isText: boolean) {
    this.#writer = writer;
    this.#isText = isText;
  }

  show(note: string | null): void {
    if (this.#text === "") return;
    this.#writer.delta({ type: "text", text: this.#text });
    this.#text = "";
    if (note !== null) this.#writer.line(note);
  }

  take(record: SessionRecord): void {
    // Each reply of a turn starts on a new line.
    if (messageRole(record) === "assistant") this.#writer.closeLine();
    const { recovered } = (record["message"] ?? {}) as { readonly recovered?: unknown };
    if (recovered === true && this.#isText) this.#text = recordText(record);
    this.#isContinued ||= isContinueMessage(record);
    if (messageRole(record) === "user" && !this.#isContinued) this.show("(cut off)");
  }

  callStarted(): void {
    if (!this.#isContinued) this.show("(asked again)");
  }
}

/** Writes one piece after the other, and knows whether the cursor is inside a line of the answer. */
class PlainTurnWriter implements TurnWriter {
  readonly #output: Output;
  #writes: Promise<void> = Promise.resolve();
  #isLineOpen = false;
  #isThinking = false;
  #pendingHalf = "";

  constructor(output: Output) {
    this.#output = output;
  }

  write(work: () => Promise<void>): void {
    this.#writes = this.#writes.then(work);
  }

  closeLine(): void {
    if (this.#isLineOpen) this.write(() => this.#output.stream("\n"));
    this.#isLineOpen = false;
  }

  line(text: string): void {
    this.closeLine();
    this.write(async () => {
      await this.#output.line({ text, style: "dim" });
      await this.#output.flush();
    });
  }

  delta(delta: ChatDelta): void {
    if (delta.type === "thinking" && !this.#isThinking) this.line("(thinking)");
    this.#isThinking = delta.type === "thinking";
    if (delta.type !== "text" || delta.text === "") return;
    const whole = this.#wholeText(delta.text);
    if (whole === "") return;
    this.#isLineOpen = !whole.endsWith("\n");
    this.write(() => this.#output.stream(whole));
  }

  async finish(): Promise<void> {
    this.closeLine();
    await this.#writes;
  }

  /** A surrogate pair may arrive in two deltas; half of it is no valid character. */
  #wholeText(piece: string): string {
    const text = this.#pendingHalf + piece;
    const isHalf = /[\ud800-\udbff]$/.test(text);
    this.#pendingHalf = isHalf ? text.slice(-1) : "";
    return isHalf ? text.slice(0, -1) : text;
  }
}
