import { describe, expect, it } from "vitest";
import { answerOf, connectTo, headOf } from "./raw-socket.ts";
import { serve, type Serving } from "./serving.ts";
import { itOfOurs } from "./start-server.ts";

/** Less than the 30 s that requests get, and more than connections without one get. */
const soonMs = 10_000;

const closed = async (serving: Serving): Promise<number> => {
  const beganMs = performance.now();
  await serving.close();
  return performance.now() - beganMs;
};

describe("stopping", () => {
  itOfOurs(
    "does not wait for connections that never sent a request, nor for half a one",
    { tags: ["slow"] },
    async () => {
      const serving = await serve();
      const sockets = Array.from({ length: 20 }, () => connectTo(serving.url));
      await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.once("connect", resolve))));
      sockets[0]?.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n");
      // One answer comes behind all connections.
      expect((await serving.ask("GET", "/store")).status).toBe(200);
      expect(await closed(serving)).toBeLessThan(soonMs);
    },
  );

  it("ends soon after fetch gave up its event streams", async () => {
    const serving = await serve();
    await serving.begin("left");
    const giving = new AbortController();
    const headers = { authorization: `Bearer ${serving.token}` };
    const open = async (): Promise<void> => {
      const { body } = await fetch(`${serving.url}/api/v1/sessions/left/events`, { headers, signal: giving.signal });
      await body?.getReader().read();
    };
    await Promise.all(Array.from({ length: 50 }, open));
    giving.abort();
    expect(await closed(serving)).toBeLessThan(soonMs);
  });

  itOfOurs("answers a request that runs, and one whose connection was opened before", async () => {
    const serving = await serve();
    await serving.begin("notes");
    const socket = connectTo(serving.url);
    let text = "";
    socket.on("data", (chunk) => (text += String(chunk)));
    await new Promise<void>((resolve) => socket.once("connect", resolve));
    const stream = await fetch(`${serving.url}/api/v1/sessions/notes/events`, {
      headers: { authorization: `Bearer ${serving.token}` },
    });
    const reader = stream.body?.getReader();
    await reader?.read();
    const closing = closed(serving);
    socket.write(headOf("GET", "/healthz", []));
    const rest: string[] = [];
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
      rest.push(Buffer.from(next.value).toString());
    expect(rest.join("")).toContain("event: bye");
    expect(await closing).toBeLessThan(soonMs);
    expect(answerOf({ text })[0]).toBe(200);
  });
});
