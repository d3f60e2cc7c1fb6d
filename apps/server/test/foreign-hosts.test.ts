import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { testSize } from "../../../tools/test-size.ts";
import { serve } from "./serving.ts";
import type { ForeignHost } from "./start-server.ts";

// The projects "apps/server in …" run the tests of the routes in these hosts; this is a small case of each.
describe.each(["hono", "express"] as const)("the API mounted in %s", (host: ForeignHost) => {
  it("answers routes as the document says, also refusals, and streams events", async () => {
    const serving = await serve({}, host);
    await serving.begin("notes");
    expect((await serving.ask("GET", "/store")).body).toMatchObject({ limits: { bodyBytes: 36 * 1024 * 1024 } });
    expect((await serving.ask("GET", "/sessions/notes/records")).body).toMatchObject({ count: 1 });
    expect((await serving.ask("GET", "/sessions/%E0%A4%A")).status).toBe(400);
    expect((await serving.ask("GET", "/sessions", { token: null })).status).toBe(401);
    const headers = { authorization: `Bearer ${serving.token}` };
    const response = await fetch(`${serving.url}/api/v1/sessions/notes/events?after=0`, { headers });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    while (!seen.includes("event: record")) seen += (await reader?.read())?.value ?? "";
    await serving.close();
    for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) seen += piece.value;
    expect(seen).toContain("event: bye");
  });

  it("refuses a body that is too large, and one that another handler has read", async () => {
    const serving = await serve({ openStore: () => createMemoryStore(), limits: { bodyBytes: 100_000 } }, host);
    await serving.begin("notes");
    const body = JSON.stringify({ drafts: [{ type: "note", text: "x".repeat(200_000) }] });
    expect((await serving.ask("POST", "/sessions/notes/records", { body })).status).toBe(413);
    const headers = { authorization: `Bearer ${serving.token}`, "content-type": "application/json" };
    const late = await fetch(`${serving.url}/late/api/v1/sessions/other`, { method: "PUT", headers, body: "{}" });
    expect([late.status, await late.json()]).toMatchObject([500, { code: "CONFIG_INVALID" }]);
    await serving.close();
  });

  const mebibytes = testSize({ short: 4, long: 30 });
  it(`takes a body of ${mebibytes} MiB and gives it back`, { tags: ["slow"] }, async () => {
    const serving = await serve({}, host);
    const text = "x".repeat(1024 * 1024);
    await serving.begin(
      "large",
      Array.from({ length: mebibytes }, () => ({ type: "note", text })),
    );
    const exported = await serving.ask("GET", "/sessions/large/export");
    expect([exported.status, exported.text.split(text).length - 1]).toEqual([200, mebibytes]);
    await serving.close();
  });
});
