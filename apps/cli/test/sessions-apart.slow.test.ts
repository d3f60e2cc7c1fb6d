import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory, user } from "./harness.ts";
import { testSize } from "../../../tools/test-size.ts";

// Keys that a store could take for one another: by case, as a prefix, by a separator that a file name has instead.
const keys = [
  "agent:main:cli:direct:a",
  "agent:main:cli:direct:A",
  "agent:main:cli:direct:ab",
  "agent:main:cli:direct:a:b",
  "agent:main:cli:direct:a_b",
  "agent:main:cli_direct_a",
  "agent:main:telegram:direct:a",
  "agent:other:cli:direct:a",
  "main:cli:a",
  "main:cli_a",
  "goclaw:main:main",
  "agent:main:cli:direct:\u00e9",
  "agent:main:cli:direct:e\u0301",
];

describe.each(testSize({ short: ["jsonl"], long: ["sqlite", "jsonl"] }))("sessions of a %s store", (kind) => {
  it("hold what was appended to them and nothing else, however alike their keys are", async () => {
    const directory = temporaryDirectory();
    const store = `${kind}:${join(directory.path, kind === "sqlite" ? "sessions.db" : "store")}`;
    const run = async (key: string, args: readonly string[], stdin = ""): Promise<string> => {
      const agent = key.startsWith("agent:other:") ? "other" : "main";
      const all = [...args, "--store", store, "--agent", agent, "--json", "--quiet"];
      const done = await runHere(directory.path, all, { stdin });
      expect([key, done.code, done.stderr]).toEqual([key, 0, ""]);
      return done.stdout;
    };
    try {
      for (const round of [1, 2, 3]) {
        for (const key of keys) await run(key, ["append", key], `${JSON.stringify(user(`${key} says ${round}`))}\n`);
      }
      const said = async (key: string): Promise<readonly unknown[]> =>
        objects(await run(key, ["show", key])).flatMap(({ record }) =>
          record === undefined ? [] : [(record as { message: { content: unknown } }).message.content],
        );
      for (const key of keys) {
        expect(await said(key)).toEqual([1, 2, 3].map((round) => `${key} says ${round}`));
        const context = JSON.stringify(objects(await run(key, ["context", key]))[0]?.["messages"]);
        for (const other of keys)
          expect([key, other, context.includes(`${other} says`)]).toEqual([key, other, other === key]);
      }
      const ids = objects(await run("", ["sessions", "--limit", "100"])).flatMap(({ sessionId }) => sessionId ?? []);
      expect(new Set(ids).size).toBe(keys.length - 1);
    } finally {
      directory.remove();
    }
  });
});
