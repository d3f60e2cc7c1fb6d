import { readdirSync } from "node:fs";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("the options of a store", () => {
  it.each([
    ["lockTimeoutMs", Number.NaN],
    ["lockTimeoutMs", -1],
    ["lockTimeoutMs", "10s"],
    ["derivedDelayMs", Number.NaN],
    ["derivedDelayMs", -5],
    ["root", ""],
    ["root", undefined],
    ["root", "a\0b"],
    ["root", "half of a pair: \ud800"],
  ])("that are out of their range are refused before anything is made: %s %s", (name, value) => {
    const options = { root: newFolder(), [name]: value } as JsonlStoreOptions;
    expect(() => createJsonlStore(options)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  });

  it.each([Infinity, 3_000_000_000])(
    "let what is derived wait until the store is closed: %s",
    async (derivedDelayMs) => {
      const root = newFolder();
      const store = await storeWithSession(root, { derivedDelayMs });
      await store.append(mainRef, [userDraft("first")]);
      await new Promise((resolve) => void setTimeout(resolve, 50));
      expect(readdirSync(`${root}/agents/main/sessions`)).toEqual(["s1.jsonl"]);
      await store.close();
      expect(readdirSync(`${root}/agents/main/sessions`)).toEqual(["s1.jsonl", "sessions.json"]);
    },
  );

  it("say of a root whose locks SQLite could not open that it is too long", async () => {
    const root = `${newFolder()}/${"d".repeat(200)}/${"d".repeat(240)}`;
    const store = createJsonlStore({ root });
    await expect(store.save(mainRef, { sessionId: "s1" }, { ifRevision: null })).rejects.toMatchObject({
      code: "STORE_UNSUPPORTED",
      outcome: "not-applied",
    });
    await store.close();
  });
});
