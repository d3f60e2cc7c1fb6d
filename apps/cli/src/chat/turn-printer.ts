import type { ChatDelta } from "@throughline/core";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";
import type { Output } from "../output.ts";
import { messageRole } from "@throughline/core/internal";
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
  let writes: Promise<void> = Promise.resolve();
  let isLineOpen = false;
  let isThinking = false;
  let pendingHalf = "";
  const write = (work: () => Promise<void>): void => {
    writes = writes.then(work);
  };
  const closeLine = (): void => {
    if (isLineOpen) write(() => output.stream("\n"));
    isLineOpen = false;
  };
  const line = (text: string): void => {
    closeLine();
    write(async () => {
      await output.line({ text, style: "dim" });
      await output.flush();
    });
  };
  return {
    toolLines,
    events,
    onDelta: (delta) => {
      if (!isText) return;
      if (delta.type === "thinking" && !isThinking) line("(thinking)");
      isThinking = delta.type === "thinking";
      if (delta.type !== "text" || delta.text === "") return;
      // A surrogate pair may arrive in two deltas; half of it is no valid character.
      const text = pendingHalf + delta.text;
      const isHalf = /[\ud800-\udbff]$/.test(text);
      pendingHalf = isHalf ? text.slice(-1) : "";
      const whole = isHalf ? text.slice(0, -1) : text;
      if (whole === "") return;
      isLineOpen = !whole.endsWith("\n");
      write(() => output.stream(whole));
    },
    onEvent: (event) => {
      // Each reply of a turn starts on a new line.
      if (event.name === "record.appended" && messageRole(event.record.record) === "assistant") closeLine();
      const tool = event.name === "record.appended" ? tools.take(event.record, performance.now()) : null;
      if (tool !== null) {
        toolLines.push(tool);
        if (output.isTerminal) line(`● ${toolLineText(tool)}`);
        else write(async () => output.note(toolLineText(tool)));
      }
      // The turn ends with an error that reports the same.
      if (event.name === "session.replaced") return;
      const note = eventNote(event);
      if (note === null) return;
      const told = eventObject(event, note);
      events.push(told);
      // The caller reports the denial with its reason.
      if (event.name === "send.denied") return;
      if (output.isTerminal) line(`(${note})`);
      else write(async () => output.event(told));
    },
    onNote: (message) => {
      if (output.isTerminal) line(`(${message})`);
      else write(async () => output.note(message));
    },
    finish: async () => {
      closeLine();
      await writes;
    },
  };
}
