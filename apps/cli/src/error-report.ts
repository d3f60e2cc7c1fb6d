import { type ErrorCode, ThroughlineError } from "@throughline/core";
import { errorCodes } from "@throughline/core/internal";
import { maskDeep, maskSecrets } from "@throughline/config/internal";
import { jsonLine, terminalSafe } from "./terminal-safe.ts";

/** How a failure is shown and what the process ends with. */
export interface ErrorReport {
  readonly exitCode: number;
  /** Ready to be written to stderr. */
  readonly text: string;
}

export interface ReportOptions {
  readonly isJson: boolean;
  readonly isDebug: boolean;
  /** What failed; its own name is no remedy. Null before that is known. */
  readonly command: string | null;
  /** Codes that end the command with something else than 1. @default none */
  readonly exitCodes?: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Puts commands in a text for people as they are typed here. @default the text itself */
  readonly asTyped?: (text: string) => string;
  /** Stands in place of every other remedy of INSTALLATION_DAMAGED. @default the error's own */
  readonly reinstallRemedy?: string;
}

/** Wrong usage ends with 2, everything else with 1, unless the command says otherwise. */
export function reportError(error: unknown, options: ReportOptions): ErrorReport {
  const typed = toThroughlineError(error);
  const exitCode = options.exitCodes?.[typed.code] ?? (typed.code === "USAGE" ? 2 : 1);
  const message = maskSecrets(typed.message);
  const details = maskDeep(typed.details);
  const remedy = remedyHere(typed, options);
  if (options.isJson) {
    const { code, retryable, outcome } = typed;
    return { exitCode, text: `${jsonLine({ kind: "error", code, message, remedy, retryable, outcome, details })}\n` };
  }
  const { asTyped = (text: string): string => text } = options;
  const lines = [asTyped(`error: ${message}`), asTyped(remedy)];
  if (options.isDebug) {
    lines.push(`${typed.code} ${jsonLine(details)}`);
    const { cause } = typed;
    if (cause !== undefined)
      lines.push(`cause: ${maskSecrets(cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))}`);
  }
  return { exitCode, text: `${terminalSafe(lines.join("\n"))}\n` };
}

function remedyHere(error: ThroughlineError, { command, reinstallRemedy }: ReportOptions): string {
  // A package names what a program does that has installed it; the command line knows how it was installed itself.
  if (error.code === "INSTALLATION_DAMAGED" && reinstallRemedy !== undefined) return reinstallRemedy;
  return command === null ? error.remedy : remedyOf(error, command);
}

/** The remedy where `command` failed: wrong usage without one of its own leads to the help of the command. */
function remedyOf({ code, remedy }: ThroughlineError, command: string): string {
  if (code === "USAGE" && remedy === errorCodes.USAGE.remedy) return `See \`throughline ${command} --help\`.`;
  // The only command with that option.
  if (code === "SESSION_BUSY" && command === "chat") return `${remedy.replace(/\.$/, "")}, or pass --when-busy queue.`;
  return withoutSelfAdvice(remedy, command);
}

function toThroughlineError(error: unknown): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const refusal = error instanceof Error ? systemRefusal(error) : null;
  if (refusal !== null) return refusal;
  // A file of the program, or a package of it: each command loads its own when it runs.
  if (/^(ERR_)?MODULE_NOT_FOUND$|^ERR_DLOPEN_FAILED$/.test(String((error as NodeJS.ErrnoException | null)?.code)))
    return new ThroughlineError(
      "INSTALLATION_DAMAGED",
      `A part of the program cannot be loaded: ${message.split("\n")[0]}`,
      {
        cause: error,
        outcome: "not-applied",
      },
    );
  return new ThroughlineError("INTERNAL", message, {
    cause: error,
    details: { name: error instanceof Error ? error.name : typeof error },
  });
}

/** What the operating system refused, by its code, and what helps. */
const systemRefusals: ReadonlyMap<unknown, readonly [ErrorCode, string | null]> = new Map([
  ["ENOENT", ["FILE_NOT_FOUND", null]],
  ["EACCES", ["FILE_UNREADABLE", "Check the permissions of the path and of the folders above it."]],
  ["EPERM", ["FILE_UNREADABLE", "Check the permissions of the path and of the folders above it."]],
  ["ENOTDIR", ["FILE_UNREADABLE", "Check the path: something on its way is not a folder."]],
  ["EISDIR", ["FILE_UNREADABLE", "Name a file: the path is a folder."]],
  ["ELOOP", ["PATH_UNSAFE", null]],
  ["ENAMETOOLONG", ["FILE_UNREADABLE", "Use a shorter name or a place with a shorter path."]],
  ["EMFILE", ["STORE_IO", "Raise the limit of open files (`ulimit -n`) and try again."]],
  ["ENFILE", ["STORE_IO", "Close other programs: the system has no more open files to give."]],
  ["EROFS", ["STORE_READ_ONLY", null]],
  ["ENOSPC", ["STORE_FULL", null]],
  ["EDQUOT", ["STORE_FULL", null]],
  ["EIO", ["STORE_IO", "Look at the disk: it reports an error."]],
]);

/** An error of the operating system that nobody has translated on the way: it is no defect of ours. */
function systemRefusal(error: NodeJS.ErrnoException): ThroughlineError | null {
  const known = systemRefusals.get(error.code);
  if (known === undefined || error.syscall === undefined) return null;
  const [code, remedy] = known;
  const { path, syscall } = error;
  return new ThroughlineError(code, error.message, {
    cause: error,
    details: { systemCode: error.code, syscall, ...(path === undefined ? {} : { path }) },
    ...(remedy === null ? {} : { remedy }),
  });
}

/** A mistake in how the command was called, found after its arguments were parsed. */
export function usageError(
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  remedy?: string,
): ThroughlineError {
  return new ThroughlineError("USAGE", message, { details, ...(remedy === undefined ? {} : { remedy }) });
}

/** The same error with the remedy that holds where it is printed. */
export function withRemedy(
  { code, message, details, outcome, cause, retryable }: ThroughlineError,
  remedy: string,
): ThroughlineError {
  const kept = { details, cause, retryable, ...(outcome === null ? {} : { outcome }) };
  return new ThroughlineError(code, message, { ...kept, remedy });
}

/**
 * A remedy without the clauses that name what is being run: after a finding of `doctor`, "run doctor" does not help.
 * The rest stays as it is. With arguments or options it is another command.
 */
export function withoutSelfAdvice(remedy: string, command: string): string {
  const clauses = remedy.split(/(?<=[.;])\s+/);
  const kept = clauses.filter((clause) => !clause.includes(`\`throughline ${command}\``));
  if (kept.length === clauses.length) return remedy;
  const text = kept.join(" ").replace(/;$/, ".");
  return text === "" ? "The message says what is known of it." : text.charAt(0).toUpperCase() + text.slice(1);
}
