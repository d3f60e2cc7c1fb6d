import type { ChangeAnswer, ChangeQuestion } from "@throughline/agent/internal";
import { shorten, styledWidth } from "../../cells.ts";
import { terminalSafeLine } from "../../terminal-safe.ts";
import type { Region } from "../screen/screen.ts";
import type { TypedKey } from "../screen/typed-text.ts";
import { changeLines, type ShownChange } from "./change-lines.ts";
import { type ChangeLook, changeRows } from "./change-rows.ts";

/** A key that comes sooner after another one, or after the question, was meant for the typed text. */
const settleMs = 300;
/** A lower screen has no room for a row for each answer. */
const leastRows = 10;
/** The beginning of a new file says enough; Ctrl-O shows the rest. */
const mostNewLines = 20;

const choices = [
  { key: "y", text: "Yes (y)" },
  { key: "s", text: "Yes, stop asking in this session (s)" },
  { key: "n", text: "No (n)" },
  { key: "w", text: "No, and say why (w)" },
] as const;

/** States what a key did. `typed` leaves it to the typed text, and an answer ends the question. */
type Pressed = "typed" | "taken" | "words" | "whole" | ChangeAnswer;

/** A change that waits for the answer of a person: what it does, and the possible answers. */
export class LiveQuestion {
  readonly #question: ChangeQuestion;
  readonly #change: ShownChange;
  readonly #nowMs: () => number;
  #quietSinceMs: number;
  #chosen = 0;
  #isWhole = false;

  constructor(question: ChangeQuestion, nowMs: () => number) {
    this.#question = question;
    this.#change = changeLines(question);
    this.#nowMs = nowMs;
    this.#quietSinceMs = nowMs();
  }

  /** Returns the rows of the region. The caret is at the chosen answer. */
  region(look: ChangeLook, mostRows: number): Region {
    const answers = this.#answerRows(look, mostRows >= leastRows);
    const shown = this.#rows(look, Math.max(1, mostRows - answers.rows.length - 1));
    const rows = [this.#title(look), ...shown, ...answers.rows];
    return {
      rows,
      caret: { row: rows.length - answers.rows.length + answers.caret.row, column: answers.caret.column },
    };
  }

  /** Returns the rows that stay on the terminal after the answer. */
  finished(look: ChangeLook, answer: ChangeAnswer, mostRows: number): readonly string[] {
    const { styles } = look;
    const rows = this.#isWhole ? [] : [this.#title(look), ...this.#rows(look, mostRows)];
    return [...rows, styles.dim(`  ${answerText(answer)}`)];
  }

  /** Returns the whole change, for a person who asks for it. It is committed once. */
  whole(look: ChangeLook): readonly string[] {
    if (this.#isWhole) return [];
    this.#isWhole = true;
    return [this.#title(look), ...changeRows(this.#change.lines, look, false)];
  }

  press({ name, character }: TypedKey): Pressed {
    if (name === "ctrl+c") return { decision: "cancel" };
    if (name === "ctrl+o") return "whole";
    const isSettled = this.#nowMs() - this.#quietSinceMs >= settleMs;
    if (!isSettled) {
      this.#quietSinceMs = this.#nowMs();
      return "typed";
    }
    if (name === "escape") return { decision: "no", words: null };
    if (name === "enter") return this.#answer(choices[this.#chosen]?.key ?? "n");
    const step = steps[name ?? ""] ?? 0;
    if (step !== 0) this.#chosen = (this.#chosen + step + choices.length) % choices.length;
    return character === null ? "taken" : this.#answer(character.toLowerCase());
  }

  #answer(key: string): Pressed {
    switch (key) {
      case "y":
        return { decision: "once" };
      case "s":
        return { decision: "session" };
      case "n":
        return { decision: "no", words: null };
      case "w":
        return "words";
      default:
        return "taken";
    }
  }

  #title({ styles, signs, columns }: ChangeLook): string {
    const { tool, path, number, total, isDelicate } = this.#question;
    const count = total > 1 ? `   ${number} of ${total}` : "";
    const note = isDelicate ? "   always asked" : "";
    const facts = `   ${this.#change.summary}${count}${note}`;
    const room = Math.max(8, columns - 4 - tool.length - facts.length);
    const name = shorten(terminalSafeLine(path), room, "start");
    return `${signs.tool} ${tool} ${styles.bold(name)}${styles.dim(facts)}`;
  }

  #rows(look: ChangeLook, mostRows: number): readonly string[] {
    const { lines } = this.#change;
    const isNew = this.#question.beforeBytes === null;
    const most = Math.max(1, isNew ? Math.min(mostRows, mostNewLines + 1) : mostRows);
    if (lines.length <= most) return changeRows(lines, look, true);
    const shown = changeRows(lines.slice(0, most - 1), look, true);
    const left = lines.length - (most - 1);
    const { styles, signs } = look;
    return [...shown, styles.dim(`  ${signs.ellipsis} ${left} more ${left === 1 ? "row" : "rows"} (Ctrl-O)`)];
  }

  /** One row where the screen is wide enough, else one for each answer; on a low screen their keys. */
  #answerRows({ styles, signs, columns }: ChangeLook, hasRoom: boolean): Region {
    const question = "  Allow this change?";
    const texts = choices.map(({ text }, at) => (at === this.#chosen ? `${signs.choice} ${text}` : `  ${text}`));
    const row = `${question} ${texts.join(" ")}`;
    const bold = texts.map((text, at) => (at === this.#chosen ? styles.bold(text) : text));
    if (styledWidth(row) < columns) {
      const column = styledWidth(`${question} ${texts.slice(0, this.#chosen).join(" ")}`) + (this.#chosen > 0 ? 1 : 0);
      return { rows: [`${question} ${bold.join(" ")}`], caret: { row: 0, column } };
    }
    if (!hasRoom) {
      const keys = choices.map(({ key }, at) => (at === this.#chosen ? styles.bold(`${signs.choice}${key}`) : key));
      return { rows: [`  Allow? ${keys.join(" ")}`], caret: { row: 0, column: 9 + this.#chosen * 2 } };
    }
    return { rows: [question, ...bold.map((text) => `  ${text}`)], caret: { row: 1 + this.#chosen, column: 2 } };
  }
}

const steps: Readonly<Record<string, number>> = {
  up: -1,
  left: -1,
  "shift+tab": -1,
  down: 1,
  right: 1,
  tab: 1,
  "ctrl+p": -1,
  "ctrl+n": 1,
};

function answerText(answer: ChangeAnswer): string {
  switch (answer.decision) {
    case "once":
      return "allowed";
    case "session":
      return "allowed, and the changes that follow in this session";
    case "no":
      return answer.words === null ? "not allowed" : `not allowed: ${terminalSafeLine(answer.words)}`;
    case "cancel":
      return "not allowed; the turn was canceled";
  }
}
