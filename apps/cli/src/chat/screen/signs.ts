import { asciiText, showsUnicode, styledWidth } from "../../cells.ts";

/** The signs of the screen beyond ASCII, for a terminal that shows them. */
export interface Signs {
  readonly isAscii: boolean;
  readonly bullet: string;
  readonly bar: string;
  readonly line: string;
  readonly cross: string;
  readonly tool: string;
  readonly ellipsis: string;
  readonly dot: string;
  readonly full: string;
  readonly empty: string;
  readonly choice: string;
  readonly unchecked: string;
  readonly checked: string;
  /** Frames of the sign of life. */
  readonly spinner: readonly string[];
}

const unicodeSigns: Signs = {
  isAscii: false,
  bullet: "•",
  bar: "│",
  line: "─",
  cross: "┼",
  tool: "●",
  ellipsis: "…",
  dot: "·",
  full: "▮",
  empty: "▯",
  choice: "❯",
  unchecked: "☐",
  checked: "☑",
  spinner: Array.from("⠋⠙⠹⠸⠼⠴⠦⠧"),
};

const asciiSigns: Signs = {
  isAscii: true,
  bullet: "-",
  bar: "|",
  line: "-",
  cross: "+",
  tool: "*",
  ellipsis: "...",
  dot: "|",
  full: "#",
  empty: ".",
  choice: ">",
  unchecked: "[ ]",
  checked: "[x]",
  spinner: ["|", "/", "-", "\\"],
};

/** Returns the signs that the encoding of the environment can show. */
export function signsOf(environment: Readonly<Record<string, string | undefined>>): Signs {
  return showsUnicode(environment) ? unicodeSigns : asciiSigns;
}

/** Replaces the signs of ours that lines of other files hold. A cut that has no room for three dots has one. */
export function asciiRow(row: string, room: number): string {
  const wide = asciiText(row);
  return wide === row || styledWidth(wide) <= room ? wide : asciiText(row, ".");
}
