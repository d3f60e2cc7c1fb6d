import type { SessionRef } from "@throughline/core";
import type { AppendRequest } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { AppendQueue, type WrittenAppend } from "./append-queue.ts";
import { locateSession } from "./session-access.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/** The queues of the sessions that are being appended to, and the way there. */
export class AppendQueues {
  readonly #context: StoreContext;
  readonly #queues: Map<string, AppendQueue> = new Map();
  /** Appends that look for their session, the last of each address. */
  readonly #arriving: Map<string, Promise<SessionRow>> = new Map();

  constructor(context: StoreContext) {
    this.#context = context;
  }

  /**
   * In the order they are asked for: one that comes while another's session is looked for goes behind it. `onFound`: before
   * it waits in the queue of the session.
   * @throws {ThroughlineError} what the contract says of `append`
   */
  append(
    agent: AgentSessionFiles,
    ref: SessionRef,
    request: AppendRequest,
    onFound: (row: SessionRow) => void,
  ): Promise<WrittenAppend> {
    const name = `${ref.namespace}/${ref.agentId}/${ref.key}`;
    const ahead = this.#arriving.get(name);
    const looking = agent.foreign.takeViewIfDue();
    const put = (row: SessionRow): Promise<WrittenAppend> => {
      onFound(row);
      return this.#queueOf(name, agent, ref).append(request, row);
    };
    const known = ahead === undefined && looking === null ? agent.peek(ref) : null;
    if (known !== null) return put(known);
    const arriving = arrive(this.#context, agent, ref, ahead, looking);
    this.#arriving.set(name, arriving);
    return this.#enter(name, arriving, put);
  }

  /** It leaves the way once it waits in the queue, so that nobody comes in between. */
  async #enter<T>(name: string, arriving: Promise<SessionRow>, put: (row: SessionRow) => Promise<T>): Promise<T> {
    try {
      return put(await arriving);
    } finally {
      if (this.#arriving.get(name) === arriving) this.#arriving.delete(name);
    }
  }

  #queueOf(name: string, agent: AgentSessionFiles, ref: SessionRef): AppendQueue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const queue = new AppendQueue(this.#context, agent, ref, () => void this.#queues.delete(name));
    this.#queues.set(name, queue);
    return queue;
  }
}

async function arrive(
  { room }: StoreContext,
  agent: AgentSessionFiles,
  ref: SessionRef,
  ahead: Promise<unknown> | undefined,
  looking: Promise<void> | null,
): Promise<SessionRow> {
  // What becomes of it is its own caller's.
  await Promise.all([ahead?.catch(() => undefined), looking]);
  return agent.peek(ref) ?? room.patiently(() => locateSession(agent, ref, false));
}
