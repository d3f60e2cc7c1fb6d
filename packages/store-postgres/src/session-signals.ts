import type { Clock, RandomSource } from "@throughline/core";
import type { ConnectionPool, PostgresConnection, PostgresPool } from "./connection-pool.ts";

/** Gathers appends for this time in milliseconds, so that one statement off the turns' path signals many of them. */
const gatherMs = 20;

/** A notification holds at most 8,000 bytes, which limits the session numbers in it. */
const mostNumbers = 350;

interface Watcher {
  wake(): void;
}

interface SignalOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Reports that the listener is ready. Signals that were sent before are lost. */
  missed(): void;
}

/**
 * Signals over LISTEN and NOTIFY that sessions have new records. A signal holds only session numbers. It is sent after
 * the commit and gathered, because NOTIFY inside the statement of a turn would make commits wait for each other. A
 * signal may be lost with its sender or connection. Watchers therefore poll as well, and continue from their seq.
 */
export class SessionSignals {
  readonly #pool: ConnectionPool;
  readonly #lent: PostgresPool;
  readonly #channel: string;
  readonly #options: SignalOptions;
  readonly #watchers = new Map<string, Set<Watcher>>();
  #waiting = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  readonly #sending = new Set<Promise<void>>();
  #listening: AbortController | null = null;

  constructor(pool: ConnectionPool, lent: PostgresPool, channel: string, options: SignalOptions) {
    this.#pool = pool;
    this.#lent = lent;
    this.#channel = channel;
    this.#options = options;
  }

  /** Wakes the watchers of this handle at once, and signals all others after the gathering time. */
  announce(sessionNo: string): void {
    this.#wake(sessionNo);
    this.#waiting.add(sessionNo);
    this.#timer ??= setTimeout(() => this.#send(), gatherMs);
  }

  /** Wakes the watcher for each signal until the returned function removes it. */
  add(sessionNo: string, watcher: Watcher): () => void {
    const watchers = this.#watchers.get(sessionNo) ?? new Set();
    this.#watchers.set(sessionNo, watchers.add(watcher));
    if (this.#listening === null) {
      this.#listening = new AbortController();
      void this.#listen(this.#listening.signal);
    }
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) this.#watchers.delete(sessionNo);
      if (this.#watchers.size > 0) return;
      this.#listening?.abort();
      this.#listening = null;
    };
  }

  /** Sends the gathered signals and stops listening. */
  async end(): Promise<void> {
    this.#listening?.abort();
    if (this.#timer !== null) this.#send();
    await Promise.all(this.#sending);
  }

  #wake(sessionNo: string): void {
    for (const watcher of this.#watchers.get(sessionNo) ?? []) watcher.wake();
  }

  #send(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const numbers = [...this.#waiting];
    this.#waiting = new Set();
    for (let from = 0; from < numbers.length; from += mostNumbers) {
      const payload = numbers.slice(from, from + mostNumbers).join(",");
      const sent: Promise<void> = this.#notify(payload).finally(() => this.#sending.delete(sent));
      this.#sending.add(sent);
    }
  }

  async #notify(payload: string): Promise<void> {
    try {
      await this.#pool.run("SELECT pg_notify($1, $2)", [this.#channel, payload], { isRead: true, node: null });
    } catch {
      // A lost signal delays a watcher until its next poll, and has no other effect.
    }
  }

  /**
   * Holds one connection and listens. When the connection breaks, it takes another one and reports that signals may be
   * missing.
   */
  async #listen(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#listenOnce(signal, () => {
          attempt = 0;
        });
      } catch {
        // The server is unreachable, and watchers poll meanwhile.
      }
      const most = Math.min(5000, 50 * 2 ** Math.min(attempt, 8));
      await this.#options.clock
        .sleep(most / 2 + (this.#options.random.uint32() % 1000) * (most / 2000), signal)
        .catch(() => undefined);
    }
  }

  async #listenOnce(signal: AbortSignal, onReady: () => void): Promise<void> {
    const connection = (await this.#lent.connect()) as ListeningConnection;
    let onNotification: ((message: { readonly payload?: string }) => void) | undefined;
    try {
      if (signal.aborted || connection.on === undefined) return;
      const ended = new Promise<void>((resolve) => {
        connection.on?.("error", () => resolve());
        connection.on?.("end", () => resolve());
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      onNotification = ({ payload = "" }): void => {
        for (const sessionNo of payload.split(",")) this.#wake(sessionNo);
      };
      connection.on("notification", onNotification);
      await connection.query({ text: `LISTEN "${this.#channel}"`, values: [] });
      onReady();
      this.#options.missed();
      await ended;
    } finally {
      // The connection still listens, so no other caller may get it.
      connection.release(true);
    }
  }
}

/** Describes a connection of the driver. A pool of another kind may have no connection that can listen. */
interface ListeningConnection extends PostgresConnection {
  on?(event: "notification", listener: (message: { readonly payload?: string }) => void): void;
  on?(event: "error" | "end", listener: () => void): void;
}
