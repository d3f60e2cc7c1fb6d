import type { CommandContext } from "../command.ts";
import type { Conversation } from "./conversation.ts";

/** What a command of the conversation works with. */
export interface ReplContext {
  readonly context: CommandContext;
  readonly conversation: Conversation;
  /** A turn; null resumes the last one. */
  runTurn(text: string | null): Promise<void>;
  /** Work that Ctrl-C ends. */
  interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Work that reports its own end: events of these names are not reported beside it. */
  reportedAlone(names: ReadonlySet<string>, work: () => Promise<void>): Promise<void>;
}
