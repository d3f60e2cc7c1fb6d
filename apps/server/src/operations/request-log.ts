import type { DestinationStream } from "pino";
import { pino } from "pino";

/** One line of JSON a request, and one for what the server notices. Bodies, addresses and tokens are in none. */
export interface ServerLog {
  request(line: {
    readonly id: string;
    /** The route as the document writes it; no path, which may hold a key. */
    readonly route: string;
    readonly method: string;
    readonly status: number;
    readonly ms: number;
    /** The id of the token, which is no secret. */
    readonly token: string | null;
    readonly code: string | null;
  }): void;
  info(message: string, details?: Readonly<Record<string, unknown>>): void;
  warn(message: string, details?: Readonly<Record<string, unknown>>): void;
  /** An unexpected failure. Its name and place are logged, not its message, which may quote the request. */
  failed(message: string, error: unknown): void;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** @param destination where the lines go; null: nowhere */
export function createServerLog(destination: DestinationStream | null, level: LogLevel): ServerLog {
  const log = destination === null ? pino({ enabled: false }) : pino({ level, base: { kind: "log" } }, destination);
  return {
    request: (line) => log.info(line, "request"),
    info: (message, details = {}) => log.info(details, message),
    warn: (message, details = {}) => log.warn(details, message),
    failed: (message, error) => {
      const { name, code, stack } = (error ?? {}) as Partial<Error> & { readonly code?: unknown };
      // Lines behind the message: files and functions only.
      const at = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
      log.error({ name, code, at: at.slice(0, 10) }, message);
    },
  };
}
