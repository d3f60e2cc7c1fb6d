import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;

beforeAll(async () => {
  serving = await serve();
  await begin("talk", "main", [
    { role: "toolResult", toolCallId: "c", toolName: "read", content: "quay, says the file" },
    { role: "user", content: "look at the quay" },
    { role: "assistant", content: [{ type: "text", text: "the quay is old" }] },
    { role: "user", content: "look at the quay" },
    { role: "user", content: "paint the quay" },
  ]);
  await begin("code", "main", [{ role: "toolResult", toolCallId: "c", toolName: "read", content: "quay quay quay" }]);
  await begin("theirs", "work", [{ role: "user", content: "the quay of work" }]);
});
afterAll(() => serving.close());

async function begin(name: string, agentId: string, messages: readonly object[]): Promise<void> {
  const key = encodeURIComponent(`agent:${agentId}:${name}`);
  const entry = { title: `Title of ${name}`, importedFrom: { format: "codex" }, cwd: "/app" };
  await serving.ask("PUT", `/sessions/${key}?agent=${agentId}`, { body: { sessionId: name, entry } });
  const drafts = messages.map((message) => ({ type: "message", message }));
  expect((await serving.ask("POST", `/sessions/${key}/records?agent=${agentId}`, { body: { drafts } })).status).toBe(
    201,
  );
}

interface Group {
  readonly session: { readonly key: string };
  readonly hits: readonly { readonly seq: number }[];
  readonly total: number;
}

describe("hits grouped by session", () => {
  it("have the session, its best three hits with words of people first, and the number of all", async () => {
    const { body } = await serving.ask("GET", "/search?q=quay&group=session&agent=main");
    const groups = body["items"] as readonly Group[];
    expect(groups.map(({ session, total }) => [session.key, total])).toEqual([
      ["agent:main:talk", 4],
      ["agent:main:code", 1],
    ]);
    expect(groups[0]).toMatchObject({
      kind: "hitGroup",
      isTotalExact: true,
      session: { kind: "session", name: "Title of talk", program: "codex", cwd: "/app" },
    });
    expect(groups[0]?.hits.map(({ seq }) => seq).toSorted()).toEqual([3, 4, 5]);
    expect(body).toMatchObject({ total: 2, isTotalExact: true, count: 2 });
  });

  it("are as many sessions as the limit says, also by POST", async () => {
    const { body } = await serving.ask("POST", "/search", { body: { q: "quay", group: "session", limit: 1 } });
    expect(body).toMatchObject({ count: 1, total: 3 });
    expect((await serving.ask("GET", "/search?q=quay&group=day")).status).toBe(400);
  });

  it("are those that the token sees", async () => {
    const token = await serving.tokenOf({ namespace: "", agents: ["work"] });
    const { body } = await serving.ask("GET", "/search?q=quay&group=session", { token });
    expect((body["items"] as readonly Group[]).map(({ session }) => session.key)).toEqual(["agent:work:theirs"]);
  });
});

describe("hits", () => {
  it("come with their number, and whether there may be more", async () => {
    expect((await serving.ask("GET", "/search?q=quay")).body).toMatchObject({ total: 7, isTotalExact: true });
    expect((await serving.ask("GET", "/search?q=quay&limit=2")).body).toMatchObject({ total: 2, isTotalExact: false });
  });
});
