import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import process from "node:process";
import type { SessionRef } from "@throughline/core";
import type { PostgresStore } from "@throughline/store-postgres";
import { withClient } from "./store-under-test.ts";

/** Stops every process of a server on this machine, as a machine that hangs does. Returns what lets them go on. */
export async function freeze(url: string): Promise<() => void> {
  const main = await withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: string }>(
      "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid",
    );
    return Number(rows[0]?.pid);
  });
  if (!(main > 1)) throw new Error(`${url} names no main process.`);
  const pids = [main];
  const thaw = (): void => {
    for (const pid of pids) signal(pid, "SIGCONT");
  };
  // The main process is stopped first, so that it makes no further ones while they are listed.
  process.kill(main, "SIGSTOP");
  try {
    pids.push(...childrenOf(main));
    for (const pid of pids) signal(pid, "SIGSTOP");
  } catch (error) {
    thaw();
    throw error;
  }
  return thaw;
}

/** Lists the processes that another one started. An empty line is no process: 0 would be the group of this test. */
function childrenOf(pid: number): readonly number[] {
  const listed = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return listed
    .split(/\s+/)
    .filter((word) => word !== "")
    .map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // A process of one connection may end by itself.
    if ((error as { readonly code?: unknown }).code !== "ESRCH") throw error;
  }
}

export const said = { type: "message", message: { role: "user", content: "x" } };

interface Tenants {
  /** Lists sessions of the worker that is frozen, which everything is refused. */
  readonly frozen: readonly SessionRef[];
  /** Lists sessions of other workers, which must go on. */
  readonly served: readonly SessionRef[];
}

interface Stores {
  readonly own: PostgresStore;
  /** Follows what the other one appends, so that only its polls tell it. */
  readonly follower: PostgresStore;
  /** Sets how many appends and a tenth as many lists and searches of each served session end the work. */
  readonly least: number;
}

/** Works for the tenants of a frozen worker and of others at once, until each of them has met enough. */
export class FrozenWork {
  /** Counts the appends of each session. */
  readonly acknowledged: Map<SessionRef, number> = new Map();
  /** Holds what each kind of work was refused with, without the first refusals: then the store knew of no silent worker. */
  readonly refusals: Set<string> = new Set();
  readonly #followed = new Map<SessionRef, number>();
  readonly #stores: Stores;
  readonly #tenants: Tenants;
  readonly #ending = new AbortController();
  #open = 0;

  constructor(stores: Stores, tenants: Tenants) {
    this.#stores = stores;
    this.#tenants = tenants;
  }

  async untilDone(): Promise<void> {
    const { own } = this.#stores;
    const { frozen, served } = this.#tenants;
    const following = Promise.all(served.map((ref) => this.#follow(ref)));
    const working = Promise.all([
      ...served.map((ref) => this.#serve(ref)),
      ...frozen.flatMap((ref) => [
        this.#refuse("append", () => own.append(ref, [said])),
        this.#refuse("list", () => own.list({ agentId: ref.agentId })),
        this.#refuse("search", () => Array.fromAsync(own.search?.search({ agentId: ref.agentId, text: "x" }) ?? [])),
        this.#refuse("watch", () => this.#follow(ref)),
      ]),
      ...served.map(() => this.#refuse("list of all", () => own.list())),
    ]);
    try {
      await Promise.race([working, following]);
      assert.ok(this.#isDone(), "a watch ended by itself");
    } finally {
      this.#ending.abort();
    }
    await following;
  }

  #isDone(): boolean {
    if (this.#ending.signal.aborted) return true;
    const { least } = this.#stores;
    const isEnough = (counts: ReadonlyMap<SessionRef, number>): boolean =>
      this.#tenants.served.every((ref) => (counts.get(ref) ?? 0) >= least);
    return this.#open === 0 && isEnough(this.acknowledged) && isEnough(this.#followed);
  }

  async #serve(ref: SessionRef): Promise<void> {
    const { own } = this.#stores;
    const { agentId } = ref;
    for (let turn = 0; !this.#isDone(); turn++) {
      await own.append(ref, [{ ...said, id: String(turn) }]);
      this.acknowledged.set(ref, turn + 1);
      if (turn % 10 !== 0) continue;
      assert.equal((await own.list({ agentId })).sessions.length, 1);
      const hits = await Array.fromAsync(own.search?.search({ agentId, text: "x", limit: 5 }) ?? []);
      assert.equal(hits.length, Math.min(5, turn + 1));
    }
  }

  async #follow(ref: SessionRef): Promise<void> {
    const { signal } = this.#ending;
    for await (const { lastSeq } of this.#stores.follower.watch.watch(ref, { afterSeq: 0, signal }))
      this.#followed.set(ref, lastSeq);
  }

  async #refuse(kind: string, work: () => Promise<unknown>): Promise<void> {
    this.#open += 1;
    for (let refused = 0; !this.#isDone();)
      await work().catch((error: unknown) => {
        const { code, retryable } = error as { readonly code: string; readonly retryable: boolean };
        refused += 1;
        if (refused === 2) this.#open -= 1;
        if (refused >= 2 && !this.#ending.signal.aborted)
          this.refusals.add(`${kind}: ${code}, retryable: ${retryable}`);
      });
  }
}
