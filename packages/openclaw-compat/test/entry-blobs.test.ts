import { describe, expect, it } from "vitest";
import { sessionRef } from "@throughline/core";
import { loadEntryBlobs, setBlobsAside } from "@throughline/core/internal";
import { compatFixture, key, storeKinds, storePath } from "./compat-fixture.ts";

/** As large as they come, with everything a careless copy would lose. */
const skillsSnapshot = {
  prompt: 'é\u2028 \\ " '.repeat(40_000),
  version: 3,
  resolvedSkills: [{ name: "a", "10": 1, "2": 2, nothing: null, small: 1.5e-7 }],
};
const systemPromptReport = {
  source: "run",
  sections: Array.from({ length: 500 }, (_, index) => ({ name: `s${index}` })),
};
const ref = sessionRef({ key });

describe.each(storeKinds)("large fields of an entry over %s", (kind) => {
  it("lie outside of the entry, are loaded when asked for, and come back unchanged", async () => {
    await using fixture = compatFixture(kind);
    const { sessions, store } = fixture;
    await sessions.updateSessionStore(storePath, (entries) => {
      entries[key] = { sessionId: "s-1", label: "Mine", skillsSnapshot, systemPromptReport };
    });
    const state = await store.load(ref);
    const listed = (await store.list({ agentId: "main" })).sessions.map(({ entry }) => JSON.stringify(entry).length);
    expect(Math.max(...listed)).toBeLessThan(1000);
    expect(Object.keys(state?.entry ?? {})).not.toContain("skillsSnapshot");
    const blobs = state === null ? {} : await loadEntryBlobs(store, state);
    expect(JSON.stringify(blobs)).toBe(JSON.stringify({ skillsSnapshot, systemPromptReport }));
    const whole = (await sessions.loadSessionStore(storePath, { withBlobs: true }))[key];
    expect(JSON.stringify(whole?.["skillsSnapshot"])).toBe(JSON.stringify(skillsSnapshot));
    expect(Object.keys((await sessions.loadSessionStore(storePath))[key] ?? {})).toContain("blobsAside");
  });

  it("survive a patch of something else, are replaced by a patch that names them, and go when it takes them away", async () => {
    await using fixture = compatFixture(kind);
    const { sessions, store } = fixture;
    await sessions.updateSessionStore(storePath, (entries) => {
      entries[key] = { sessionId: "s-1", skillsSnapshot, systemPromptReport };
    });
    const patch = (fields: Readonly<Record<string, unknown>>) =>
      sessions.updateSessionStoreEntry({ storePath, sessionKey: key, update: () => fields });
    const patched = await patch({ verboseLevel: "on" });
    expect(JSON.stringify(patched?.["skillsSnapshot"])).toBe(JSON.stringify(skillsSnapshot));
    const before = (await store.load(ref))?.head.lastSeq;
    // The same again takes no more room.
    await patch({ skillsSnapshot });
    expect((await store.load(ref))?.head.lastSeq).toBe(before);
    expect((await patch({ skillsSnapshot: { prompt: "new" } }))?.["skillsSnapshot"]).toEqual({ prompt: "new" });
    expect(Object.keys((await patch({ skillsSnapshot: undefined })) ?? {})).not.toContain("skillsSnapshot");
    expect((await patch({ verboseLevel: "off" }))?.["systemPromptReport"]).toEqual(systemPromptReport);
  });

  it("a reference that leads nowhere, to another session or to something else gives nothing", async () => {
    await using fixture = compatFixture(kind);
    const { store } = fixture;
    const good = { sessionId: "s-1", skillsSnapshot };
    await store.save(ref, good, { ifRevision: null });
    const { entry, revision } = await setBlobsAside(store, ref);
    const place = (entry["blobsAside"] as { readonly skillsSnapshot: object }).skillsSnapshot;
    await store.append(ref, [{ type: "message", message: { role: "user", content: "x" } }]);
    const wrong = [
      { ...place, seq: 2 },
      { ...place, seq: 99 },
      { ...place, seq: "1" },
      { ...place, sha256: "0" },
      { ...place, sessionId: "s-2" },
      null,
      [],
      "aside",
    ];
    for (const skills of wrong) {
      const broken = { ref, entry: { sessionId: "s-1", blobsAside: { skillsSnapshot: skills } } };
      expect(await loadEntryBlobs(store, broken)).toEqual({});
    }
    for (const blobsAside of [null, "x", [], 3])
      expect(await loadEntryBlobs(store, { ref, entry: { sessionId: "s-1", blobsAside } })).toEqual({});
    expect(revision).toBeGreaterThan(1);
  });

  it("are not carried into the session after a reset by their places", async () => {
    await using fixture = compatFixture(kind);
    const { store } = fixture;
    await store.save(ref, { sessionId: "s-1", skillsSnapshot }, { ifRevision: null });
    const { entry, revision } = await setBlobsAside(store, ref);
    const next = await store.save(ref, { ...entry, sessionId: "s-2" }, { ifRevision: revision });
    expect(await loadEntryBlobs(store, next)).toEqual({});
  });
});
