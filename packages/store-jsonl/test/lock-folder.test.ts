import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, textsOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("the folder of the locks", () => {
  it("may go away for a while: once it is back every handle of the process writes, and each closes", async () => {
    const root = newFolder();
    const agent = `${root}/agents/main`;
    const first = await storeWithSession(root, { sessionsJson: false });
    const second = createJsonlStore({ root, sessionsJson: false });
    for (const store of [first, second]) await store.append(mainRef, [userDraft("before")]);
    // With the agent's whole folder, for that is not made again.
    renameSync(agent, `${agent}-elsewhere`);
    for (const store of [first, second])
      await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({
        code: "STORE_IO",
        outcome: "not-applied",
      });
    expect(existsSync(agent)).toBe(false);
    renameSync(`${agent}-elsewhere`, agent);
    for (const store of [first, second]) await store.append(mainRef, [userDraft("after")]);
    expect(await textsOf(first)).toEqual(["before", "before", "after", "after"]);
    await first.close();
    await second.close();
  });

  it.for(["throughline/locks", "throughline"])("is made again when %s was removed", async (removed) => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    rmSync(`${root}/agents/main/${removed}`, { recursive: true });
    await store.append(mainRef, [userDraft("two")], { entry: { label: "kept" } });
    for (const name of ["", "/locks", "/torn"])
      expect(statSync(`${root}/agents/main/throughline${name}`).mode & 0o777).toBe(0o700);
    await store.save(mainRef, { sessionId: "s1", label: "saved" }, { ifRevision: 2 });
    await store.close();
    const again = createJsonlStore({ root, sessionsJson: false });
    expect((await again.load(mainRef))?.entry["label"]).toBe("saved");
    expect(await textsOf(again)).toEqual(["one", "two"]);
    await again.close();
  });

  it("is made again for a lock that this process never held", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    rmSync(`${root}/agents/main/throughline/locks`, { recursive: true });
    await store.append(mainRef, [userDraft("one")]);
    expect(await textsOf(store)).toEqual(["one"]);
    await store.close();
  });

  it("is gone between two looks: that has a code too", async () => {
    const root = newFolder();
    const locks = `${root}/agents/main/throughline/locks`;
    await (await storeWithSession(root, { sessionsJson: false })).close();
    let isToGo = false;
    const files: Files = {
      ...nodeFiles,
      isWritable(path) {
        if (isToGo && path.startsWith(`${locks}/`)) rmSync(locks, { recursive: true, force: true });
        return true;
      },
    };
    const store = createJsonlStore({ root, sessionsJson: false, index: false, files });
    await store.load(mainRef);
    isToGo = true;
    await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({
      code: "STORE_IO",
      outcome: "not-applied",
    });
    await store.close();
  });
});
