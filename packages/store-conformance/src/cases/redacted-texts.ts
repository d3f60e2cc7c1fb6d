import assert from "node:assert/strict";
import { redactRecords } from "@throughline/core";
import { assertRefused, createSession, lineOf, readRecords, readSources, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { forkOf, foundBy } from "../search-tools.ts";
import { assertGone, callDraft, copies, secret } from "./text-copies.ts";

const options = { reason: "a token", texts: [secret] };

export const redactedTextCases: readonly ConformanceCase[] = [
  {
    id: "redacted-texts/inside",
    demand: "a redaction of texts takes them out of the records and their copies, which keep everything else",
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft(`before ${secret} after`, { id: "r1" }), callDraft]);
      for (const [, drafts] of copies) await store.append(ref, drafts);
      // Stores keep a large record apart from the others.
      await store.append(ref, [
        userDraft(`${secret} ${"x".repeat(Math.min(300_000, store.capabilities.limits.recordBytes / 2))}`, {
          id: "r8",
        }),
      ]);
      await store.append(ref, [userDraft("untouched", { id: "r9" })]);
      const before = await readRecords(store, ref);
      const messages = (await store.load(ref))?.messageCount;
      await redactRecords(store, ref, ["r1", "r2", "r8"], options);
      await assertGone(under, store, ref);
      const after = (await readRecords(store, ref)).slice(0, before.length);
      const expected = before.map(({ record }) => JSON.stringify(record).replaceAll(secret, "[redacted]"));
      assert.deepEqual(
        after.map(({ record }) => JSON.stringify(record)),
        expected,
      );
      assert.equal((await store.load(ref))?.messageCount, messages);
    },
  },
  {
    id: "redacted-texts/lines",
    demand: "a redaction of texts takes them out of the lines that records came from, also where JSON escapes them",
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const text = `${secret}\t"quoted"`;
      const spelled = JSON.stringify(text).slice(1, -1);
      const timestamp = "2026-01-01T00:00:00.000Z";
      const record = { ...userDraft("one"), timestamp, parentId: null, sourceFormat: "claude-code" };
      await store.append(ref, [
        { source: `{"elsewhere":"${spelled}","n":1}`, record: { ...record, id: "r1" } },
        { source: Buffer.from(`\u0000${text}`), record: { ...record, id: "r2" } },
        { source: `{"elsewhere":"copied\\u002dsecret\\t\\"quoted\\""}`, record: { ...record, id: "r3" } },
        { source: lineOf("r4", `"text":"${spelled}"`), record: { ...record, id: "r4", text } },
      ]);
      await store.redact(ref, ["r1", "r2", "r3", "r4"], { reason: "a token", texts: [text] });
      await assertGone(under, store, ref);
      const sources = await readSources(store, ref);
      assert.equal(sources[0]?.source, '{"elsewhere":"[redacted]","n":1}', "the rest of the line stays");
      const isDropped = sources.map(({ isSourceCanonical }) => isSourceCanonical);
      assert.deepEqual(isDropped.slice(1, 3), [true, true], "a line that cannot be changed is dropped");
    },
  },
  {
    id: "redacted-texts/search",
    demand: "after a redaction of texts the rest of the record is found, and the texts are not, in a fork as well",
    requires: ({ search, fork }) => search && fork,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("keptword secretword", { id: "r1" }), userDraft("other", { id: "r2" })]);
      await forkOf(store).fork(ref, refOf("b"), { sessionId: "session-b" });
      assert.deepEqual(await foundBy(store, "secretword"), ["session-a/1"]);
      await store.redact(refOf("b"), ["r1"], { reason: "a token", texts: ["secretword"] });
      assert.deepEqual(await foundBy(store, "secretword"), []);
      assert.deepEqual(await foundBy(store, "keptword"), ["session-a/1"]);
      await store.remove(ref);
      assert.deepEqual(await foundBy(store, { text: "secretword", state: "any" }), []);
      assert.deepEqual(await foundBy(store, { text: "keptword", state: "active" }), ["session-b/1"]);
    },
  },
  {
    id: "redacted-texts/empty",
    demand: "a redaction of an empty text is refused, and then redacts nothing",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      await assertRefused(store.redact(ref, ["r1"], { reason: "a token", texts: ["one", ""] }), "INPUT_INVALID");
      assert.ok(JSON.stringify(await readRecords(store, ref)).includes("one"));
    },
  },
];
