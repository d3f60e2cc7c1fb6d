import { expect, it } from "vitest";
import { createServer } from "@throughline/server";
import { createSessions, type Sessions } from "@throughline/session";
import { openHttpStore } from "@throughline/store-http";
import { createSqliteStore } from "@throughline/store-sqlite";
import { until } from "@throughline/test-kit";
import { join } from "node:path";
import { createScriptedModel, type ScriptedModel } from "../../../packages/session/test/scripted-model.ts";
import { key } from "../../../packages/session/test/session-fixture.ts";
import { temporaryDirectory } from "./harness.ts";

it("a program that reaches the store over a server follows the reply that another one writes", async () => {
  const folder = temporaryDirectory();
  const openStore = (): ReturnType<typeof createSqliteStore> =>
    createSqliteStore({ path: join(folder.path, "sessions.db") });
  const limits = { requestsPerMinute: 1_000_000, requestBurst: 1_000_000 };
  const server = await createServer({ openStore, port: 0, limits });
  try {
    const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
    const { text: token } = await server.tokens.create(rights as never, "program");
    const program = async (script: ScriptedModel): Promise<Sessions> => {
      const store = await openHttpStore({ url: server.url, token });
      return createSessions({ store, model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 100_000 } });
    };
    const gate = Promise.withResolvers<void>();
    await using answering = await program(
      createScriptedModel({ text: "Hello there", pieceLength: 6, between: gate.promise }),
    );
    await using reading = await program(createScriptedModel());
    const session = await answering.open(key);
    const running = session.runTurn("Hi", { onDelta: () => {} });
    // The partial is in the store of the server once 700 ms have passed.
    await using store = openStore();
    await until(async () => (await store.partials?.read({ namespace: "", agentId: "main", key })) !== null);
    const events = Array.fromAsync((await reading.attach(key)) ?? expect.unreachable("no turn runs"));
    await new Promise((resolve) => setTimeout(resolve, 600));
    gate.resolve();
    const { turnId } = await running;
    const read = await events;
    expect(read[0]).toEqual({ name: "text.snapshot", text: "Hello " });
    expect(read.map((event) => (event.name === "text.delta" ? event.text : "")).join("")).toBe("there");
    expect(read.at(-1)).toMatchObject({ name: "turn.result", turn: { turnId, outcome: "done", text: "Hello there" } });
    expect(await reading.attach(key)).toBeNull();
  } finally {
    await server.close();
    folder.remove();
  }
});
