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
  /** Resolves after all output is written and the cursor is at the start of a line. */
  finish(): Promise<void>;
  readonly toolLines: readonly ToolLine[];
  readonly events: readonly EventObject[];
}

/** `isText: false` suppresses the answer for a reader that gets it as JSON. */
export function createTurnPrinter(output: Output, { isText = true }: { readonly isText?: boolean } = {}): TurnPrinter {
  const tools = createToolLines();
  const toolLines: ToolLine[] = [];
  const events: EventObject[] = [];
  const writer = new TurnWriter(output);
  /** Holds the text of a reply that was cut off until its rest comes. Notes may come in between. */
  let cutText = "";
  const showCut = (note: string | null): void => {
    if (cutText === "") return;
    writer.delta({ type: "text", text: cutText });
    cutText = "";
    if (note !== null) writer.line(note);
  };
  let isContinued = false;
  const takeRecord = (record: SessionRecord): void => {
    // Each reply of a turn starts on a new line.
    if (messageRole(record) === "assistant") writer.closeLine();
    const { recovered } = (record["message"] ?? {}) as { readonly recovered?: unknown };
    if (recovered === true && isText) cutText = recordText(record);
    isContinued ||= isContinueMessage(record);
    if (messageRole(record) === "user" && !isContinued) showCut("(cut off)");
  };
  return {
    toolLines,
    events,
    onDelta: (delta) => {
      if (!isText) return;
      if (delta.type === "text") showCut(null);
      writer.delta(delta);
    },
    onEvent: (event) => {
      if (event.name === "record.appended") takeRecord(event.record.record);
      if (event.name === "call.started" && !isContinued) showCut("(asked again)");
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
    finish: () => {
      showCut(null);
      return writer.finish();
    },
  };
}

/** Writes one piece after the other, and knows whether the cursor is inside a line of the answer. */
class TurnWriter {
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
