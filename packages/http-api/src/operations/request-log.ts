import { pino } from "pino";

/** Receives a log. */
export interface LogDestination {
  /** Receives one line of JSON with its line feed. */
  write(line: string): void;
}

/** Lines never contain bodies, addresses or token secrets, so that a log reveals no content of sessions. */
export interface ServerLog {
  request(line: {
    readonly id: string;
    /** Holds the route pattern. The path itself is not logged, because it may hold a session key. */
    readonly route: string;
    readonly method: string;
    readonly status: number;
    readonly ms: number;
    /** The id of a token is not secret, so it may be logged. */
    readonly token: string | null;
    readonly code: string | null;
  }): void;
  info(message: string, details?: Readonly<Record<string, unknown>>): void;
  warn(message: string, details?: Readonly<Record<string, unknown>>): void;
  /** Logs an unexpected failure by name and stack only, because the message may quote the request. */
  failed(message: string, error: unknown): void;
}

/** Names the severity of a log entry. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * @param destination where the lines go, or null to disable logging
 * @param onFailure takes unexpected failures when there is no destination. Default: nothing takes them
 */
export function createServerLog(
  destination: LogDestination | null,
  level: LogLevel,
  onFailure: ServerLog["failed"] = () => {},
): ServerLog {
  if (destination === null) return { request: () => {}, info: () => {}, warn: () => {}, failed: onFailure };
  const log = pino({ level, base: { kind: "log" } }, destination);
  return {
    request: (line) => log.info(line, "request"),
    info: (message, details = {}) => log.info(details, message),
    warn: (message, details = {}) => log.warn(details, message),
    failed: (message, error) => {
      const { name, code, stack } = (error ?? {}) as Partial<Error> & { readonly code?: unknown };
      // Keep only the stack frames, because the lines before them repeat the message.
      const at = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
      log.error({ name, code, at: at.slice(0, 10) }, message);
    },
  };
}
