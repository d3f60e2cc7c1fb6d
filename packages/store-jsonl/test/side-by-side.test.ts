import { sessionRef, type SessionState } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const archived = { ...mainRef, archiveId: "s1" };

describe("operations that begin together", () => {
  it("give a session as they left it, not as whoever came next did", async () => {
    const store = await storeWithSession(newFolder());
    await store.append(mainRef, [userDraft("first")]);
    const [saved] = await Promise.all([
      store.save(mainRef, { sessionId: "s1", label: "new" }, { ifRevision: 1 }),
      store.remove(mainRef, { purge: true }),
    ]);
    expect(saved).toMatchObject({ revision: 2, messageCount: 1, head: { lastSeq: 1 } });
    expect(await store.load(mainRef)).toBeNull();
    await store.close();
  });

  it("archive a session with its records although it is purged at once", async () => {
    const store = await storeWithSession(newFolder());
    await store.append(mainRef, [userDraft("first")]);
    const [moved] = await Promise.all([
      store.move(mainRef, { kind: "archive" }),
      store.remove(archived, { purge: true }),
    ]);
    expect(moved).toMatchObject({ archived: true, messageCount: 1, head: { lastSeq: 1 } });
    await store.close();
  });

  it.each(["archive", "purge", "reset"])(
    "call no session damaged that loses its place to a fork's copy: %s",
    async (how) => {
      const store = await storeWithSession(newFolder());
      await store.append(mainRef, [userDraft("first")]);
      const target = sessionRef({ key: "agent:main:fork" });
      const forking = store.fork?.fork(mainRef, target, { sessionId: "f1" });
      const other =
        how === "reset"
          ? store.save(mainRef, { sessionId: "s2" }, { ifRevision: 1 })
          : store.remove(mainRef, { purge: how === "purge" });
      const [forked] = await Promise.allSettled([forking, other]);
      // After a reset the key has another session, which is empty.
      if (how === "reset") expect(forked).toMatchObject({ value: { entry: { forkedFrom: { sessionId: "s2" } } } });
      else expect(forked).toMatchObject({ reason: { code: "SESSION_NOT_FOUND" } });
      await store.close();
    },
  );

  it.each(["load", "list"])("show no session empty that another handle purges in the moment of a %s", async (how) => {
    const root = newFolder();
    const store = createJsonlStore({ root });
    const other = createJsonlStore({ root });
    for (let turns = 0; turns < 24; turns++) {
      await store.save(mainRef, { sessionId: `s${turns}` }, { ifRevision: null });
      await store.append(mainRef, [userDraft("first")]);
      await other.list();
      const look = async (): Promise<SessionState | null | undefined> =>
        how === "load" ? other.load(mainRef) : (await other.list()).sessions[0];
      const purging = store.remove(mainRef, { purge: true });
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      const seen = await look();
      expect([undefined, 1]).toContain(seen?.messageCount);
      await purging;
    }
    await Promise.all([store.close(), other.close()]);
  });
});
