import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { sessionRef, type SessionStore } from "@throughline/core";
import { type ApiCaller, createSessionApi } from "@throughline/http-api";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

const model = "test/m@4";
const all: ApiCaller = { id: "all", namespace: "*", agents: "*", scopes: ["read", "write"] };
const vector = base64Of([1, 0, 0, 0]);

interface Answered {
  readonly [name: string]: unknown;
  readonly ranges: readonly { readonly mark: string }[];
}

function base64Of(numbers: readonly number[]): string {
  return Buffer.from(Float32Array.from(numbers).buffer).toString("base64");
}

async function serve(store: SessionStore = createMemoryStore()) {
  const api = createSessionApi({ store });
  opened.push(api, store);
  for (const agentId of ["main", "other"]) {
    const ref = sessionRef({ key: `agent:${agentId}:notes`, agentId });
    await store.save(ref, { sessionId: `of-${agentId}` }, { ifRevision: null });
    await store.append(ref, [{ type: "message", message: { role: "user", content: "one" } }]);
  }
  return async (caller: ApiCaller, method: string, path: string, body?: object) => {
    const request = new Request(`http://localhost/api/v1${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const response = await api.fetch(request, { caller });
    return { status: response.status, body: (await response.json()) as Answered };
  };
}

const put = (mark: string, text: string = vector): object => {
  const range = { model, mark, fromSeq: 1, toSeq: 1, resumeSeq: 1 };
  return { ...range, vectors: [{ firstSeq: 1, lastSeq: 1, part: 0, vector: text }] };
};

describe("the routes of vectors", () => {
  it("give a caller the vectors of its agents only", async () => {
    const ask = await serve();
    const limited: ApiCaller = { ...all, agents: ["main"], namespace: "" };
    const pending = await ask(all, "GET", `/vectors/pending?agent=other&model=${model}`);
    const [range] = pending.body.ranges;
    expect([pending.body["records"], range]).toMatchObject([1, { agentId: "other", key: "agent:other:notes" }]);
    const session = `/sessions/${encodeURIComponent("agent:other:notes")}/vectors`;
    expect((await ask(limited, "PUT", session, put(range?.mark ?? ""))).status).toBe(404);
    expect((await ask(all, "PUT", session, put("an old mark"))).body).toMatchObject({ isStored: false });
    expect((await ask(all, "PUT", session, put(range?.mark ?? ""))).body).toMatchObject({ isStored: true });
    const nearest = { model, vector, agent: "other" };
    expect((await ask(all, "POST", "/vectors/nearest", nearest)).body).toMatchObject({
      items: [{ kind: "nearestHit", key: "agent:other:notes", firstSeq: 1 }],
    });
    for (const asked of [
      ask(limited, "POST", "/vectors/nearest", nearest),
      ask(limited, "GET", `/vectors/pending?agent=other&model=${model}`),
      ask(limited, "DELETE", "/vectors?agent=other"),
    ])
      expect((await asked).body).toMatchObject({ status: 404, code: "SESSION_NOT_FOUND" });
    // Without a name the only agent of the caller is meant.
    expect((await ask(limited, "POST", "/vectors/nearest", { model, vector })).body["items"]).toEqual([]);
    expect((await ask(limited, "GET", `/vectors/pending?model=${model}`)).body["records"]).toBe(1);
    expect((await ask(limited, "DELETE", "/vectors")).body).toMatchObject({ vectors: 0 });
    const reader: ApiCaller = { ...all, scopes: ["read"] };
    expect((await ask(reader, "DELETE", "/vectors?agent=other")).status).toBe(403);
    expect((await ask(all, "DELETE", "/vectors?agent=other")).body).toMatchObject({ vectors: 1 });
  });

  it.for([
    ["no base64", "!!!!"],
    ["a part of a number", Buffer.from("12345").toString("base64")],
    ["too few numbers", base64Of([1, 0, 0])],
    ["zeros", base64Of([0, 0, 0, 0])],
    ["what is no number", base64Of([Number.NaN, 0, 0, 1])],
  ] as const)("refuse %s as a vector", async ([, text]) => {
    const ask = await serve();
    const { body } = await ask(all, "GET", `/vectors/pending?model=${model}`);
    const session = `/sessions/${encodeURIComponent("agent:main:notes")}/vectors`;
    const mark = body.ranges[0]?.mark ?? "";
    for (const asked of [
      ask(all, "PUT", session, put(mark, text)),
      ask(all, "POST", "/vectors/nearest", { model, vector: text }),
    ])
      expect((await asked).body).toMatchObject({ status: 400, code: "INPUT_INVALID" });
    expect((await ask(all, "GET", `/vectors/pending?model=${model}`)).body["records"]).toBe(1);
  });

  it("say that a store keeps none", async () => {
    const root = mkdtempSync(join(tmpdir(), "throughline-vector-routes-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const ask = await serve(createJsonlStore({ root, index: false }));
    const { body } = await ask(all, "GET", `/vectors/pending?model=${model}`);
    expect(body).toMatchObject({ status: 501, code: "CAPABILITY_UNSUPPORTED" });
  });
});
