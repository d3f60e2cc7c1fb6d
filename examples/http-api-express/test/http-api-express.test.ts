import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveExample, type ServedExample } from "@throughline/test-kit/serve-example";

let served: ServedExample;
beforeAll(async () => {
  served = await serveExample(join(import.meta.dirname, "../src/main.ts"), { API_KEYS: "key-a:acme,key-g:globex" });
});
afterAll(() => served.end());

describe("the session API in Express", () => {
  it("gives each customer their own sessions, and nobody else any", { tags: ["slow"] }, async () => {
    await served.keepNote({ "x-api-key": "key-a" });
    expect(await served.notesOf({ "x-api-key": "key-a" })).toEqual([200, 1]);
    expect(await served.notesOf({ "x-api-key": "key-g" })).toEqual([404, null]);
    expect(await served.notesOf({ "x-api-key": "acme" })).toEqual([401, null]);
    expect(await served.notesOf({})).toEqual([401, null]);
    expect(await (await fetch(served.url)).text()).toBe("Sessions are below /api/v1.");
    const { text } = await served.follow({ "x-api-key": "key-a" });
    await served.stop();
    expect(await text).toContain("event: bye");
  });
});
