import { describe, expect, it } from "vitest";
import { NodeShares } from "../src/node-shares.ts";
import { hashOf } from "../src/shard-nodes.ts";

const shares = (maxConnections: number, maxWaiting = 10): NodeShares =>
  new NodeShares(maxConnections, maxWaiting, () => "node");

/** Tells whether a promise is settled once everything that is due has run. */
async function isPending(coming: Promise<unknown>): Promise<boolean> {
  const later = new Promise((resolve) => setImmediate(resolve, "later"));
  return (await Promise.race([coming, later])) === "later";
}

describe("the shares of nodes", () => {
  it("give one node a third of the connections, and the others theirs", async () => {
    const given = shares(10);
    const [first] = await Promise.all([given.take("frozen"), given.take("frozen"), given.take("frozen")]);
    const fourth = given.take("frozen");
    expect(await isPending(fourth)).toBe(true);
    expect(await isPending(given.take("served"))).toBe(false);
    first(true);
    first(true);
    expect(await isPending(fourth)).toBe(false);
    expect(await isPending(given.take("frozen"))).toBe(true);
  });

  it("are one for each node of a pool of one connection", async () => {
    const given = shares(1);
    await given.take("node");
    expect(await isPending(given.take("node"))).toBe(true);
  });

  it("refuse the operations of a silent node as STORE_UNREACHABLE, and of a busy one as STORE_OVERLOADED", async () => {
    const given = shares(3, 0);
    const [silent, busy] = await Promise.all([given.take("silent"), given.take("busy")]);
    expect(() => given.take("busy")).toThrow(expect.objectContaining({ code: "STORE_OVERLOADED" }));
    silent(false);
    busy(true);
    const codes = ["silent", "busy"].map((node) => given.refusal(node, 1000, "the server").code);
    expect(codes).toEqual(["STORE_UNREACHABLE", "STORE_OVERLOADED"]);
    // An operation that sent nothing says nothing about the node.
    (await given.take("silent"))();
    expect(given.refusal("silent", 1000, "the server").code).toBe("STORE_UNREACHABLE");
  });

  it("are counted by the server's own hash of the tenant", () => {
    const numbers = ["0", "-1", "9223372036854775807", "-9223372036854775808", "123456789012345"];
    // SELECT hashint8(…) of each
    expect(numbers.map((number) => hashOf(BigInt(number)))).toEqual([
      -272_711_505, 385_747_274, -1_524_351_049, -96_758_253, 297_539_683,
    ]);
  });
});
