import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redactRecords, sessionRef, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { serve, type Answered, type Serving } from "./serving.ts";

let serving: Serving;
/** The store under the server: a program beside it uses the same one. */
let store: SessionStore;
beforeAll(async () => {
  serving = await serve({
    openStore: (onEvent) => (store = createMemoryStore({ onEvent })),
  });
});
afterAll(() => serving.close());

const message = (role: string, content: unknown, more: object = {}): object => ({
  type: "message",
  message: { role, content, ...more },
});
const write = (id: string, path: string, content: string): object =>
  message("assistant", [{ type: "toolCall", id, name: "write", arguments: { path, content } }], {
    usage: { input: 10, output: 5, totalTokens: 15 },
    provider: "anthropic",
    model: "claude-sonnet-4-5",
  });
const result = (id: string, isError = false): object =>
  message("toolResult", "ok", { toolCallId: id, toolName: "write", isError });
const ask = (name: string, below: string, options = {}): Promise<Answered> =>
  serving.ask("GET", `/sessions/${name}/${below}`, options);
const append = (name: string, drafts: readonly object[]): Promise<Answered> =>
  serving.ask("POST", `/sessions/${name}/records`, { body: { drafts } });

interface Digest {
  readonly lastSeq: number;
  readonly prompts: readonly { readonly text: string; readonly files: number }[];
}
const digestOf = async (name: string): Promise<Digest> => (await ask(name, "digest")).body as unknown as Digest;
const textsOf = async (name: string): Promise<readonly string[]> =>
  (await digestOf(name)).prompts.map(({ text }) => text);

const turn = [
  { id: "p1", ...message("user", "Write a.ts with the secret-word") },
  write("t1", "a.ts", "one\n"),
  result("t1"),
  write("t2", "a.ts", "two\nthree\n"),
  result("t2"),
  write("t3", "b.ts", "x\n"),
  result("t3", true),
];

describe("the digest of a session", () => {
  it("goes on with new records", async () => {
    await serving.begin("grown", turn);
    expect(await digestOf("grown")).toMatchObject({
      lastSeq: 7,
      headId: expect.any(String),
      prompts: [{ seq: 1, toSeq: 7, tools: 3, errors: 1, files: 2, outputTokens: 15 }],
      errors: [7],
    });
    await append("grown", [message("user", "Next")]);
    expect(await textsOf("grown")).toEqual(["Write a.ts with the secret-word", "Next"]);
    expect(await digestOf("grown")).toEqual(await digestOf("grown"));
  });

  it("answers for an empty session, an archived one, and one that was reset", async () => {
    await serving.begin("empty", []);
    expect(await digestOf("empty")).toMatchObject({ lastSeq: 0, prompts: [], axis: null });
    expect((await ask("empty", "usage")).body).toMatchObject({ turns: [], hasUsage: false });
    expect((await ask("empty", "changed-files")).body).toMatchObject({ items: [], nextSeq: null });
    await serving.begin("again", turn);
    expect((await textsOf("again")).length).toBe(1);
    const { body } = await serving.ask("GET", "/sessions/again");
    await serving.ask("POST", "/sessions/again/reset", { body: { sessionId: "newer" } });
    expect(await textsOf("again")).toEqual([]);
    const archived = await ask("again", `digest?archive=${String(body["sessionId"])}`);
    expect(archived.body).toMatchObject({ sessionId: body["sessionId"], lastSeq: 7 });
  });

  it.each([
    [
      "over HTTP",
      (name: string) => serving.ask("POST", `/sessions/${name}/redact`, { body: { ids: ["p1"], reason: "r" } }),
    ],
    [
      "of a part, over HTTP",
      (name: string) =>
        serving.ask("POST", `/sessions/${name}/redact`, { body: { ids: ["p1"], reason: "r", texts: ["secret-word"] } }),
    ],
    ["by a program beside", (name: string) => redactRecords(store, sessionRef({ key: name }), ["p1"], { reason: "r" })],
    [
      "of a part, by a program beside",
      (name: string) =>
        redactRecords(store, sessionRef({ key: name }), ["p1"], { reason: "r", texts: ["secret-word"] }),
    ],
    ["of the store alone", (name: string) => store.redact(sessionRef({ key: name }), ["p1"], { reason: "r" })],
  ] as const)("does not outlive a redaction %s", async (how, redact) => {
    const name = `redacted-${how.replaceAll(/\W/g, "-").toLowerCase()}`;
    await serving.begin(name, turn);
    expect(JSON.stringify(await digestOf(name))).toContain("secret-word");
    await redact(name);
    expect(JSON.stringify(await digestOf(name))).not.toContain("secret-word");
    await append(name, [message("user", "Next")]);
    expect(JSON.stringify(await digestOf(name))).not.toContain("secret-word");
  });

  it("does not outlive a redaction of a part by another program, which leaves no note", async () => {
    await serving.begin("redacted-in-place", turn);
    const isShown = async (): Promise<boolean> =>
      JSON.stringify(await digestOf("redacted-in-place")).includes("secret-word");
    expect(await isShown()).toBe(true);
    await store.redact(sessionRef({ key: "redacted-in-place" }), ["p1"], { reason: "r", texts: ["secret-word"] });
    await expect.poll(isShown).toBe(false);
    expect(await digestOf("redacted-in-place")).toMatchObject({ lastSeq: 7, prompts: [{ files: 2 }] });
  });

  it("does not outlive a redaction in the session that it is a fork of", async () => {
    await serving.begin("origin", turn);
    await serving.ask("POST", "/sessions/origin/fork", { body: { key: "shares", sessionId: "shares" } });
    expect(JSON.stringify(await digestOf("shares"))).toContain("secret-word");
    await serving.ask("POST", "/sessions/origin/redact", { body: { ids: ["p1"], reason: "r" } });
    const records = await ask("shares", "records");
    const isShared = !records.text.includes("secret-word");
    expect(JSON.stringify(await digestOf("shares")).includes("secret-word")).toBe(!isShared);
  });

  it("does not outlive a purge", async () => {
    await serving.begin("purged", turn);
    await digestOf("purged");
    await serving.ask("DELETE", "/sessions/purged?purge=true");
    expect((await ask("purged", "digest")).status).toBe(404);
    await serving.begin("purged", []);
    expect(await textsOf("purged")).toEqual([]);
  });
});

describe("the files of a session", () => {
  beforeAll(() => serving.begin("files", turn));

  it("are listed with their changes, failed ones apart", async () => {
    const { body } = await ask("files", "changed-files");
    expect(body["items"]).toEqual([
      { kind: "changedFile", path: "a.ts", changes: 2, failed: 0, added: 3, removed: 0, firstSeq: 2, lastSeq: 4 },
      { kind: "changedFile", path: "b.ts", changes: 0, failed: 1, added: 0, removed: 0, firstSeq: 6, lastSeq: 6 },
    ]);
  });

  it("have each change with what it replaces", async () => {
    const { body } = await ask("files", "changed-files?path=a.ts");
    expect(body["items"]).toMatchObject([
      { seq: 2, callId: "t1", tool: "write", what: "write", isError: false, before: null, after: "one\n" },
      { seq: 4, callId: "t2", before: "one\n", after: "two\nthree\n", patch: null },
    ]);
    const later = await ask("files", "changed-files?path=a.ts&after=2");
    expect(later.body["items"]).toMatchObject([{ seq: 4, before: "one\n" }]);
    expect((await ask("files", "changed-files?path=b.ts")).body["items"]).toMatchObject([{ isError: true }]);
  });

  it.each(["/etc/passwd", "../../etc/passwd", "A.ts", "a.ts/"])("are those of the log: %s is none", async (path) => {
    const { status, body } = await ask("files", `changed-files?path=${encodeURIComponent(path)}`);
    expect([status, body["items"]]).toEqual([200, []]);
  });

  it("come in pages when their changes are many", async () => {
    const drafts = Array.from({ length: 450 }, (_, at) => write(`m${at}`, "m.ts", `${at}\n`));
    await serving.begin("many", drafts);
    const seqs: number[] = [];
    let after: unknown = 0;
    do {
      const { body } = await ask("many", `changed-files?path=m.ts&after=${String(after)}`);
      const items = body["items"] as readonly { readonly seq: number; readonly before: string | null }[];
      expect(items.length).toBeLessThanOrEqual(200);
      expect(items.map(({ before }) => before)).toEqual(items.map(({ seq }) => (seq === 1 ? null : `${seq - 2}\n`)));
      seqs.push(...items.map(({ seq }) => seq));
      after = body["nextSeq"];
    } while (after !== null);
    expect(seqs).toEqual(Array.from({ length: 450 }, (_, at) => at + 1));
  });
});

it("shows the usage of each prompt", async () => {
  await serving.begin("used", turn);
  const { body } = await ask("used", "usage");
  expect(body).toMatchObject({
    hasUsage: true,
    turns: [{ seq: 1, calls: 3, input: 30, output: 15, fillTokens: 15, isShared: false }],
    total: { calls: 3, input: 30, costUsd: expect.any(Number) },
  });
});

it("needs the scope read, and shows other tenants and agents nothing", async () => {
  await serving.begin("closed", turn);
  await digestOf("closed");
  for (const below of ["digest", "usage", "changed-files", "changed-files?path=a.ts"]) {
    for (const rights of [{ namespace: "tenant" }, { namespace: "", agents: ["other"] }]) {
      const token = await serving.tokenOf({ ...rights, scopes: ["read"] });
      expect([below, (await ask("closed", below, { token })).status]).toEqual([below, 404]);
    }
    const token = await serving.tokenOf({ scopes: ["write"] });
    expect((await ask("closed", below, { token })).status).toBe(403);
  }
});
