import { type ErrorCode, ThroughlineError } from "@throughline/core";
import { causeText, errorCodes } from "@throughline/core/internal";
import { maskDeep, maskSecrets } from "@throughline/config/internal";
import { jsonLine, terminalSafe } from "./terminal-safe.ts";

export interface ErrorReport {
  readonly exitCode: number;
  readonly text: string;
}

export interface ReportOptions {
  readonly isJson: boolean;
  readonly isDebug: boolean;
  /** Names the failed command, because a remedy that repeats it does not help. Null before parsing. */
  readonly command: string | null;
  /** Maps error codes to exit codes other than 1. @default none */
  readonly exitCodes?: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Rewrites commands in a text to the form that works here. @default the text itself */
  readonly asTyped?: (text: string) => string;
  /** Replaces the remedy of INSTALLATION_DAMAGED. @default the error's own */
  readonly reinstallRemedy?: string;
}

/** Usage errors exit with 2 and all others with 1, unless the command maps the code. */
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
  // A package's remedy addresses the program that installed it, but the command line knows its own installation.
  if (error.code === "INSTALLATION_DAMAGED" && reinstallRemedy !== undefined) return reinstallRemedy;
  return command === null ? error.remedy : remedyOf(error, command);
}

/** A usage error without its own remedy refers to the command's help. */
function remedyOf({ code, remedy }: ThroughlineError, command: string): string {
  if (code === "USAGE" && remedy === errorCodes.USAGE.remedy) return `See \`throughline ${command} --help\`.`;
  // Only `chat` has this option.
  if (code === "SESSION_BUSY" && command === "chat") return `${remedy.replace(/\.$/, "")}, or pass --when-busy queue.`;
  return withoutSelfAdvice(remedy, command);
}

function toThroughlineError(error: unknown): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const message = causeText(error);
  const refusal = error instanceof Error ? systemRefusal(error) : null;
  if (refusal !== null) return refusal;
  // Each command loads its modules when it runs, so a missing file of the installation surfaces here.
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

/** Converts a system error that no other code translated, because it is no defect of the program. */
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

/** Creates the error for a usage mistake that is found after the arguments were parsed. */
export function usageError(
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  remedy?: string,
): ThroughlineError {
  return new ThroughlineError("USAGE", message, { details, ...(remedy === undefined ? {} : { remedy }) });
}

export function withRemedy(
  { code, message, details, outcome, cause, retryable }: ThroughlineError,
  remedy: string,
): ThroughlineError {
  const kept = { details, cause, retryable, ...(outcome === null ? {} : { outcome }) };
  return new ThroughlineError(code, message, { ...kept, remedy });
}

/**
 * Removes the clauses of a remedy that name the running command: after a finding of `doctor`, "run doctor" does not
 * help. Other clauses stay. The same command with arguments or options counts as another command.
 */
export function withoutSelfAdvice(remedy: string, command: string): string {
  const clauses = remedy.split(/(?<=[.;])\s+/);
  const kept = clauses.filter((clause) => !clause.includes(`\`throughline ${command}\``));
  if (kept.length === clauses.length) return remedy;
  const text = kept.join(" ").replace(/;$/, ".");
  return text === "" ? "The message says what is known of it." : text.charAt(0).toUpperCase() + text.slice(1);
}
