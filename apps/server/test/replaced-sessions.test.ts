import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { aroundCalls } from "@throughline/test-kit";
import { expect, it } from "vitest";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { serve } from "./serving.ts";

const draft = (text: string): object => ({ type: "message", message: { role: "user", content: text } });

it("a stream that reads what it has missed never tells of the session that took the key meanwhile", async () => {
  const folder = mkdtempSync(join(quickFolder(), "throughline-replaced-"));
  let reset: ((store: SessionStore) => Promise<void>) | null = null;
  const serving = await serve({
    openStore: (onEvent) => {
      const store = createSqliteStore({ path: join(folder, "sessions.db"), onEvent });
      return aroundCalls(store, ({ name, run }) => {
        const due = name === "read" ? reset : null;
        if (due === null) return run();
        reset = null;
        return (async function* () {
          await due(store);
          yield* run() as AsyncIterable<unknown>;
        })();
      });
    },
  });
  try {
    await serving.begin("a", [draft("old one"), draft("old two")]);
    reset = async (store) => {
      const [old] = (await store.list()).sessions;
      const { ref, revision } = old ?? expect.unreachable("no session");
      await store.save(ref, { sessionId: "the-next-one" }, { ifRevision: revision });
      await store.append(ref, ["new one", "new two", "new three"].map(draft) as never);
    };
    const response = await fetch(`${serving.url}/api/v1/sessions/a/events?after=0`, {
      headers: { authorization: `Bearer ${serving.token}` },
    });
    const told = await response.text();
    expect(reset).toBeNull();
    expect(told).not.toContain("new ");
    expect(told).toMatch(/event: gone\ndata: .*"SESSION_REPLACED".*"the-next-one"/);
  } finally {
    await serving.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
