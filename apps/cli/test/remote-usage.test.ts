import { join } from "node:path";
import { expect, it } from "vitest";
import { createServer } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

it("counts the usage on the server, and not by reading its sessions", async () => {
  const directory = temporaryDirectory();
  const usage = { input: 1000, output: 200, cacheRead: 0, cacheWrite: 0 };
  const reply = { role: "assistant", content: [], provider: "anthropic", model: "claude-opus-4-5", usage };
  const drafts = [
    { id: "c1", ...user("count me") },
    { id: "c2", type: "message", message: reply },
  ];
  await seed(directory.path, [{ key: "agent:main:counted", drafts }]);
  const path = join(directory.path, "sessions.db");
  const server = await createServer({ openStore: () => createSqliteStore({ path }), port: 0 });
  const rights = { namespace: "*", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
  const { text: token } = await server.tokens.create(rights, "tests");
  const asked: string[] = [];
  const { fetch: ask } = globalThis;
  globalThis.fetch = (url, init) => {
    asked.push(new URL(url as string).pathname);
    return ask(url, init);
  };
  const remotely = (...args: string[]): ReturnType<typeof runHere> =>
    runHere(directory.path, ["--store", server.url, "usage", ...args], { environment: { THROUGHLINE_TOKEN: token } });
  try {
    const args = ["--by", "day,model", "--json"];
    const here = await runHere(directory.path, ["--store", `sqlite:${path}`, "usage", ...args]);
    const there = await remotely(...args);
    expect([there.stderr, there.code]).toEqual(["", 0]);
    expect(objects(there.stdout)).toEqual(objects(here.stdout));
    expect(objects(there.stdout)[0]).toMatchObject({ kind: "usage", group: { model: "claude-opus-4-5" }, calls: 1 });
    expect(asked).toEqual(["/api/v1/usage"]);
    expect((await remotely("--by", "session", "--program", "own")).stdout).toContain("counted");
    expect(asked).toEqual(["/api/v1/usage", "/api/v1/usage"]);
    // Windows and folders are counted on this machine.
    expect(objects((await remotely("--blocks", "--json")).stdout)[0]).toMatchObject({ kind: "usageBlock", calls: 1 });
    expect(objects((await remotely("--folder", ".", "--json")).stdout).at(-1)).toMatchObject({ count: 1 });
  } finally {
    globalThis.fetch = ask;
    await server.close();
    directory.remove();
  }
});
