import process from "node:process";
import { createServer, type Server as NetServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { serve, type Serving } from "./serving.ts";

const mebibyte = 1024 * 1024;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A gateway whose upstream answers every request with these pieces. */
async function behind(pieces: () => Iterable<Buffer | string>): Promise<Serving> {
  const upstream: NetServer = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      const rest = pieces()[Symbol.iterator]();
      const write = (): void => {
        for (let next = rest.next(); ; next = rest.next()) {
          if (next.done === true) return void socket.end();
          if (!socket.write(next.value)) return void socket.once("drain", write);
        }
      };
      write();
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const address = upstream.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const own = { baseUrl: `http://127.0.0.1:${port}`, api: "openai", credentials: "server", apiKey: "k" } as const;
  const serving = await serve({ gateway: { upstreams: { own } } });
  closing.push(
    () => serving.close(),
    () => new Promise((resolve) => upstream.close(resolve)),
  );
  return serving;
}

async function ask(serving: Serving): Promise<Response> {
  const token = await serving.tokenOf({ namespace: "", scopes: ["gateway:own"] });
  return fetch(`${serving.url}/own/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }),
  });
}

describe("an upstream", () => {
  it(
    "row 42: may send one line of 1 GiB, which is passed on and not kept",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const count = testSize({ short: 40, long: 1024 });
      const piece = Buffer.alloc(mebibyte, "x");
      const serving = await behind(function* () {
        yield "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
        for (let index = 0; index < count; index++) yield piece;
      });
      const startBytes = process.memoryUsage().rss;
      let [bytes, most] = [0, 0];
      const { body, status } = await ask(serving);
      for await (const chunk of body ?? []) {
        bytes += chunk.length;
        most = Math.max(most, process.memoryUsage().rss - startBytes);
      }
      expect([status, bytes]).toEqual([200, "data: ".length + count * mebibyte]);
      // The copy that is given up at 32 MiB, and what the sender, the gateway and the reader hold in this one process.
      expect(most / mebibyte).toBeLessThan(testSize({ short: Infinity, long: 32 + 160 }));
    },
  );

  it("row 42: may send a header of 1 MiB, which is 502", async () => {
    const serving = await behind(() => [
      `HTTP/1.1 200 OK\r\nx-large: ${"x".repeat(mebibyte)}\r\ncontent-length: 2\r\n\r\n{}`,
    ]);
    const answer = await ask(serving);
    await answer.text();
    expect(answer.status).toBe(502);
  });
});
