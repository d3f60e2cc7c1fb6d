import { createMemoryStore } from "@throughline/store-memory";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Answered, serve, type Serving } from "./serving.ts";

const planted = "zqplantedxv";
const message = (role: "user" | "assistant", text: string): object => ({
  type: "message",
  message: { role, content: [{ type: "text", text }] },
});
const entry = { label: planted, title: planted, titleBy: "rule", cwd: `/${planted}`, other: { deep: planted } };

let served: Serving;
let writer: string;
beforeAll(async () => {
  const store = createMemoryStore();
  served = await serve({ openStore: () => store });
  writer = await served.tokenOf({ scopes: ["write", "delete"] });
});
afterAll(() => served.close());

/** Makes a session of another token, with the word in its entry and its records. Gives its path and the id of a reply. */
async function begin(name: string): Promise<{ readonly path: string; readonly replyId: string }> {
  const path = `/sessions/agent:main:${name}`;
  await served.ask("PUT", path, { body: { sessionId: `session-${name}`, entry } });
  const drafts = [message("user", planted), message("assistant", planted), message("user", "more")];
  const { body } = await served.ask("POST", `${path}/records`, { body: { drafts } });
  return { path, replyId: (body["items"] as { readonly id: string }[])[1]?.id ?? "" };
}

const asWriter = (method: string, path: string, body: object, headers = {}): Promise<Answered> =>
  served.ask(method, path, { body, token: writer, headers });

it("shows nothing of a session to a token that may not read", async () => {
  const { path, replyId } = await begin("own");
  const answers = [
    await asWriter("PUT", path, {}),
    await asWriter("PUT", `${path}?entry=true`, { entry: { label: "mine" } }),
    await asWriter("PATCH", `${path}/entry`, { mine: 1 }),
    await asWriter("PATCH", `${path}/entry`, { mine: 2 }, { "if-match": '"2"' }),
    await asWriter("POST", `${path}/fork?entry=true`, { key: "agent:main:fork", sessionId: "fork" }),
    await asWriter("POST", `${path}/fork?entry=true`, { key: "agent:main:fork", sessionId: "fork" }),
    await asWriter("POST", `${path}/rewind?entry=true`, { to: replyId }),
    await asWriter("POST", `${path}/switch?entry=true`, { to: replyId }),
    await asWriter("POST", `${path}/compact`, {}),
    await asWriter("POST", `${path}/rename?entry=true`, { key: "agent:main:renamed", sessionId: "session-own" }),
    await asWriter("POST", `${path}/rename?entry=true`, { key: "agent:main:renamed", sessionId: "session-own" }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 201, 200, 200, 200, 200, 200, 200]);
  const renamed = "/sessions/agent:main:renamed";
  const reset = await asWriter("POST", `${renamed}/reset?entry=true`, { sessionId: "session-new" });
  const removed = await served.ask("DELETE", `${renamed}?entry=true`, { token: writer });
  const { archiveId } = removed.body as { readonly archiveId?: string };
  const restored = await asWriter("POST", `${renamed}/restore?entry=true&archive=${archiveId}`, {});
  expect([reset.status, removed.status, restored.status]).toEqual([201, 200, 200]);
  for (const { text } of [...answers, reset, removed, restored]) expect(text).not.toContain(planted);
});

it("makes no checkpoint for it, whose answer holds a summary", async () => {
  const { path } = await begin("summed");
  const { status, text, body } = await asWriter("POST", `${path}/checkpoint`, {});
  expect([status, body["details"]]).toEqual([403, expect.objectContaining({ needs: "read" })]);
  expect(text).not.toContain(planted);
  expect((await served.ask("POST", `${path}/checkpoint`, { body: {} })).text).toContain(planted);
});

it("answers a token that may read with the entry, as before", async () => {
  const { path } = await begin("whole");
  const token = await served.tokenOf({ scopes: ["read", "write"] });
  const { body } = await served.ask("PATCH", `${path}/entry`, { body: { mine: 1 }, token });
  expect(body).toMatchObject({ entry: { ...entry, mine: 1 } });
  expect((await served.ask("PUT", path, { body: {}, token })).body).toMatchObject({ label: planted });
});
