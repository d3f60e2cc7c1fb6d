import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("OpenClaw's index, as a killed process left it", () => {
  it("keeps a session that was brought since, however long ago it began elsewhere", async () => {
    const root = newFolder();
    const first = await storeWithSession(root);
    await first.append(mainRef, [userDraft("old")]);
    await first.close();
    const view = `${root}/agents/main/sessions/sessions.json`;
    const earlier = readFileSync(view);
    const beganAtMs = 1_600_000_000_000;
    const second = createJsonlStore({ root });
    await second.move(mainRef, { kind: "archive" });
    const entry = { sessionId: "brought", updatedAt: beganAtMs };
    await second.save(mainRef, entry, { ifRevision: null, createdAtMs: beganAtMs });
    await second.close();
    // The process was killed before it had written the view, and what is derived is gone.
    writeFileSync(view, earlier);
    rmSync(`${root}/agents/main/throughline/sessions-view.json`);
    for (const ending of ["", "-wal", "-shm"])
      rmSync(`${root}/agents/main/throughline/index.db${ending}`, { force: true });
    await using again = createJsonlStore({ root });
    expect(await again.load(mainRef)).toMatchObject({ sessionId: "brought", createdAtMs: beganAtMs });
  });
});
