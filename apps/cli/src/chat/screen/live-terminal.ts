import type { Host } from "../../host.ts";
import type { Output, TerminalScreen } from "../../output.ts";
import { prompt } from "./prompt-rows.ts";
import { openRawInput, type RawInput } from "./raw-input.ts";
import { type Frame, Screen } from "./screen.ts";
import { type Signs, signsOf } from "./signs.ts";
import { createStyles, type Styles } from "./styles.ts";
import type { KeyReader } from "./typed-text.ts";

export type LiveHost = Pick<Host, "stdin" | "stdout" | "signal" | "environment" | "stopProcess" | "interrupt">;

const pasteMarks = { on: "\u001b[?2004h", off: "\u001b[?2004l" };

/** This frame stands there until a view draws. Keys that come meanwhile wait for the editor. */
const firstRegion: Frame = { rows: ["", prompt], caret: { row: 1, column: prompt.length } };

/** Puts the terminal in raw mode, and keeps a region at its bottom. What the output writes stands above the region. */
export class LiveTerminal implements TerminalScreen {
  readonly styles: Styles;
  readonly signs: Signs;
  readonly screen: Screen;
  readonly #host: LiveHost;
  readonly #output: Output;
  readonly #input: RawInput;
  #partial = "";
  #isSuspended = false;
  #isClosed = false;
  #draw = (): Frame => firstRegion;
  #leave = (): void => {
    this.close();
    if (!this.#host.signal.aborted) this.#host.interrupt?.();
  };

  constructor(host: LiveHost, output: Output) {
    this.#host = host;
    this.#output = output;
    this.styles = createStyles(output.isColored);
    this.signs = signsOf(host.environment);
    this.screen = new Screen(host.stdout, { draw: () => this.#draw(), isAscii: this.signs.isAscii });
    this.#input = openRawInput(host, this.#onLeave);
    host.stdout.on("resize", this.#onResize);
    host.signal.addEventListener("abort", this.#onLeave, { once: true });
    this.#begin();
  }

  /** Gives the region to a view; `leave` runs at the end of the input, and when the program must end, also if it did before. */
  use(draw: () => Frame, leave: () => void): void {
    this.#draw = draw;
    this.#leave = leave;
    if (this.#isClosed || this.#host.signal.aborted) return leave();
    this.screen.flush();
  }

  /** Gives the keys to this reader, those first that came before. */
  readTo(reader: KeyReader): void {
    if (this.#isClosed) reader.close();
    else this.#input.readTo(reader);
  }

  /** Holds a line that other writers have begun. */
  get partial(): readonly string[] {
    return this.#partial === "" ? [] : [this.#partial];
  }

  print(text: string): void {
    const lines = `${this.#partial}${text}`.split("\n");
    this.#partial = lines.pop() ?? "";
    if (lines.length > 0) this.screen.commit(lines);
  }

  suspend({ forgetsKeys = false }: { readonly forgetsKeys?: boolean } = {}): void {
    if (forgetsKeys) this.#input.forget();
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#output.redirect(null);
    this.screen.suspend();
    this.#host.stdout.write(pasteMarks.off);
    this.#input.pause();
  }

  resume(): void {
    // An interrupt may have closed it meanwhile.
    if (this.#isClosed) return;
    this.#isSuspended = false;
    this.#input.resume();
    this.#begin();
    this.screen.resume();
  }

  /** Restores the terminal, once. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.suspend();
    this.#host.stdout.off("resize", this.#onResize);
    this.#host.signal.removeEventListener("abort", this.#onLeave);
    this.#input.close();
  }

  #begin(): void {
    this.#host.stdout.write(pasteMarks.on);
    this.#output.redirect(this);
  }

  readonly #onResize = (): void => this.screen.invalidate();
  readonly #onLeave = (): void => this.#leave();
}
