import type { AskChange } from "@throughline/agent/internal";
import type { StoredRecord } from "@throughline/core";
import { terminalSafe } from "../../terminal-safe.ts";
import { type ChatStatus, type ChatView, interruptedExitCode, leaveWithinMs, type Submission } from "../chat-view.ts";
import { QuestionBox } from "../change/question-box.ts";
import { DoublePress } from "../double-press.ts";
import { Completer } from "../files/completer.ts";
import type { FindCompletion } from "../files/find-completion.ts";
import { HistorySearch } from "../history-search.ts";
import type { InputHistory } from "../input-history.ts";
import type { Steering } from "../steering.ts";
import { Submissions } from "../submissions.ts";
import type { TurnWriter } from "../turn-printer.ts";
import { FoldedTexts } from "./folded-texts.ts";
import { LiveStatus } from "./live-status.ts";
import { LiveTurnWriter, markdownOptions } from "./live-turn-writer.ts";
import type { LiveHost, LiveTerminal } from "./live-terminal.ts";
import { prompt, promptRows, recalledText, submittedRows } from "./prompt-rows.ts";
import { counted } from "../../counted.ts";
import type { Frame, Region, Screen } from "./screen.ts";
import type { Signs } from "./signs.ts";
import { ShellMarks } from "./shell-marks.ts";
import type { Styles } from "./styles.ts";
import type { TypedKey, TypedText } from "./typed-text.ts";
import { proseWidth, wrapRows } from "./wrap-rows.ts";

const whyPrompt = "Why not? ";
/** These rows stay for the greeting and the typed text when a session is shown again. */
const redrawnBelow = 6;
/** A second Esc within this time opens `/rewind`. */
const rewindWithinMs = 600;

export interface LiveViewOptions {
  readonly terminal: LiveTerminal;
  readonly history: InputHistory;
  readonly find: FindCompletion;
  /** Opens the text in the person's editor, and returns what it became. */
  readonly edit: (text: string) => Promise<string>;
}

/** A conversation on the main screen: what is finished scrolls away, the reply and the typed text stand below it. */
export class LiveView implements ChatView {
  readonly #host: LiveHost;
  readonly #options: LiveViewOptions;
  readonly #styles: Styles;
  readonly #signs: Signs;
  readonly #terminal: LiveTerminal;
  readonly #screen: Screen;
  readonly #marks: ShellMarks;
  readonly #folded = new FoldedTexts();
  readonly #questions: QuestionBox;
  #typed: TypedText | null = null;
  readonly #search: HistorySearch;
  readonly #completer: Completer;
  #turn: LiveTurnWriter | null = null;
  readonly #status: LiveStatus;
  readonly #submissions = new Submissions();
  #interrupt: (() => void) | null = null;
  #steering: Steering | null = null;
  readonly #cancels = new DoublePress(leaveWithinMs);
  readonly #escapes = new DoublePress(rewindWithinMs);

  constructor(host: LiveHost, options: LiveViewOptions) {
    const { terminal, history, find } = options;
    this.#host = host;
    this.#options = options;
    this.#terminal = terminal;
    this.#styles = terminal.styles;
    this.#signs = terminal.signs;
    this.#screen = terminal.screen;
    this.#status = new LiveStatus(this.#styles, this.#signs);
    this.#marks = new ShellMarks(host);
    this.#questions = new QuestionBox({
      screen: this.#screen,
      styles: this.#styles,
      signs: this.#signs,
      typed: () => this.#typed,
      onCancel: () => this.#stop(),
    });
    this.#search = new HistorySearch(history);
    this.#completer = new Completer({
      find,
      styles: this.#styles,
      signs: this.#signs,
      typed: () => this.#typed,
      onChange: () => this.#screen.invalidate(),
    });
    terminal.use(() => this.#draw(), this.#leave);
    void this.#load();
  }

  async #load(): Promise<void> {
    const { createKeyReader, createTypedText } = await import("./typed-text.ts");
    this.#typed = createTypedText(() => this.#screen.mostRows);
    this.#terminal.readTo(
      createKeyReader(
        (key) => this.#press(key),
        (text) => this.#change((typed) => typed.paste(text)),
      ),
    );
  }

  read(): Promise<Submission> {
    this.#screen.flush();
    this.#marks.write("end");
    this.#status.isChanged = false;
    const next = this.#submissions.next();
    if (next === null) return this.#submissions.read();
    if (next.kind === "text") this.#echo(next.text);
    return Promise.resolve(next);
  }

  say(text: string): void {
    if (this.#turn === null) this.#screen.commit(this.#note(text));
    else this.#turn.line(text);
  }

  showStatus(status: ChatStatus): void {
    this.#status.set(status);
    this.#screen.invalidate();
  }

  showChanged(): void {
    this.#status.isChanged = true;
    this.#screen.invalidate();
  }

  async showRecords(records: readonly StoredRecord[], earlier: number): Promise<void> {
    const parts = { styles: this.#styles, signs: this.#signs, environment: this.#host.environment };
    const [{ sessionRows }, options] = await Promise.all([import("./session-rows.ts"), markdownOptions(parts)]);
    const rows = sessionRows(records, options, this.#screen.columns);
    for (const record of records) this.#folded.take(record);
    const shown = rows.slice(-Math.max(1, this.#screen.mostRows - redrawnBelow));
    const isCut = earlier > 0 || shown.length < rows.length;
    const note = earlier > 0 ? `${this.#signs.ellipsis} ${counted(earlier, "earlier record")}` : this.#signs.ellipsis;
    this.#screen.commit([...(isCut ? ["", this.#styles.dim(note)] : []), ...shown]);
  }

  readonly ask: AskChange = (question, signal) => this.#questions.ask(question, signal);

  onInterrupt(listener: (() => void) | null): void {
    this.#interrupt = listener;
  }

  steerBy(steering: Steering | null): void {
    this.#steering = steering;
  }

  giveBack(text: string): void {
    this.#change((typed) => typed.setText([text, typed.text].filter((each) => each !== "").join("\n")));
  }

  turnWriter(): TurnWriter {
    this.#turn = new LiveTurnWriter({
      screen: this.#screen,
      styles: this.#styles,
      signs: this.#signs,
      environment: this.#host.environment,
      folded: this.#folded,
      onFinish: () => (this.#turn = null),
    });
    // The sign of life stands before the turn loads what it needs.
    this.#screen.flush();
    return this.#turn;
  }

  suspend(): void {
    this.#terminal.suspend();
  }

  resume(): void {
    this.#terminal.resume();
  }

  close(): void {
    this.#terminal.close();
  }

  readonly #leave = (): void => this.#submit({ kind: "leave", code: interruptedExitCode });

  #note(text: string): readonly string[] {
    return wrapRows(terminalSafe(text), proseWidth(this.#screen.columns)).map(this.#styles.dim);
  }

  #echo(text: string): void {
    this.#screen.commit(["", ...this.#marks.input(submittedRows(text, this.#styles))]);
    this.#screen.flush();
    this.#marks.write("output");
  }

  #draw(): Frame {
    const bottom = this.#bottom();
    const step = this.#turn?.frame(Math.max(1, this.#screen.mostRows - bottom.rows.length)) ?? {
      finished: [],
      open: [],
    };
    const above = [...step.open, ...this.#terminal.partial];
    return {
      finished: step.finished,
      rows: [...above, ...bottom.rows],
      caret: { row: above.length + bottom.caret.row, column: bottom.caret.column },
    };
  }

  /** An empty row or the sign of life, a question, and the typed text below it. */
  #bottom(): Region {
    const own = this.#promptRows();
    const status = [...this.#completer.rows(this.#screen.columns), ...this.#statusRows()];
    const asked = this.#questions.region(this.#screen.mostRows - 1 - own.rows.length - status.length);
    const activity = asked === null ? (this.#turn?.activity() ?? "") : "";
    const above = [activity, ...(asked?.rows ?? [])];
    const rows = [...above, ...own.rows, ...status];
    if (asked !== null && !this.#questions.isAskingWhy)
      return { rows, caret: { row: asked.caret.row + 1, column: asked.caret.column } };
    return { rows, caret: { row: own.caret.row + above.length, column: own.caret.column } };
  }

  #statusRows(): readonly string[] {
    const waiting = { steering: this.#steering?.count ?? 0, queued: this.#submissions.queuedTexts };
    return this.#status.rows(waiting, this.#turn?.states() ?? [], this.#screen.columns);
  }

  #promptRows(): Region {
    const label = this.#questions.isAskingWhy ? whyPrompt : prompt;
    return promptRows(label, { typed: this.#typed, search: this.#search.open }, this.#screen.columns);
  }

  #press(key: TypedKey): void {
    if (key.name !== "tab") this.#completer.close();
    if (this.#questions.press(key)) return;
    if (this.#search.press(key, (text) => this.#typed?.setText(text))) return this.#screen.invalidate();
    switch (key.name) {
      case "ctrl+c":
        return this.#cancel();
      case "ctrl+d":
        if (this.#typed?.shown === "") return this.#submit({ kind: "leave", code: 0 });
        break;
      case "ctrl+alt+[":
        // Two presses of Esc that came as one.
        this.#escape();
        return this.#escape();
      case "escape":
        return this.#escape();
      case "alt+up":
        return this.#takeNewestBack();
      case "alt+enter":
        if (this.#steer()) return;
        break;
      case "ctrl+z":
        return this.#stopProcess();
      case "tab":
        return this.#completer.press();
      case "ctrl+g":
        return void this.#editElsewhere();
      case "ctrl+o":
        return this.#unfold();
      case "ctrl+l":
        return this.#screen.clear();
      case "enter":
        return this.#enter();
      case "up":
      case "down":
        if (this.#recall(key.name)) return;
        break;
    }
    this.#change((typed) => typed.press(key));
  }

  #escape(): void {
    if (!this.#submissions.isRead) return this.#stop();
    if (this.#typed?.shown === "" && this.#escapes.press()) this.#submit({ kind: "text", text: "/rewind" }, "/rewind");
  }

  #stopProcess(): void {
    if (this.#host.stopProcess === undefined) return;
    this.suspend();
    this.#host.stopProcess(() => this.resume());
  }

  async #editElsewhere(): Promise<void> {
    const typed = this.#typed;
    if (typed === null || !this.#submissions.isRead) return;
    this.suspend();
    const edited = await this.#options.edit(typed.text).catch((error: unknown) => error as Error);
    this.resume();
    if (typeof edited === "string") this.#change(() => typed.setText(edited));
    else this.say(`(${edited.message})`);
  }

  #unfold(): void {
    const rows = this.#folded.unfold(this.#styles, this.#signs);
    if (rows === null) this.say("(nothing more to show)");
    else this.#screen.commit(rows);
  }

  #change(work: (typed: TypedText) => void): void {
    if (this.#typed !== null) work(this.#typed);
    this.#screen.invalidate();
  }

  #recall(direction: "up" | "down"): boolean {
    const text = recalledText(direction, this.#typed, this.#options.history, this.#screen.columns - prompt.length);
    if (text !== null) this.#change((typed) => typed.setText(text));
    return text !== null;
  }

  #enter(): void {
    const typed = this.#typed;
    if (typed === null) return;
    const { text, shown } = typed;
    if (typed.submit()) {
      this.#options.history.add(text);
      this.#submit({ kind: "text", text }, shown);
    }
    this.#screen.invalidate();
  }

  /** Sends the typed text into the running turn. Returns false without a running turn. */
  #steer(): boolean {
    const [typed, steering] = [this.#typed, this.#steering];
    if (typed === null || steering === null || this.#submissions.isRead || typed.text.trim() === "") return false;
    const { text } = typed;
    // A command is for this program, and not for the model.
    if (text.startsWith("/")) return false;
    this.#options.history.add(text);
    this.#change(() => typed.setText(""));
    steering.send(text);
    return true;
  }

  #takeNewestBack(): void {
    if (this.#submissions.queuedTexts > 0) return this.#takeBack(1);
    if (this.#steering?.takeBack() !== true && this.#steering?.isTaken === true) this.say("(already sent)");
  }

  #submit(submission: Submission, shown = ""): void {
    this.#submissions.submit(submission, () => {
      if (submission.kind === "text") this.#echo(shown);
    });
  }

  #cancel(): void {
    const typed = this.#typed;
    const isEmpty = typed === null || typed.shown === "";
    if (this.#cancels.press() && isEmpty) this.#leave();
    else if (!this.#submissions.isRead) this.#stop();
    else if (isEmpty) this.say("(Ctrl-C again leaves; so does /quit)");
    else {
      this.#screen.commit(this.#note(`${prompt}${typed.shown}`));
      this.#change(() => typed.setText(""));
      // Discarding a line does not count as the first Ctrl-C of two.
      this.#cancels.forget();
    }
  }

  /** Cancels what runs. What waits behind it comes back to be edited. */
  #stop(): void {
    this.#takeBack(Infinity);
    this.#interrupt?.();
  }

  /** Puts the newest texts that wait before the typed one. */
  #takeBack(count: number): void {
    const typed = this.#typed;
    const taken = typed === null ? [] : this.#submissions.takeBack(count);
    if (typed === null || taken.length === 0) return;
    const texts = [...taken, typed.text].filter((text) => text !== "");
    this.#change(() => typed.setText(texts.join("\n")));
  }
}
