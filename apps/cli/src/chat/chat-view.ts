import type { AskChange } from "@throughline/agent/internal";
import type { StoredRecord } from "@throughline/core";
import { settingOf } from "@throughline/config/internal";
import type { CommandContext } from "../command.ts";
import type { Steering } from "./steering.ts";
import type { TurnWriter } from "./turn-printer.ts";

export type Submission =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "leave"; readonly code: number };

/** Facts about the conversation that stay on the screen. */
export interface ChatStatus {
  readonly title: string;
  readonly model: string;
  /** States how full the context window is; null where that is not known. */
  readonly percent: number | null;
  readonly folder: string;
  /** States what the session cost so far, at the prices of `usage`; null where that is not known, or not yet. */
  readonly cost: string | null;
  /** Lists what stays in force until a person ends it, such as `edits: allowed`. */
  readonly states: readonly string[];
}

/** A conversation on a terminal reads from it and writes to it. */
export interface ChatView {
  /** Resolves with the next submission; lines typed before the call count. */
  read(): Promise<Submission>;
  /** Prints a note. The typed text stays below it. */
  say(text: string): void;
  /** Shows these facts from now on, on a terminal that can. */
  showStatus(status: ChatStatus): void;
  /** Says that another program wrote into the session: once as a note, or on the status line until the next `read`. */
  showChanged(): void;
  /** Shows the end of a session again, on a terminal that can. `earlier` counts the records before. */
  showRecords(records: readonly StoredRecord[], earlier: number): Promise<void>;
  /** Handles Ctrl-C and Esc while no read is active. */
  onInterrupt(listener: (() => void) | null): void;
  /** Sends texts into the running turn, until it is null. */
  steerBy(steering: Steering | null): void;
  /** Puts a text that was not sent before the typed one. */
  giveBack(text: string): void;
  /** Returns what a turn is printed with; null for plain text in the order of the output. */
  turnWriter(): TurnWriter | null;
  /** Shows what a call would change, and resolves with the answer of the person. */
  readonly ask: AskChange;
  /** Leaves the terminal to something else until `resume`. */
  suspend(): void;
  resume(): void;
  /** Restores the terminal. */
  close(): void;
}

/** Sounds where something waits for an answer. */
export const bell = "\u0007";
export const changedElsewhere = "changed elsewhere: /reload";
/** A second Ctrl-C within this time exits. */
export const leaveWithinMs = 2000;
export const interruptedExitCode = 130;

/** Returns whether rows may be painted again: the terminal can, and the setting `plain` is off. */
export function canMoveCursor({ host, settings }: Pick<CommandContext, "host" | "settings">): boolean {
  return (host.environment["TERM"] ?? "dumb") !== "dumb" && settingOf(settings, "plain") !== true;
}
