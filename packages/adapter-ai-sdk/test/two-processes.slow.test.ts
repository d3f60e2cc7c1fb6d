import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createChatStore } from "../src/chat-store.ts";

it("two processes that save one chat lose no message, and keep the order of each", async () => {
  const saves = testSize({ short: 20, long: 200 });
  const folder = mkdtempSync(join(tmpdir(), "throughline-chats-"));
  try {
    const path = join(folder, "s.db");
    const program = join(import.meta.dirname, "save-chats.ts");
    const run = (name: string): Promise<unknown> =>
      promisify(execFile)(process.execPath, ["--conditions=@throughline/source", program, path, name, String(saves)]);
    await Promise.all([run("one"), run("two")]);
    await using store = createSqliteStore({ path });
    const ids = (await createChatStore({ store }).loadChat("shared")).map(({ id }) => id);
    const ofProcess = (name: string): readonly string[] => ids.filter((id) => id.startsWith(name));
    const wanted = (name: string): readonly string[] => Array.from({ length: saves }, (_, at) => `${name}-${at}`);
    expect(ids).toHaveLength(2 * saves);
    expect(ofProcess("one")).toEqual(wanted("one"));
    expect(ofProcess("two")).toEqual(wanted("two"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
