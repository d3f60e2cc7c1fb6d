import type { AskChange, ChangeAnswer } from "@throughline/agent/internal";
import type { Host } from "../host.ts";
import { terminalSafe } from "../terminal-safe.ts";
import {
  bell,
  changedElsewhere,
  type ChatView,
  interruptedExitCode,
  leaveWithinMs,
  type Submission,
} from "./chat-view.ts";
import { plainAnswer, plainQuestion } from "./change/plain-question.ts";
import { commonStart, type FindCompletion, findOrNone } from "./files/find-completion.ts";
import { DoublePress } from "./double-press.ts";
import type { InputHistory } from "./input-history.ts";
import { Submissions } from "./submissions.ts";
import type { Output } from "../output.ts";
import { ParagraphWriter } from "./paragraph-writer.ts";
import type { TurnWriter } from "./turn-printer.ts";
import { prompt } from "./screen/prompt-rows.ts";
import { openRawInput, type RawInput } from "./screen/raw-input.ts";
import type { TypedKey, TypedText } from "./screen/typed-text.ts";

const mostListed = 20;

type PlainHost = Pick<Host, "stdin" | "stdout" | "signal" | "stopProcess">;

export interface PlainViewOptions {
  readonly output: Output;
  readonly history: InputHistory;
  readonly find: FindCompletion;
}

/** Serves a terminal without cursor movement: it writes added characters and steps back over removed ones. */
export class PlainView implements ChatView {
  readonly #host: PlainHost;
  readonly #output: Output;
  readonly #history: InputHistory;
  readonly #input: RawInput;
  readonly #find: FindCompletion;
  #typed: TypedText | null = null;
  #isOpen = false;
  #writer: ParagraphWriter | null = null;
  readonly #submissions = new Submissions();
  #interrupt: (() => void) | null = null;
  #answer: ((answer: ChangeAnswer) => void) | null = null;
  readonly #cancels = new DoublePress(leaveWithinMs);

  constructor(host: PlainHost, { output, history, find }: PlainViewOptions) {
    this.#find = find;
    this.#host = host;
    this.#output = output;
    this.#history = history;
    this.#input = openRawInput(host, this.#leave);
    host.signal.addEventListener("abort", this.#leave, { once: true });
    if (host.signal.aborted) this.#leave();
    void this.#load();
  }

  async #load(): Promise<void> {
    const { createKeyReader, createTypedText } = await import("./screen/typed-text.ts");
    const typed = createTypedText(() => 24);
    this.#typed = typed;
    this.#input.readTo(
      createKeyReader(
        (key) => this.#press(key),
        (text) => this.#change(() => typed.setText(`${typed.text}${text}`)),
      ),
    );
  }

  read(): Promise<Submission> {
    const next = this.#submissions.next();
    if (next === null) {
      const read = this.#submissions.read();
      this.#open();
      return read;
    }
    if (next.kind === "text") this.#host.stdout.write(`${prompt}${terminalSafe(next.text)}\n`);
    return Promise.resolve(next);
  }

  say(text: string): void {
    this.#host.stdout.write(`${this.#isOpen ? "\n" : ""}${terminalSafe(text)}\n`);
    if (this.#isOpen) this.#open();
  }

  showStatus(): void {}

  showChanged(): void {
    this.say(`(${changedElsewhere})`);
  }

  async showRecords(): Promise<void> {}

  readonly ask: AskChange = async (question, signal) => {
    await this.#writer?.written();
    return new Promise((resolve) => {
      const typedBefore = this.#typed?.text ?? "";
      const cancel = (): void => this.#answer?.({ decision: "cancel" });
      this.#answer = (answer) => {
        signal.removeEventListener("abort", cancel);
        this.#answer = null;
        this.#isOpen = false;
        this.#typed?.setText(typedBefore);
        resolve(answer);
      };
      if (signal.aborted) return cancel();
      signal.addEventListener("abort", cancel, { once: true });
      this.#typed?.setText("");
      this.#host.stdout.write(`${bell}${plainQuestion(question).map(terminalSafe).join("\n")}\n`);
      this.#open();
    });
  };

  onInterrupt(listener: (() => void) | null): void {
    this.#interrupt = listener;
  }

  /** A person who hears the output types the next text when the turn has ended. */
  steerBy(): void {}

  giveBack(text: string): void {
    this.#change((typed) => typed.setText([text, typed.text].filter((each) => each !== "").join("\n")));
  }

  turnWriter(): TurnWriter {
    this.#writer = new ParagraphWriter(this.#output);
    return this.#writer;
  }

  suspend(): void {
    this.#input.pause();
  }

  resume(): void {
    this.#input.resume();
  }

  close(): void {
    this.#host.signal.removeEventListener("abort", this.#leave);
    this.#input.close();
  }

  readonly #leave = (): void => this.#submit({ kind: "leave", code: interruptedExitCode });

  #open(): void {
    this.#isOpen = true;
    this.#host.stdout.write(`${prompt}${terminalSafe(this.#typed?.text ?? "")}`);
  }

  #press(key: TypedKey): void {
    const text = this.#typed?.text ?? "";
    if (key.name === "ctrl+c" && this.#answer !== null) this.#cancelQuestion();
    else if (key.name === "ctrl+c") this.#cancel(text);
    else if (key.name === "ctrl+z") this.#stopProcess();
    else if (key.name === "ctrl+d" && text === "") this.#submit({ kind: "leave", code: 0 });
    else if (key.name === "enter") this.#enter(text);
    else if (key.name === "tab") void this.#complete();
    else if (key.name === null || plainKeys.has(key.name)) this.#change((typed) => typed.press(key));
  }

  /** The caret is always at the end, so the terminal can show every change. */
  #change(work: (typed: TypedText) => void): void {
    const typed = this.#typed;
    if (typed === null) return;
    const before = typed.text;
    work(typed);
    if (!this.#isOpen) return;
    const { text } = typed;
    if (text.startsWith(before)) this.#host.stdout.write(text.slice(before.length));
    else this.#host.stdout.write("\b \b".repeat(Array.from(before).length - Array.from(text).length));
  }

  /** Adds what all choices share, and lists them. A choice that does not begin as typed cannot replace it here. */
  async #complete(): Promise<void> {
    const typed = this.#typed;
    if (typed === null || this.#answer !== null) return;
    const before = typed.text;
    const found = await findOrNone(this.#find, typed.beforeCaret);
    if (found === null || typed.text !== before) return;
    const choices = found.choices.map(({ text }) => text).filter((text) => text.startsWith(found.replaced));
    const text = choices.length === 1 ? `${choices[0] ?? ""} ` : commonStart(choices);
    if (choices.length > 0) this.#change(() => typed.complete(found.replaced, text));
    if (choices.length > 1 && this.#isOpen) this.say(choices.slice(0, mostListed).join("  "));
  }

  #enter(text: string): void {
    if (this.#typed?.submit() === false) {
      if (this.#isOpen) this.#host.stdout.write("\b \b\n");
      return;
    }
    if (this.#answer !== null) return this.#takeAnswer(text);
    this.#history.add(text);
    this.#submit({ kind: "text", text });
  }

  #takeAnswer(text: string): void {
    const answer = plainAnswer(text);
    this.#host.stdout.write("\n");
    if (answer !== null) this.#answer?.(answer);
    else {
      this.#host.stdout.write("Answer y, s or n.\n");
      this.#open();
    }
  }

  #submit(submission: Submission): void {
    this.#submissions.submit(submission, () => {
      this.#isOpen = false;
      this.#host.stdout.write("\n");
    });
  }

  #stopProcess(): void {
    if (this.#host.stopProcess === undefined) return;
    this.suspend();
    this.#host.stopProcess(() => {
      this.resume();
      this.#host.stdout.write("\n");
      if (this.#isOpen) this.#open();
    });
  }

  #cancelQuestion(): void {
    this.#host.stdout.write("\n");
    this.#answer?.({ decision: "cancel" });
    // The answer is stored before the turn ends.
    setImmediate(() => this.#interrupt?.());
  }

  #cancel(text: string): void {
    if (this.#cancels.press() && text === "") this.#leave();
    else if (!this.#submissions.isRead) this.#interrupt?.();
    else if (text === "") this.say("(Ctrl-C again leaves; so does /quit)");
    else {
      this.#typed?.setText("");
      this.#host.stdout.write("\n");
      this.#open();
      // Discarding a line does not count as the first Ctrl-C of two.
      this.#cancels.forget();
    }
  }
}

const plainKeys: ReadonlySet<string> = new Set(["backspace", "ctrl+h", "ctrl+j", "alt+enter", "shift+enter"]);
