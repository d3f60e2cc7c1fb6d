import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { expect, it, vi } from "vitest";
import { createSqliteStore } from "@throughline/store-sqlite";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { key } from "../../../packages/session/test/session-fixture.ts";
import { serve } from "./serving.ts";

const script = bundledWorker(new URL("../../../packages/session/test/question-process.ts", import.meta.url));
vi.setConfig({ testTimeout: 120_000 });

it("a turn over HTTP says that calls did not run whose question a killed process left open", async () => {
  const folder = await mkdtemp(join(tmpdir(), "questions-"));
  const child = spawn(process.execPath, [script, "sqlite", folder, "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), exited.then(() => Promise.reject(new Error("It did not ask.")))]);
  child.kill("SIGKILL");
  await exited;
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
