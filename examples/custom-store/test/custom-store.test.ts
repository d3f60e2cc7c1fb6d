import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSession, sessionRef, userMessage, type SessionStore } from "@throughline/core";
import { describeStoreConformance, type StoreUnderTest } from "@throughline/store-conformance";
import { describe, expect, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { createAuditedStore } from "../src/audited-store.ts";

function open(): StoreUnderTest {
  const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
  const places = { path: join(folder, "sessions.db"), auditPath: join(folder, "audit.jsonl") };
  const opened: SessionStore[] = [];
  const another = (): SessionStore => {
    opened.push(createAuditedStore(places));
    return opened.at(-1) as SessionStore;
  };
  const store = another();
  return {
    store,
    another: () => Promise.resolve(another()),
    async reopen() {
      await store.close();
      return another();
    },
    async dispose() {
      for (const each of opened) await each.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

describeStoreConformance({ name: "the audited store", runner: kitRunner, open: () => Promise.resolve(open()) });

describe("the audit trail", () => {
  it("has a line for each append, also for one that is repeated", async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
    const auditPath = join(folder, "audit.jsonl");
    const store = createAuditedStore({ path: join(folder, "sessions.db"), auditPath });
    const ref = sessionRef({ key: "agent:main:main" });
    await openSession(store, ref);
    for (const text of ["Hello", "Hello"]) await store.append(ref, [userMessage(text)], { idempotencyKey: "one" });
    await store.close();
    const lines = readFileSync(auditPath, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { readonly replayed: boolean }).replayed)).toEqual([false, true]);
    rmSync(folder, { recursive: true, force: true });
  });
});
