import type { ChatDelta } from "@throughline/core";
import type { Output } from "../output.ts";
import type { TurnWriter } from "./turn-printer.ts";

const bell = "\u0007";

/** Prints a turn for people who hear it: whole paragraphs, and a sound at the end. */
export class ParagraphWriter implements TurnWriter {
  readonly #output: Output;
  readonly #startedMs = performance.now();
  #works: Promise<void> = Promise.resolve();
  #open = "";
  #isReplyOpen = false;

  constructor(output: Output) {
    this.#output = output;
  }

  write(work: () => Promise<void>): void {
    this.#works = this.#works.then(work);
  }

  closeLine(): void {
    const rest = this.#open.trim();
    this.#open = "";
    this.#isReplyOpen = false;
    if (rest !== "") this.write(() => this.#output.stream(`${rest}\n`));
  }

  line(text: string): void {
    this.closeLine();
    this.write(async () => {
      await this.#output.line(text.replace(/^● /, "tool: "));
      await this.#output.flush();
    });
  }

  delta(delta: ChatDelta): void {
    if (delta.type !== "text" || delta.text === "") return;
    if (!this.#isReplyOpen) this.write(() => this.#output.stream("assistant:\n"));
    this.#isReplyOpen = true;
    this.#open += delta.text;
    const end = this.#open.lastIndexOf("\n\n");
    if (end < 0) return;
    const whole = this.#open.slice(0, end).trim();
    this.#open = this.#open.slice(end + 2);
    if (whole !== "") this.write(() => this.#output.stream(`${whole}\n`));
  }

  /** Resolves when all that came so far is printed. */
  written(): Promise<void> {
    return this.#works;
  }

  async finish(): Promise<void> {
    this.closeLine();
    await this.#works;
    const seconds = Math.round((performance.now() - this.#startedMs) / 1000);
    // The reply is foreign text, and this sound is ours.
    await this.#output.bytes(Buffer.from(bell));
    await this.#output.line(`done, ${seconds} s`);
    await this.#output.flush();
  }
}
