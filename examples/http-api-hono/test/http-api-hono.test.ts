import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveExample, type ServedExample } from "@throughline/test-kit/serve-example";

let served: ServedExample;
beforeAll(async () => {
  served = await serveExample(join(import.meta.dirname, "../src/main.ts"), { LOGINS: "ada:a-secret,ben:b-secret" });
});
afterAll(() => served.end());

async function cookieOf(name: string, password: string): Promise<string> {
  const body = new URLSearchParams({ name, password });
  const response = await fetch(`${served.url}/login`, { method: "POST", body });
  return response.headers.get("set-cookie")?.split(";")[0] ?? `none: ${response.status}`;
}

describe("the session API in Hono", () => {
  it("gives each user their own sessions, and nobody else any", { tags: ["slow"] }, async () => {
    const [ada, ben] = [await cookieOf("ada", "a-secret"), await cookieOf("ben", "b-secret")];
    expect(await cookieOf("ada", "b-secret")).toBe("none: 401");
    await served.keepNote({ cookie: ada });
    expect(await served.notesOf({ cookie: ada })).toEqual([200, 1]);
    expect(await served.notesOf({ cookie: ben })).toEqual([404, null]);
    expect(await served.notesOf({ cookie: ada.replace("=a", "=b") })).toEqual([401, null]);
    expect(await served.notesOf({})).toEqual([401, null]);
    const { text } = await served.follow({ cookie: ada });
    await served.stop();
    expect(await text).toContain("event: bye");
  });
});
