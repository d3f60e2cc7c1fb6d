import { terminalSafe } from "../terminal-safe.ts";
import {
  eraseTo,
  insertText,
  moveDown,
  moveEnd,
  moveHome,
  moveLeft,
  moveRight,
  moveUp,
  moveWordLeft,
  moveWordRight,
} from "./edit-buffer.ts";
import type { EditBuffer } from "./edit-buffer.ts";
import type { InputHistory } from "./input-history.ts";

export interface Key {
  readonly name?: string | undefined;
  readonly sequence?: string;
  readonly ctrl?: boolean;
  readonly meta?: boolean;
  readonly shift?: boolean;
}

/** Terminals with extended key reporting send this sequence for Shift and Return. */
const shiftReturn = "\u001b[13;2u";

const plainKeys: Readonly<Record<string, (buffer: EditBuffer) => EditBuffer>> = {
  left: moveLeft,
  right: moveRight,
  home: moveHome,
  end: moveEnd,
  backspace: (buffer) => eraseTo(buffer, moveLeft),
  delete: (buffer) => eraseTo(buffer, moveRight),
};

const controlKeys: Readonly<Record<string, (buffer: EditBuffer) => EditBuffer>> = {
  a: moveHome,
  e: moveEnd,
  b: moveLeft,
  f: moveRight,
  h: (buffer) => eraseTo(buffer, moveLeft),
  d: (buffer) => eraseTo(buffer, moveRight),
  w: (buffer) => eraseTo(buffer, moveWordLeft),
  u: (buffer) => eraseTo(buffer, moveHome),
  k: (buffer) => eraseTo(buffer, moveEnd),
  left: moveWordLeft,
  right: moveWordRight,
};

const metaKeys: Readonly<Record<string, (buffer: EditBuffer) => EditBuffer>> = {
  b: moveWordLeft,
  f: moveWordRight,
  left: moveWordLeft,
  right: moveWordRight,
  backspace: (buffer) => eraseTo(buffer, moveWordLeft),
  d: (buffer) => eraseTo(buffer, moveWordRight),
};

export function applyKey(
  buffer: EditBuffer,
  character: string | undefined,
  key: Key,
  history: InputHistory,
): EditBuffer | null {
  const { name = "", sequence, ctrl = false, meta = false } = key;
  if (sequence === shiftReturn || name === "enter" || name === "return") return insertText(buffer, "\n");
  if (name === "up") return moveUp(buffer) ?? recalled(history.older(buffer.text));
  if (name === "down") return moveDown(buffer) ?? recalled(history.newer());
  const move = (ctrl ? controlKeys : meta ? metaKeys : plainKeys)[name];
  if (move !== undefined && Object.hasOwn(ctrl ? controlKeys : meta ? metaKeys : plainKeys, name)) return move(buffer);
  if (ctrl || meta || character === undefined || name === "tab" || name === "escape") return null;
  const typed = terminalSafe(character);
  return typed === "" ? null : insertText(buffer, typed);
}

function recalled(text: string | null): EditBuffer | null {
  return text === null ? null : { text, caret: text.length };
}
