import { execFileSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { type Files, nodeFiles } from "../src/files.ts";
import { mainRef, storeWithSession, type userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const scope = { namespace: "", agentId: "main" };

const fileDraft = (fileId: string, id?: string): ReturnType<typeof userDraft> => ({
  ...(id === undefined ? {} : { id }),
  type: "message",
  message: { role: "user", content: [{ type: "file", fileId }] },
});

async function put(store: SessionStore, text: string): Promise<string> {
  const content = async function* (): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode(text);
  };
  return (await store.files!.put(scope, content())).id;
}

/** Runs the work once, when the store has noted the references of an append and does not hold a lock yet. */
function afterNote(work: () => void): Files {
  let step: "waiting" | "noted" | "done" = "waiting";
  return {
    ...nodeFiles,
    rename(from, to) {
      nodeFiles.rename(from, to);
      if (step === "waiting" && to.includes("references")) step = "noted";
    },
    facts(path) {
      if (step === "noted" && path.endsWith(".jsonl")) {
        step = "done";
        work();
      }
      return nodeFiles.facts(path);
    },
  };
}

function redactElsewhere(root: string, id: string): void {
  const script = join(import.meta.dirname, "redact-once.ts");
  execFileSync(process.execPath, ["--conditions=@throughline/source", script, root, id]);
}

async function listed(store: SessionStore): Promise<readonly { readonly id: string; readonly references: number }[]> {
  return (await Array.fromAsync(store.files!.list(scope))).flat();
}

describe("a redaction of another process between the note of a file and the append that names it", () => {
  it("refuses the append when it deleted the file", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    let redactions = 0;
    const files = afterNote(() => {
      redactions += 1;
      redactElsewhere(root, "r1");
    });
    let id = "";
    {
      await using first = createJsonlStore({ root });
      id = await put(first, "of a record that is redacted");
      await first.append(mainRef, [fileDraft(id, "r1")]);
      await first.append(mainRef, [fileDraft(await put(first, "of another record"), "r2")]);
    }
    await using store = createJsonlStore({ root, files });
    const late = await put(store, "of the append");
    await expect(store.append(mainRef, [fileDraft(late), fileDraft(id)])).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
      outcome: "not-applied",
    });
    expect(redactions).toBe(1);
    // No record names a file that is not there.
    for (const { references } of (await listed(store)).filter((file) => file.id === id)) expect(references).toBe(0);
    await store.append(mainRef, [fileDraft(await put(store, "of the append"))]);
    expect((await listed(store)).filter((file) => file.references > 0)).toHaveLength(2);
  });

  it("lets the append name a file that it did not delete, and counts it", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const other = { ...mainRef, key: "agent:main:other" };
    let id = "";
    {
      await using first = createJsonlStore({ root });
      id = await put(first, "of two sessions");
      await first.append(mainRef, [fileDraft(await put(first, "redacted"), "r1")]);
      await first.save(other, { sessionId: "other" }, { ifRevision: null });
      await first.append(other, [fileDraft(id)]);
    }
    await using store = createJsonlStore({ root, files: afterNote(() => redactElsewhere(root, "r1")) });
    await store.append(mainRef, [fileDraft(id)]);
    expect(await listed(store)).toMatchObject([{ id, references: 2 }]);
    await store.remove(other, { purge: true });
    expect(await listed(store)).toMatchObject([{ id, references: 1 }]);
    await store.remove(mainRef, { purge: true });
    expect(await listed(store)).toEqual([]);
  });
});
