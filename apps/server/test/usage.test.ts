import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;
beforeEach(async () => {
  serving = await serve();
});
afterEach(() => serving.close());

/** A session with one call of a model. */
async function call(key: string, model: string, token?: string): Promise<void> {
  const usage = { input: 1000, output: 200, cacheRead: 0, cacheWrite: 0 };
  const message = { role: "assistant", content: [], provider: "anthropic", model, usage };
  const asked = { type: "message", message: { role: "user", content: key } };
  await serving.begin(key, [asked, { type: "message", message }], token);
}

describe("GET /usage", () => {
  it("adds up the calls by group, and counts new ones with the next request", async () => {
    await call("agent:main:one", "claude-opus-4-5");
    await call("agent:work:two", "no-such-model");
    const { status, body } = await serving.ask("GET", "/usage?by=model,agent");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      kind: "usageReport",
      rows: [
        { kind: "usage", group: { model: "claude-opus-4-5", agent: "main" }, calls: 1, input: 1000 },
        { group: { model: "no-such-model", agent: "work" }, costUsd: null, unpricedCalls: 1 },
      ],
      total: { kind: "usageTotal", calls: 2, output: 400 },
      unpricedModels: ["no-such-model"],
      unread: [],
      isComplete: true,
      sessionsLeft: 0,
    });
    await call("agent:main:three", "claude-opus-4-5");
    expect((await serving.ask("GET", "/usage?agent=main&model=claude")).body).toMatchObject({ total: { calls: 2 } });
    expect((await serving.ask("GET", "/usage?program=codex")).body).toMatchObject({ total: { calls: 0 } });
    expect((await serving.ask("GET", "/usage?program=codex,own&untilMs=1000")).body).toMatchObject({ rows: [] });
  });

  it("has only what the token reaches", async () => {
    await call("agent:main:one", "claude-opus-4-5");
    await call("agent:work:two", "claude-opus-4-5");
    const tenant = await serving.tokenOf({ namespace: "tenant" });
    await call("agent:main:three", "claude-opus-4-5", tenant);
    const work = await serving.tokenOf({ namespace: "", agents: ["work"], scopes: ["read"] });
    const seen = await serving.ask("GET", "/usage?by=session", { token: work });
    expect(seen.body).toMatchObject({ rows: [{ group: { session: "agent:work:two" } }], total: { calls: 1 } });
    expect(seen.text).not.toContain("agent:main");
    expect((await serving.ask("GET", "/usage?agent=main", { token: work })).status).toBe(404);
    const own = await serving.ask("GET", "/usage?by=session", { token: tenant });
    expect(own.body).toMatchObject({ rows: [{ group: { session: "agent:main:three" } }], total: { calls: 1 } });
    const writer = await serving.tokenOf({ scopes: ["write"] });
    expect((await serving.ask("GET", "/usage", { token: writer })).status).toBe(403);
  });

  it("refuses groups, times and zones that do not exist", async () => {
    for (const query of ["by=hour", "by=day,day,", "sinceMs=-1", "sinceMs=soon", "timeZone=Nowhere/City&by=day", "x=1"])
      expect([query, (await serving.ask("GET", `/usage?${query}`)).status]).toEqual([query, 400]);
  });
});
