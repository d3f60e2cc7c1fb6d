import type { CommandContext } from "../command.ts";
import type { Conversation } from "@throughline/agent/internal";

export interface ReplContext {
  readonly context: CommandContext;
  readonly conversation: Conversation;
  /** Null resumes the last turn. */
  runTurn(text: string | null): Promise<void>;
  /** Puts a text into the editor, before what is typed. */
  giveBack(text: string): void;
  /** Shows the end of the session again, on a terminal that can. */
  showEnd(): Promise<void>;
  /** Runs work that has the terminal to itself. */
  givenAway<Result>(work: () => Promise<Result>): Promise<Result>;
  interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Runs work that reports its own result, so events of these names are not printed beside it. */
  reportedAlone(names: ReadonlySet<string>, work: () => Promise<void>): Promise<void>;
}
