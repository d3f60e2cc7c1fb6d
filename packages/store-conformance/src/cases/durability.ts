import assert from "node:assert/strict";
import { assertRefused, createSession, readSources, readTexts, reopened, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const levels = ["none", "process", "disk"] as const;

export const durabilityCases: readonly ConformanceCase[] = [
  {
    id: "durability/stated",
    demand: "an append says how durable it is: as asked, else the default",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { durabilities, defaultDurability } = store.capabilities;
      assert.equal((await store.append(ref, [userDraft("one")])).durability, defaultDurability);
      for (const durability of durabilities) {
        const result = await store.append(ref, [userDraft("two")], { durability });
        assert.ok(levels.indexOf(result.durability) >= levels.indexOf(durability), "no weaker than asked");
      }
    },
  },
  {
    id: "durability/not-offered",
    demand: "a durability that is not declared is refused",
    requires: ({ durabilities }) => durabilities.length < levels.length,
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const durability of levels.filter((level) => !store.capabilities.durabilities.includes(level))) {
        await assertRefused(store.append(ref, [userDraft("one")], { durability }), "CAPABILITY_UNSUPPORTED");
        await assertRefused(
          store.save(ref, { sessionId: "session-a" }, { ifRevision: 1, durability }),
          "CAPABILITY_UNSUPPORTED",
        );
      }
      assert.deepEqual(await readTexts(store, ref), []);
    },
  },
  {
    id: "durability/reopen",
    demand: "a store opened again holds everything that was acknowledged",
    requires: ({ persistent }) => persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const ref = await createSession(store, "a", { entry: { label: "x", other: { deep: [1] } } });
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" })], {
        windowFromSeq: 2,
        entry: { model: "m" },
      });
      await store.append(ref, [{ type: "leaf", targetId: "r1" }], { rewindTo: "r1" });
      const archived = await store.move(await createSession(store, "b"), { kind: "archive" });
      const [state, records] = [await store.load(ref), await readSources(store, ref)];
      const later = await reopened(under);
      assert.deepEqual(await later.load(ref), state);
      assert.deepEqual(await readSources(later, ref), records);
      assert.deepEqual(await later.load(archived.ref), archived);
      assert.equal((await later.append(ref, [userDraft("three")], { expect: { head: "r1" } })).records[0]?.seq, 4);
    },
  },
  {
    id: "durability/reopen-after-redaction",
    demand: "what was redacted, purged or renamed stays so when the store is opened again",
    requires: ({ persistent }) => persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("secret", { id: "r1" })]);
      await store.redact(ref, ["r1"], { reason: "test" });
      const { ref: renamed } = await store.move(ref, { kind: "rename", key: "agent:main:c" });
      const purged = await createSession(store, "b");
      await store.remove(purged, { purge: true });
      const later = await reopened(under);
      assert.doesNotMatch(JSON.stringify(await readSources(later, renamed)), /secret/);
      assert.deepEqual([await later.load(ref), await later.load(purged)], [null, null]);
    },
  },
  {
    id: "durability/close-with-writes",
    demand: "an append under way when the handle is closed is either refused or there",
    requires: ({ persistent }) => persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const appends = ["one", "two", "three"].map((text) => store.append(ref, [userDraft(text)]));
      const closing = store.close();
      const settled = await Promise.allSettled(appends);
      await closing;
      const texts = await readTexts(await reopened(under), ref);
      for (const [index, text] of ["one", "two", "three"].entries()) {
        if (settled[index]?.status === "fulfilled") assert.ok(texts.includes(text), `${text} was acknowledged`);
      }
    },
  },
];
