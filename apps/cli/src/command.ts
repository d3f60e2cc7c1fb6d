import type { AgentContext, AskPassphrase, StoreParts } from "@throughline/agent/internal";
import type { ErrorCode, Finding, SessionStore } from "@throughline/core";
import type { Setting } from "@throughline/config/internal";
import type { Host } from "./host.ts";
import type { Output } from "./output.ts";
import type { TokenPlaces } from "./server/server-access.ts";

export interface OptionDefinition {
  /** Uses commander's syntax: `--tail <n>`, `-o, --output <path>`. */
  readonly flags: string;
  readonly description: string;
  /** Limits the accepted words; they are checked and completed. @default any text */
  readonly choices?: readonly string[];
  /** Lists values for shell completion; any other text is accepted too. */
  readonly suggestions?: readonly string[];
  /** True for an option that only tests use; help omits it. @default false */
  readonly isHidden?: boolean;
  /** True collects the values of an option that is given several times. @default false: the last one counts */
  readonly isRepeatable?: boolean;
  /** Converts the text to the option's value. @default the text itself */
  readonly parse?: (text: string) => unknown;
}

/** Describes a command as plain data, so that help and documentation need not load its implementation. */
export interface CommandDefinition {
  readonly name: string;
  readonly description: string;
  /** Uses commander's syntax: `<key>`, `[path]`, `<path...>`. */
  readonly arguments: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionDefinition[];
  /** True for a command that only other programs call; help and documentation omit it. @default false */
  readonly isHidden?: boolean;
  /** True if `--model`, `--window` and similar options set the settings of the same name. @default false */
  readonly asksModel?: boolean;
  /** Maps option names in camel case to the settings they set. @default none */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * True if an interrupt is the usual end. The command then stops by itself and returns its own exit code. @default
   * false
   */
  readonly isService?: boolean;
  /** Maps error codes to exit codes other than 1. @default none */
  readonly exitCodes?: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Explains the state after an interrupt and how to continue. @default no text: an interrupt is the usual end */
  readonly afterInterrupt?: string;
  /** Omits the program's name. Tests run these examples. */
  readonly examples: readonly [string, string];
  readonly load: () => Promise<CommandModule>;
}

export interface ListedCommand extends CommandDefinition {
  readonly group: string;
}

interface CommandModule {
  /** Returns the exit code; a failure is thrown. */
  run(context: CommandContext, input: CommandInput): Promise<number>;
}

export interface CommandInput {
  readonly arguments: readonly string[];
  /** Keys are the long option names in camel case. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface CommandContext extends AgentContext {
  readonly host: Host;
  readonly output: Output;
  /** Holds the effective settings of `config`. */
  readonly settings: readonly Setting[];
  readonly tokenPlaces: TokenPlaces;
  /** Finds the bucket and the encryption of the store of a URL. */
  readonly storeParts: StoreParts;
  readonly commands: readonly CommandDefinition[];
  /** Aborts on an interrupt and at the command's time limit. */
  readonly signal: AbortSignal;
  /**
   * Opens the store of this run once; it is closed at the end. Only writers create a missing store. A list needs no main
   * key. Findings go to stderr without `onFinding`.
   */
  openStore(purpose: "list" | "read" | "write", onFinding?: (finding: Finding) => void): Promise<SessionStore>;
  /** Holds whether a person can be asked: there is a terminal, and no `--no-input`. */
  readonly canAsk: boolean;
  /** Asks for a secret that is not shown; null without a person to ask. */
  readonly askSecret: AskPassphrase | null;
  /** Asks a question, and returns the typed line; null where the input ends. The caller makes sure that a person is there. */
  askLine(question: string): Promise<string | null>;
  /** True for `--yes`: the planned changes are carried out. */
  readonly isYes: boolean;
  /**
   * Asks before an action that cannot be undone. @throws {ThroughlineError} USAGE without a terminal to ask on, ABORTED
   */
  confirm(question: string): Promise<void>;
}
