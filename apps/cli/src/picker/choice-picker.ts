import { cellWidth, shorten } from "../cells.ts";
import { canMoveCursor } from "../chat/chat-view.ts";
import { LiveTerminal } from "../chat/screen/live-terminal.ts";
import type { Frame } from "../chat/screen/screen.ts";
import type { TypedKey } from "../chat/screen/typed-text.ts";
import type { CommandContext } from "../command.ts";
import { grouped } from "../counted.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { stepOf } from "./picker-keys.ts";

export interface PickerChoice {
  /** May be any text; the beginning of it is searched, and one row of it is shown. */
  readonly text: string;
  readonly note: string;
}

type PickerContext = Pick<CommandContext, "host" | "output" | "settings" | "askLine">;

interface ChoiceList {
  readonly title: string;
  readonly choices: readonly PickerChoice[];
  /** Numbers the choice that is chosen first. */
  readonly first: number;
}

const searchLabel = " search: ";
const pageRows = 10;
/** No row is wider, and a key that goes through the texts must not wait for whole messages. */
const mostCharacters = 300;
/** Rows for the title, the search and the keys, and those that the picker leaves to what stands above it. */
const otherRows = 3 + 4;

/** Asks a person to choose one of these on the terminal, and returns its place; null for none of them. */
export async function pickChoice(context: PickerContext, { choices, ...rest }: ChoiceList): Promise<number | null> {
  if (choices.length === 0) return null;
  const list = { ...rest, choices: choices.map(({ text, note }) => ({ text: text.slice(0, mostCharacters), note })) };
  return canMoveCursor(context) ? await new ChoicePicker(context, list).pick() : await pickNumber(context, list);
}

async function pickNumber({ output, askLine }: PickerContext, { title, choices }: ChoiceList): Promise<number | null> {
  await output.line(title);
  for (const [at, { text, note }] of choices.entries())
    await output.line(`${at + 1}. ${rowText(text)}${note === "" ? "" : `, ${note}`}`);
  await output.flush();
  const typed = Number(await askLine("Number, or Enter for none: "));
  return Number.isInteger(typed) && typed >= 1 && typed <= choices.length ? typed - 1 : null;
}

class ChoicePicker {
  readonly #list: ChoiceList;
  readonly #lower: readonly string[];
  readonly #terminal: LiveTerminal;
  #filter = "";
  #found: readonly number[];
  #chosen: number;
  #top = 0;
  #finish: (place: number | null) => void = () => {};

  constructor({ host, output }: PickerContext, list: ChoiceList) {
    this.#list = list;
    this.#lower = list.choices.map(({ text }) => text.toLowerCase());
    this.#terminal = new LiveTerminal(host, output);
    this.#found = [...list.choices.keys()];
    this.#chosen = list.first;
  }

  async pick(): Promise<number | null> {
    const picked = new Promise<number | null>((resolve) => (this.#finish = resolve));
    try {
      this.#terminal.use(
        () => this.#draw(),
        () => this.#finish(null),
      );
      const { createKeyReader } = await import("../chat/screen/typed-text.ts");
      this.#terminal.readTo(
        createKeyReader(
          (key) => this.#press(key),
          (text) => this.#search(this.#filter + terminalSafeLine(text)),
        ),
      );
      return await picked;
    } finally {
      this.#terminal.close();
    }
  }

  #press({ name, character }: TypedKey): void {
    const step = stepOf(name, pageRows);
    if (step !== undefined) this.#chosen = Math.max(0, Math.min(this.#found.length - 1, this.#chosen + step));
    else if (character !== null) return this.#search(this.#filter + character);
    else if (name === "enter") return this.#finish(this.#found[this.#chosen] ?? null);
    else if (name === "ctrl+c") return this.#finish(null);
    else if (name === "escape" && this.#filter === "") return this.#finish(null);
    else if (name === "escape" || name === "ctrl+u") return this.#search("");
    else if (name === "backspace") return this.#search(Array.from(this.#filter).slice(0, -1).join(""));
    this.#terminal.screen.invalidate();
  }

  /** Keeps the choices that hold each typed word, and chooses the first of them. */
  #search(filter: string): void {
    this.#filter = filter;
    const words = filter.toLowerCase().split(/\s+/);
    this.#found = [...this.#lower.keys()].filter((at) => words.every((word) => this.#lower[at]?.includes(word)));
    this.#chosen = filter === "" ? this.#list.first : 0;
    this.#terminal.screen.invalidate();
  }

  #draw(): Frame {
    const { screen, styles } = this.#terminal;
    const cells = screen.columns - 1;
    const { title, choices } = this.#list;
    const room = Math.max(1, screen.mostRows + 2 - otherRows);
    this.#top = Math.max(this.#chosen - room + 1, Math.min(this.#top, this.#chosen));
    const shown = this.#found.slice(this.#top, this.#top + room);
    const rows = shown.flatMap((at, index) => {
      const choice = choices[at];
      return choice === undefined ? [] : [this.#row(choice, this.#top + index === this.#chosen, cells)];
    });
    const search = shorten(`${searchLabel}${this.#filter}`, cells, "start");
    const last = ` ${grouped(this.#found.length)} of ${grouped(choices.length)} ${this.#terminal.signs.dot} Enter chooses ${this.#terminal.signs.dot} Esc leaves`;
    return {
      rows: [styles.bold(shorten(` ${title}`, cells, "end")), search, ...rows, styles.dim(shorten(last, cells, "end"))],
      caret: { row: 1, column: cellWidth(search) },
    };
  }

  #row({ text, note }: PickerChoice, isChosen: boolean, cells: number): string {
    const { styles, signs } = this.#terminal;
    const shownNote = cells >= 40 ? note : "";
    const room = Math.max(1, cells - 4 - cellWidth(shownNote));
    const name = shorten(rowText(text), room, "end");
    const space = " ".repeat(Math.max(0, room - cellWidth(name)) + 1);
    const mark = isChosen ? `${styles.cyan(signs.choice)} ` : "  ";
    return ` ${mark}${isChosen ? styles.bold(name) : name}${shownNote === "" ? "" : space + styles.dim(shownNote)}`;
  }
}

function rowText(text: string): string {
  return terminalSafeLine(text.trimEnd());
}
