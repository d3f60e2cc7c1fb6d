import { createMemoryStore } from "@throughline/store-memory";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Answered, type Serving } from "./serving.ts";

let serving: Serving;
const source = "importedFormat=codex&importedId=Abc";

beforeAll(async () => {
  serving = await serve({ openStore: (onEvent) => createMemoryStore({ onEvent }) });
});
afterAll(() => serving.close());

async function begin(name: string, agentId = "main"): Promise<string> {
  const key = `agent:${agentId}:${name}`;
  const entry = { importedFrom: { format: "codex", sessionId: "abc" } };
  const made = await serving.ask("PUT", `/sessions/${encodeURIComponent(key)}?agent=${agentId}`, {
    body: { sessionId: name, entry },
  });
  expect(made.status).toBe(201);
  return encodeURIComponent(key);
}

function namesOf({ body }: Answered): readonly string[] {
  return (body["items"] as readonly { readonly sessionId: string }[]).map(({ sessionId }) => sessionId).toSorted();
}

describe("a list by source", () => {
  it("has the sessions of the source, page by page, and when one was purged", async () => {
    await begin("one");
    const two = await begin("two");
    await serving.ask("DELETE", `/sessions/${two}`);
    const before = await serving.ask("GET", `/sessions?${source}`);
    expect([namesOf(before), before.body["purgedAtMs"]]).toEqual([["one", "two"], null]);
    expect(namesOf(await serving.ask("GET", `/sessions?${source}&state=active`))).toEqual(["one"]);
    const first = await serving.ask("GET", `/sessions?${source}&limit=1&sort=key`);
    const cursor = encodeURIComponent(String(first.body["nextCursor"]));
    expect(namesOf(await serving.ask("GET", `/sessions?${source}&limit=1&sort=key&cursor=${cursor}`))).toEqual(["two"]);
    const other = "importedFormat=codex&importedId=other";
    const foreign = await serving.ask("GET", `/sessions?${other}&limit=1&sort=key&cursor=${cursor}`);
    expect(foreign.body).toMatchObject({ code: "CURSOR_INVALID" });
    await serving.ask("DELETE", `/sessions/${await begin("gone")}?purge=true`);
    const after = await serving.ask("GET", `/sessions?${source}`);
    expect([namesOf(after), after.body["purgedAtMs"]]).toEqual([["one", "two"], expect.any(Number)]);
    expect((await serving.ask("GET", "/sessions")).body).not.toHaveProperty("purgedAtMs");
    expect((await serving.ask("GET", `/sessions?${source}&prefix=agent`)).body).not.toHaveProperty("purgedAtMs");
    expect((await serving.ask("GET", `/sessions?${other}`)).body).toMatchObject({ items: [], purgedAtMs: null });
  });

  it.each(["importedFormat", "importedId"])("needs both parts: %s alone names the other", async (given) => {
    const missing = given === "importedId" ? "importedFormat" : "importedId";
    const { status, body } = await serving.ask("GET", `/sessions?${given}=x`);
    expect([status, body["code"], body["details"]]).toEqual([400, "INPUT_INVALID", { path: missing }]);
  });

  it("shows a token its own agent and namespace only", async () => {
    await serving.ask("DELETE", `/sessions/${await begin("of-main")}?purge=true`);
    const work = await serving.tokenOf({ namespace: "", agents: ["work"] });
    const theirs = await serving.tokenOf({ namespace: "tenant", agents: "*" });
    for (const token of [work, theirs])
      expect((await serving.ask("GET", `/sessions?${source}`, { token })).body).toMatchObject({
        items: [],
        purgedAtMs: null,
      });
    await begin("of-work", "work");
    expect(namesOf(await serving.ask("GET", `/sessions?${source}`, { token: work }))).toEqual(["of-work"]);
  });
});

describe("a search for any of some words", () => {
  it.each([{}, { q: "x", anyOf: ["x"] }])("takes either all or some words: %o is refused", async (body) => {
    const answered = await serving.ask("POST", "/search", { body });
    expect([answered.status, answered.body["code"], answered.body["details"]]).toEqual([
      400,
      "INPUT_INVALID",
      { path: "q" },
    ]);
  });

  it("names the list that is too long", async () => {
    const anyOf = Array.from({ length: 65 }, () => "x");
    const answered = await serving.ask("POST", "/search", { body: { anyOf } });
    expect(answered.body).toMatchObject({ code: "INPUT_INVALID", details: { path: "anyOf" } });
  });
});
