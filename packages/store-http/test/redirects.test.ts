import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { openHttpStore } from "@throughline/store-http";

async function listening(answer: Parameters<typeof createServer>[1]): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(answer);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const end = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: end };
}

it.each([301, 302, 307, 308])(
  "follows no redirect with the status %i, and sends its token nowhere else",
  async (status) => {
    const asked = { here: 0, there: 0 };
    await using there = await listening((_request, response) => {
      asked.there += 1;
      response.end("{}");
    });
    await using here = await listening((request, response) => {
      asked.here += 1;
      response.writeHead(status, { location: there.url + request.url }).end();
    });
    await expect(openHttpStore({ url: here.url, token: "secret" })).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringContaining(`status ${status}`),
    });
    expect(asked).toEqual({ here: 1, there: 0 });
  },
);

it("asks fetch for nothing that a Worker does not know", async () => {
  // workerd refuses every other mode with a TypeError.
  const known: readonly unknown[] = ["follow", "manual"];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    expect(known).toContain(init?.redirect);
    return new Response("{}", { status: 404 });
  };
  await expect(openHttpStore({ url: "http://127.0.0.1:1", fetch })).rejects.toMatchObject({
    message: expect.stringContaining("status 404"),
  });
});
