import { cpSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SessionEvent, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

interface Fixture {
  readonly store: SessionStore;
  readonly events: readonly SessionEvent[];
  /** From now on another process does its work right before the store's next call like this for the transcript. */
  arm(): void;
}

/** A session of two records that another process archives or purges while the store looks at its transcript. */
async function openFixture(how: "archived" | "purged", call: "facts" | "open"): Promise<Fixture> {
  const [root, copy] = [newFolder(), newFolder()];
  const first = await storeWithSession(root, { sessionsJson: false, index: false });
  await first.append(mainRef, [userDraft("one")]);
  await first.append(mainRef, [userDraft("two")]);
  await first.close();
  // What the other process does is done to a copy, and taken over when it is time.
  cpSync(root, copy, { recursive: true });
  const other = createJsonlStore({ root: copy, sessionsJson: false, index: false });
  await other.remove(mainRef, { purge: how === "purged" });
  await other.close();
  const log = "agents/main/throughline/entries.log";
  const [name] = readdirSync(join(copy, "agents/main/sessions"));
  let isArmed = false;
  const change = (path: string): void => {
    if (!isArmed || path !== transcriptOf(root)) return;
    isArmed = false;
    renameSync(join(copy, log), join(root, log));
    if (name === undefined) rmSync(path);
    else renameSync(path, join(root, "agents/main/sessions", name));
  };
  const files: Files = {
    ...nodeFiles,
    facts(path) {
      if (call === "facts") change(path);
      return nodeFiles.facts(path);
    },
    open(path, mode) {
      if (call === "open") change(path);
      return nodeFiles.open(path, mode);
    },
  };
  const events: SessionEvent[] = [];
  const onEvent = (event: SessionEvent): void => void events.push(event);
  const store = createJsonlStore({ root, files, sessionsJson: false, index: false, onEvent });
  return { store, events, arm: () => void (isArmed = true) };
}

describe("a session that another process archives in the moment it is looked at", () => {
  it.for(["facts", "open"] as const)("is read to its end all the same, between two calls: %s", async (call) => {
    const { store, events, arm } = await openFixture("archived", call);
    await store.list();
    arm();
    expect(await textsOf(store)).toEqual(["one", "two"]);
    expect(findingCodesOf(events)).toEqual([]);
    await store.close();
  });

  it.for(["facts", "open"] as const)("is shown with what it holds, between two calls: %s", async (call) => {
    const { store, events, arm } = await openFixture("archived", call);
    arm();
    expect((await store.load(mainRef))?.head.lastSeq).toBe(2);
    expect(findingCodesOf(events)).toEqual([]);
    await store.close();
  });

  it.for(["facts", "open"] as const)("takes no append, and says why, between two calls: %s", async (call) => {
    const { store, arm } = await openFixture("archived", call);
    arm();
    const append = store.append(mainRef, [userDraft("three")], { idempotencyKey: "k" });
    await expect(append).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", outcome: "not-applied" });
    await store.close();
  });
});

describe("a session that another process purges in the moment it is looked at", () => {
  it.for(["facts", "open"] as const)("is not read as an empty one, between two calls: %s", async (call) => {
    const { store, arm } = await openFixture("purged", call);
    arm();
    await expect(textsOf(store)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    const append = store.append(mainRef, [userDraft("three")], { idempotencyKey: "k" });
    await expect(append).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", outcome: "not-applied" });
    await store.close();
  });
});
