import { type SessionState, type SessionStore, sessionRef } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { beforeEach, expect, it } from "vitest";
import { forkConversation } from "../src/fork-conversation.ts";

const ref = sessionRef({ key: "k" });
let store: SessionStore;
let origin: SessionState;
beforeEach(async () => {
  store = createMemoryStore();
  const entry = { sessionId: "id-1", label: "Plans", title: "Make plans", titleBy: "rules", cwd: "/old" } as const;
  await store.save(ref, entry, { ifRevision: null });
  await store.append(ref, [{ type: "message", message: { role: "user", content: "one" } }]);
  origin = (await store.load(ref)) ?? expect.unreachable();
});

it("keeps label and title of its origin, and works in the folder that is stated", async () => {
  const { entry } = await forkConversation(store, origin, { folder: "/new" });
  expect(entry).toMatchObject({ label: "Plans", title: "Make plans", titleBy: "rules", cwd: "/new" });
  expect(entry.sessionId).not.toBe("id-1");
});

it("takes what the caller states before what it inherits", async () => {
  const target = sessionRef({ key: "mine" });
  const named = await forkConversation(store, origin, { folder: "/new", label: "Other", target });
  expect([named.ref.key, named.entry.label, named.entry.title]).toEqual(["mine", "Other", "Make plans"]);
  const unnamed = await forkConversation(store, origin, { folder: "/new", label: "" });
  expect("label" in unnamed.entry).toBe(false);
});
