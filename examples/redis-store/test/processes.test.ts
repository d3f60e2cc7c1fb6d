import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openSession, sessionRef } from "@throughline/core";
import { expect, it } from "vitest";
import { openRedisStore } from "../src/redis-store.ts";
import { missingServer, startRedis } from "./redis-server.ts";

const writer = fileURLToPath(new URL("writer.ts", import.meta.url));

/** Runs a process that appends, and returns the lines of what was acknowledged; kills it after `killAfter` lines. */
async function written(url: string, name: string, { killAfter = Infinity } = {}): Promise<readonly string[]> {
  const child = spawn(process.execPath, ["--conditions=@throughline/source", writer, url, name, "150"]);
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    if (text.split("\n").length > killAfter) child.kill("SIGKILL");
  });
  child.stderr.pipe(process.stderr);
  const [code, signal] = await new Promise<readonly unknown[]>((resolve) =>
    child.once("close", (...end) => resolve(end)),
  );
  expect([code, signal]).toEqual(killAfter === Infinity ? [0, null] : [null, "SIGKILL"]);
  return text.slice(0, text.lastIndexOf("\n")).split("\n");
}

it(
  "keeps every acknowledged record of two processes in one order, also when one is killed",
  { tags: ["slow"] },
  async (context) => {
    if (missingServer !== null) return context.skip(missingServer);
    const server = await startRedis();
    try {
      await using store = await openRedisStore({ url: server.url });
      const ref = sessionRef({ key: "agent:main:shared" });
      await openSession(store, ref);
      const acknowledged = (
        await Promise.all([written(server.url, "one"), written(server.url, "two", { killAfter: 50 })])
      ).flat();
      const lines: string[] = [];
      for await (const { records } of store.read(ref))
        for (const { seq, record } of records)
          lines.push(`${seq} ${(record["message"] as { content: string }).content}`);
      expect(lines.map((line) => Number.parseInt(line, 10))).toEqual(lines.map((_, index) => index + 1));
      expect(acknowledged.filter((line) => !lines.includes(line))).toEqual([]);
      expect(new Set(lines.map((line) => line.split(" ")[1])).size).toBe(lines.length);
      // At most the append in flight of the killed process was applied without an acknowledgement that was read.
      expect(acknowledged.length).toBeGreaterThanOrEqual(200);
    } finally {
      await server.stop();
    }
  },
);
