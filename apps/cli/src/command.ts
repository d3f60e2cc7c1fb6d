import type { ErrorCode, Finding, SessionStore } from "@throughline/core";
import type { Config } from "@throughline/config";
import type { Setting } from "@throughline/config/internal";
import type { SessionScope } from "@throughline/core/internal";
import type { Host } from "./host.ts";
import type { Output } from "./output.ts";
import type { TokenPlaces } from "./server/server-access.ts";

/** An option as the help shows it. */
export interface OptionDefinition {
  /** As commander reads them: `--tail <n>`, `-o, --output <path>`. */
  readonly flags: string;
  readonly description: string;
  /** The only words it takes; they are checked and completed. @default any text */
  readonly choices?: readonly string[];
  /** Values that a shell offers; any other text is allowed too. */
  readonly suggestions?: readonly string[];
  /** True for what only tests say: help leaves it out. @default false */
  readonly isHidden?: boolean;
  /** @default the text itself */
  readonly parse?: (text: string) => unknown;
}

/** A command as plain data, so that help and documentation need not load what it does. */
export interface CommandDefinition {
  readonly name: string;
  readonly description: string;
  /** As commander reads them: `<key>`, `[path]`, `<path...>`. */
  readonly arguments: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionDefinition[];
  /** True for what only other programs call: help and documentation leave it out. @default false */
  readonly isHidden?: boolean;
  /** True where `--model`, `--window` and their kin set the settings of that name. @default false */
  readonly asksModel?: boolean;
  /** Options that set settings, by the option's name in camel case. @default none */
  readonly settings?: Readonly<Record<string, string>>;
  /** True where an interrupt is the usual end: the command stops in its own time, and gives its own exit code. @default false */
  readonly isService?: boolean;
  /** Codes that end it with something else than 1. @default none */
  readonly exitCodes?: Readonly<Partial<Record<ErrorCode, number>>>;
  /** What holds after an interrupt, and how to continue. @default no text: an interrupt is the usual end */
  readonly afterInterrupt?: string;
  /** Without the program's name. Tests run them. */
  readonly examples: readonly [string, string];
  readonly load: () => Promise<CommandModule>;
}

/** A command in the table of all. */
export interface ListedCommand extends CommandDefinition {
  /** The title under which the help lists it. */
  readonly group: string;
}

interface CommandModule {
  /** Does it and gives the exit code; a failure is thrown. */
  run(context: CommandContext, input: CommandInput): Promise<number>;
}

export interface CommandInput {
  readonly arguments: readonly string[];
  /** By the option's long name in camel case. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** What a command works with. */
export interface CommandContext {
  readonly host: Host;
  readonly output: Output;
  /** What is in force and what was taken otherwise than it was written; `settings` are those of it. */
  readonly config: Config;
  readonly settings: readonly Setting[];
  readonly storeUrl: string;
  /** Where the token for a server is. */
  readonly tokenPlaces: TokenPlaces;
  /** Of the configuration file, which need not be there. */
  readonly configPath: string;
  readonly scope: SessionScope;
  /** Every command of the program, in the order the help shows them. */
  readonly commands: readonly CommandDefinition[];
  /** Aborted by an interrupt and by the command's time limit. */
  readonly signal: AbortSignal;
  /** The store of this run, opened once; closed at the end. Only writers create one that is not there. What it notices goes to stderr unless asked for. */
  openStore(purpose: "read" | "write", onFinding?: (finding: Finding) => void): Promise<SessionStore>;
  /** `--yes`: what is planned is to be done. */
  readonly isYes: boolean;
  /** Asks before something that cannot be taken back. @throws {ThroughlineError} USAGE where nobody can be asked, ABORTED */
  confirm(question: string): Promise<void>;
}
