import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createSqliteStore } from "@throughline/store-sqlite";
import { killAtQuestion } from "../../../packages/session/test/kill-at-question.ts";
import { key } from "../../../packages/session/test/session-fixture.ts";
import { serve } from "./serving.ts";

vi.setConfig({ testTimeout: 120_000 });

it("a turn over HTTP says that calls did not run whose question a killed process left open", async () => {
  const folder = await mkdtemp(join(tmpdir(), "questions-"));
  await killAtQuestion("sqlite", folder, 0);
  const path = join(folder, "sessions.db");
  const { ask, close } = await serve({ openStore: (onEvent) => createSqliteStore({ path, onEvent }) });
  try {
    const drafts = [{ type: "message", message: { role: "user", content: "Hello?" } }];
    const opened = await ask("POST", `/sessions/${key}/turns`, { body: { owner: "ada", drafts } });
    expect([opened.status, (opened.body["ids"] as unknown[]).length]).toEqual([201, 1]);
    const { text } = await ask("GET", `/sessions/${key}/context?provider=anthropic`);
    expect(text.split("It was not run.")).toHaveLength(3);
    expect(text).not.toContain("may or may not");
  } finally {
    await close();
    await rm(folder, { recursive: true, force: true });
  }
});
