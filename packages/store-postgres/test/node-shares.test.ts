import { systemClock as clock, systemRandom as random } from "@throughline/core/internal";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { checkedOptions, maxConnectionsOf } from "../src/checked-options.ts";
import { ConnectionPool, type PostgresPool } from "../src/connection-pool.ts";
import { type GiveShareBack, NodeShares } from "../src/node-shares.ts";
import { hashOf } from "../src/shard-nodes.ts";

const shares = (maxConnections: number, maxWaiting = 10): NodeShares =>
  new NodeShares(maxConnections, maxWaiting, () => "node");

function take(
  given: NodeShares,
  node: string,
  { withinMs = 60_000, signal }: TakeOptions = {},
): Promise<GiveShareBack> {
  const ending = new AbortController().signal;
  return given.take(node, { withinMs, signal, ending, timeoutMs: withinMs, place: "the server" });
}

interface TakeOptions {
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
}

/** Tells whether a promise is settled once everything that is due has run. */
async function isPending(coming: Promise<unknown>): Promise<boolean> {
  const later = new Promise((resolve) => setImmediate(resolve, "later"));
  return (await Promise.race([coming, later])) === "later";
}

async function codeOf(failing: Promise<unknown>): Promise<unknown> {
  return failing.then(
    () => null,
    (error: unknown) => (error as { readonly code?: unknown }).code,
  );
}

describe("the shares of nodes", () => {
  it("give one node a third of the connections, and the others theirs", async () => {
    const given = shares(10);
    const [first] = await Promise.all([take(given, "frozen"), take(given, "frozen"), take(given, "frozen")]);
    const fourth = take(given, "frozen");
    expect(await isPending(fourth)).toBe(true);
    expect(await isPending(take(given, "served"))).toBe(false);
    first(true);
    first(true);
    expect(await isPending(fourth)).toBe(false);
    expect(await isPending(take(given, "frozen"))).toBe(true);
  });

  it.each([1, 2])("are one for each node of a pool of %i", async (maxConnections) => {
    const given = shares(maxConnections);
    await take(given, "node");
    expect(await isPending(take(given, "node"))).toBe(true);
    expect(await isPending(take(given, "all"))).toBe(false);
  });

  it("refuse the operations of a silent node as STORE_UNREACHABLE, and of a busy one as STORE_OVERLOADED", async () => {
    const given = shares(3, 1);
    const [silent, busy] = await Promise.all([take(given, "silent"), take(given, "busy")]);
    const waiting = take(given, "busy");
    expect(await codeOf(take(given, "busy"))).toBe("STORE_OVERLOADED");
    silent(false);
    busy(true);
    await waiting;
    // An operation that sent nothing says nothing about the node.
    (await take(given, "silent"))();
    await take(given, "silent");
    const codes = ["silent", "busy"].map((node) => codeOf(take(given, node, { withinMs: 1 })));
    expect(await Promise.all(codes)).toEqual(["STORE_UNREACHABLE", "STORE_OVERLOADED"]);
  });

  it("count no operation that gave up among those that wait, and give it nothing", async () => {
    const given = shares(3, 1);
    const giveBack = await take(given, "node");
    expect(await codeOf(take(given, "node", { withinMs: 1 }))).toBe("STORE_OVERLOADED");
    const controller = new AbortController();
    const aborted = codeOf(take(given, "node", { signal: controller.signal }));
    controller.abort();
    expect(await aborted).toBe("ABORTED");
    const waiting = take(given, "node");
    giveBack();
    expect(await isPending(waiting)).toBe(false);
  });

  it("are counted by the server's own hash of the tenant", () => {
    const numbers = ["0", "-1", "9223372036854775807", "-9223372036854775808", "123456789012345"];
    // SELECT hashint8(…) of each
    expect(numbers.map((number) => hashOf(BigInt(number)))).toEqual([
      -272_711_505, 385_747_274, -1_524_351_049, -96_758_253, 297_539_683,
    ]);
  });

  it("are those of pg's default for a lent pool that does not state its limit", () => {
    const pool = { waitingCount: 0, connect: () => Promise.reject(new Error("not here")) };
    expect(maxConnectionsOf(checkedOptions({ pool }))).toBe(new pg.Pool().options.max);
    expect(maxConnectionsOf(checkedOptions({ pool: { ...pool, options: { max: 4 } } }))).toBe(4);
  });
});

/** A driver whose server answers nothing. */
const silentDriver: PostgresPool = {
  waitingCount: 0,
  idleCount: 1,
  connect: () => Promise.resolve({ query: () => new Promise(() => undefined), release: () => undefined }),
};

describe("a read that was aborted", () => {
  it("leaves its node as it was known, while one without an answer by its deadline shows it silent", async () => {
    const given = shares(3);
    const pools = [60_000, 20].map((timeoutMs) => {
      const waits = { maxWaiting: 10, timeoutMs, connectTimeoutMs: timeoutMs };
      return new ConnectionPool(silentDriver, {
        ...waits,
        prepare: false,
        clock,
        random,
        place: "here",
        shares: given,
      });
    });
    const [patient, hasty] = pools as [ConnectionPool, ConnectionPool];
    const holdShare = (): (() => Promise<unknown>) => {
      const controller = new AbortController();
      const reading = codeOf(patient.run("SELECT 1", [], { isRead: true, signal: controller.signal }));
      return () => (controller.abort(), reading);
    };
    const hastyCode = (): Promise<unknown> => codeOf(hasty.run("SELECT 1", []));
    const waitedBehind = async (): Promise<unknown> => {
      const abort = holdShare();
      const code = await hastyCode();
      expect(await abort()).toBe("ABORTED");
      return code;
    };
    expect([await waitedBehind(), await waitedBehind()]).toEqual(["STORE_OVERLOADED", "STORE_OVERLOADED"]);
    expect(await hastyCode()).toBe("STORE_UNREACHABLE");
    expect([await waitedBehind(), await waitedBehind()]).toEqual(["STORE_UNREACHABLE", "STORE_UNREACHABLE"]);
  });
});
