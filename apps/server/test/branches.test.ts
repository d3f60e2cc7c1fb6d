import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;
beforeAll(async () => {
  serving = await serve();
});
afterAll(() => serving.close());

const question = (id: string, more: object = {}): object => ({
  id,
  ...more,
  type: "message",
  message: { role: "user", content: `question ${id}` },
});
const switchTo = (key: string, to: string) => serving.ask("POST", `/sessions/${key}/switch`, { body: { to } });
const branches = (key: string, record: string) => serving.ask("GET", `/sessions/${key}/branches?record=${record}`);

async function currentOf(key: string, record: string): Promise<readonly unknown[]> {
  const items = (await branches(key, record)).body["items"] as readonly Readonly<Record<string, unknown>>[];
  return items.map(({ text, newestId, isCurrent }) => [text, newestId, isCurrent]);
}

describe("branches over HTTP", () => {
  it("are listed at a message, and the head switches between them", async () => {
    await serving.begin("branches", [
      question("q1"),
      question("q2"),
      question("q3", { parentId: "q1" }),
      question("q4"),
    ]);
    expect(await currentOf("branches", "q2")).toEqual([
      ["question q2", "q2", false],
      ["question q3", "q4", true],
    ]);
    expect((await switchTo("branches", "q2")).body).toMatchObject({ head: { headId: "q2" } });
    expect(await currentOf("branches", "q3")).toEqual([
      ["question q2", "q2", true],
      ["question q3", "q4", false],
    ]);
    expect((await switchTo("branches", "q3")).body).toMatchObject({ head: { headId: "q4" }, recordCount: 6 });
  });

  it("refuses unknown records and sessions, and a switch while a turn runs", async () => {
    await serving.begin("refused", [question("q1"), question("q2")]);
    const answers = [
      await branches("refused", "q9"),
      await switchTo("refused", "q9"),
      await branches("no-such", "q1"),
      await switchTo("no-such", "q1"),
    ];
    expect(answers.map(({ status, body }) => [status, body["code"]])).toEqual([
      [404, "RECORD_NOT_FOUND"],
      [404, "RECORD_NOT_FOUND"],
      [404, "SESSION_NOT_FOUND"],
      [404, "SESSION_NOT_FOUND"],
    ]);
    await serving.ask("POST", "/sessions/refused/rewind", { body: { to: "q1" } });
    await serving.ask("POST", "/sessions/refused/turns", { body: { owner: "a" } });
    const busy = await switchTo("refused", "q2");
    expect([busy.status, busy.body["code"]]).toEqual([409, "SESSION_BUSY"]);
  });
});
