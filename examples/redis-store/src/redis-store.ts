import { createClient } from "@redis/client";
import { type SessionRef, type SessionStore, ThroughlineError } from "@throughline/core";
import {
  createStore,
  type KeptRecord,
  type KeptSession,
  type ListScan,
  type SessionRow,
  type StoreBackend,
  type StoreChange,
} from "@throughline/store-kit";

/** Configures `openRedisStore`. The other options are those of `createStore`. */
export interface RedisStoreOptions extends Partial<
  Pick<Parameters<typeof createStore>[1], "clock" | "codec" | "limits" | "onEvent">
> {
  /** States the address of the server, such as `redis://localhost:6379`. */
  readonly url: string;
  /** Begins every key of the store. @default "throughline" */
  readonly prefix?: string;
}

/**
 * Checks what a commit expects, and writes, as one command: Redis runs a script while no other command runs. A check is
 * a key, a field, and the value that must be there ("" for none). A write is a command with its arguments.
 */
const commitScript = `
local change = cjson.decode(ARGV[1])
for _, check in ipairs(change.checks) do
  if (redis.call("HGET", check[1], check[2]) or "") ~= check[3] then return 0 end
end
for _, write in ipairs(change.writes) do redis.call(unpack(write)) end
return 1`;

/** Redis passes this many arguments of one command on, at most about 8,000. */
const mostArguments = 4000;

/** A list loads this many sessions at once. */
const portion = 200;

type Command = readonly string[];

type Client = ReturnType<typeof createRedisClient>;

/** While the connection is broken, commands fail at once. The client connects again by itself. */
function createRedisClient(url: string) {
  return createClient({ url, disableOfflineQueue: true });
}

/** Opens a store on a Redis server that any number of processes use at the same time. */
export async function openRedisStore({ url, prefix, ...options }: RedisStoreOptions): Promise<SessionStore> {
  const client = createRedisClient(url);
  // Without a listener, a broken connection would end the process; each command reports it anyway.
  client.on("error", () => undefined);
  await reached(client.connect());
  return createStore(new RedisBackend(client, prefix ?? "throughline"), {
    ...options,
    name: "redis",
    durabilities: ["process"],
    persistent: true,
    writers: "many-hosts",
  });
}

/**
 * A session is a hash at the key of its address, with its version, row and entry. Its records are a list, the seqs of
 * record ids a hash, and its fields a hash, at keys of the row's id, which a rename does not change. Each namespace has
 * a hash of fields and two sorted sets of addresses by time: the current and the archived sessions.
 */
class RedisBackend implements StoreBackend {
  readonly #client: Client;
  readonly #prefix: string;

  constructor(client: Client, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
  }

  /** The braces keep all keys of a namespace on one node of a cluster. */
  #key(namespace: string, ...parts: readonly string[]): string {
    return [`${this.#prefix}:{${encodeURIComponent(namespace)}}`, ...parts].join(":");
  }

  #sessionKey(ref: SessionRef): string {
    return this.#key(ref.namespace, "session", addressText(ref));
  }

  #indexKey({ namespace, archiveId }: SessionRef): string {
    return this.#key(namespace, archiveId === undefined ? "active" : "archived");
  }

  /** Names what a session holds: its "records", "ids" or "fields". */
  #partKey({ ref, id }: SessionRow, part: "records" | "ids" | "fields"): string {
    return this.#key(ref.namespace, part, id);
  }

  find(ref: SessionRef): Promise<KeptSession | null> {
    return this.#load(this.#sessionKey(ref));
  }

  async #load(key: string): Promise<KeptSession | null> {
    const [row = null, entry = null] = await reached(this.#client.hmGet(key, ["row", "entry"]));
    return row === null || entry === null ? null : { row: JSON.parse(row) as SessionRow, entry };
  }

  async records(row: SessionRow, fromSeq: number, toSeq: number): Promise<readonly KeptRecord[]> {
    const texts = await reached(this.#client.lRange(this.#partKey(row, "records"), fromSeq - 1, toSeq - 1));
    return texts.map((text) => JSON.parse(text) as KeptRecord);
  }

  async seqsOf(row: SessionRow, ids: readonly string[]): Promise<readonly (number | null)[]> {
    const seqs = await this.#values(this.#partKey(row, "ids"), ids);
    return seqs.map((seq) => (seq === null ? null : Number(seq)));
  }

  sessionFields(row: SessionRow, names: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#values(this.#partKey(row, "fields"), names);
  }

  namespaceFields(namespace: string, names: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#values(this.#key(namespace, "fields"), names);
  }

  async #values(key: string, names: readonly string[]): Promise<readonly (string | null)[]> {
    return names.length === 0 ? [] : reached(this.#client.hmGet(key, [...names]));
  }

  /** Loads sessions in the order of the list, until it has enough. */
  async list(scan: ListScan): Promise<readonly KeptSession[]> {
    const members = await this.#members(scan);
    const found: KeptSession[] = [];
    for (let start = 0; start < members.length; start += portion) {
      const part = members.slice(start, start + portion);
      const loaded = await Promise.all(
        part.map(({ address }) => this.#load(this.#key(scan.namespace, "session", address))),
      );
      found.push(...loaded.filter((session) => session !== null));
      const last = found.filter(({ row }) => scan.includes(row))[scan.limit - 1];
      const end = part.at(-1);
      // Sessions of one time are in no order here, so all of them are loaded.
      if (last !== undefined && scan.sort === "updated" && end !== undefined && end.atMs < last.row.updatedAtMs) break;
    }
    return found;
  }

  async #members({ namespace, state, sort, after, ...scan }: ListScan): Promise<readonly Member[]> {
    const newestMs = sort === "updated" && after !== null ? Math.min(-Number(after[0]), scan.untilMs) : scan.untilMs;
    const states = (["active", "archived"] as const).filter((one) => state === "any" || state === one);
    const answers = await Promise.all(
      states.map((one) =>
        reached(
          this.#client.zRangeWithScores(this.#key(namespace, one), bound(newestMs), bound(scan.sinceMs), {
            BY: "SCORE",
            REV: true,
          }),
        ),
      ),
    );
    return answers
      .flat()
      .map(({ value, score }) => ({ address: value, atMs: score }))
      .filter(({ address }) => {
        const [agentId, key] = JSON.parse(address) as readonly [string, string];
        return (scan.agentId ?? agentId) === agentId && key.startsWith(scan.keyPrefix);
      })
      .toSorted((one, other) => other.atMs - one.atMs);
  }

  async commit(change: StoreChange): Promise<boolean> {
    const fields = this.#key(change.namespace, "fields");
    const checks = [
      ...change.expect.map(({ ref, version }) => [this.#sessionKey(ref), "version", version ?? ""]),
      ...change.expectFields.map(([name, value]) => [fields, name, value ?? ""]),
    ];
    const writes = [
      ...fieldCommands(fields, change.fields),
      ...change.sessions.flatMap((session) => this.#commandsOf(session)),
    ];
    const text = JSON.stringify({ checks, writes });
    return (await reached(this.#client.eval(commitScript, { keys: [fields], arguments: [text] }))) === 1;
  }

  #commandsOf({ before, after, entry, append, replace, fields }: StoreChange["sessions"][number]): readonly Command[] {
    if (after === null) {
      if (before === null) return [];
      const parts = (["records", "ids", "fields"] as const).map((part) => this.#partKey(before, part));
      const leave = ["ZREM", this.#indexKey(before.ref), addressText(before.ref)];
      return [leave, ["DEL", this.#sessionKey(before.ref), ...parts]];
    }
    const key = this.#sessionKey(after.ref);
    const commands: Command[] = [];
    if (before !== null && this.#sessionKey(before.ref) !== key) {
      commands.push(["ZREM", this.#indexKey(before.ref), addressText(before.ref)]);
      // The entry moves with the hash.
      commands.push(["RENAME", this.#sessionKey(before.ref), key]);
    }
    commands.push(["HSET", key, "version", after.version, "row", JSON.stringify(after)]);
    if (entry !== undefined) commands.push(["HSET", key, "entry", entry]);
    commands.push(["ZADD", this.#indexKey(after.ref), String(after.updatedAtMs), addressText(after.ref)]);
    const records = this.#partKey(after, "records");
    commands.push(
      ...inPortions(
        ["RPUSH", records],
        append.map((record) => [JSON.stringify(record)]),
      ),
    );
    commands.push(
      ...inPortions(
        ["HSET", this.#partKey(after, "ids")],
        append.map(({ id, seq }) => [id, String(seq)]),
      ),
    );
    commands.push(...replace.map((record) => ["LSET", records, String(record.seq - 1), JSON.stringify(record)]));
    return [...commands, ...fieldCommands(this.#partKey(after, "fields"), fields)];
  }

  async close(): Promise<void> {
    if (this.#client.isOpen) await this.#client.close();
  }
}

/** Stands for a session in a sorted set. */
interface Member {
  readonly address: string;
  readonly atMs: number;
}

function addressText({ agentId, key, archiveId }: SessionRef): string {
  return JSON.stringify([agentId, key, archiveId ?? null]);
}

/** Writes a time as Redis does, which spells Infinity another way. */
function bound(ms: number): string {
  return Number.isFinite(ms) ? String(ms) : ms > 0 ? "+inf" : "-inf";
}

function fieldCommands(key: string, writes: StoreChange["fields"]): readonly Command[] {
  return writes.map(([name, value]) => (value === null ? ["HDEL", key, name] : ["HSET", key, name, value]));
}

/** Returns the commands that pass all arguments, each with as many as Redis takes. */
function inPortions(command: Command, groups: readonly Command[]): readonly Command[] {
  const commands: Command[] = [];
  for (let start = 0; start < groups.length; start += mostArguments / 2)
    commands.push([...command, ...groups.slice(start, start + mostArguments / 2).flat()]);
  return commands;
}

/** Waits for an answer; without one the connection broke off, and nobody knows whether the server ran the command. */
async function reached<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ThroughlineError("STORE_UNREACHABLE", `The Redis server did not answer: ${why}`, { cause });
  }
}
