import { spawn } from "node:child_process";
import { once } from "node:events";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const child = bundledWorker(new URL("./append-child.ts", import.meta.url));

const newFolder = temporaryFolders();

describe("the locks of a process that writes", () => {
  it.for(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
    "are free at once when it is ended by %s in the middle of a write, and nobody has to wait",
    { tags: ["slow"], timeout: 120_000 },
    async (signal) => {
      const root = newFolder();
      await (await storeWithSession(root)).close();
      for (let round = 0; round < 4; round++) {
        // Records of 3 MB: almost all of its time it holds the lock.
        const writer = spawn(process.execPath, [child, root, `w${round}`, "1000", "3000000"], {
          stdio: ["ignore", "pipe", "ignore"],
        });
        const ended = once(writer, "close");
        await once(writer.stdout, "data");
        await new Promise((resolve) => setTimeout(resolve, 7 * round));
        writer.kill(signal);
        await ended;
        await using store = createJsonlStore({ root, lockTimeoutMs: 2000 });
        const { records } = await store.append(mainRef, [userDraft(`after ${round}`)], {
          entry: { label: `${round}` },
        });
        expect(records).toHaveLength(1);
        expect((await store.load(mainRef))?.entry.label).toBe(`${round}`);
      }
    },
  );

  it("are free after a flush that the disk refused", async () => {
    const root = newFolder();
    await (await storeWithSession(root)).close();
    const faults = faultyFiles();
    await using store = createJsonlStore({ root, files: faults.files });
    await store.load(mainRef);
    faults.failNext("flush", "EIO");
    await expect(store.append(mainRef, [userDraft("x")])).rejects.toMatchObject({ outcome: "unknown" });
    await using other = createJsonlStore({ root, lockTimeoutMs: 2000 });
    expect((await other.append(mainRef, [userDraft("y")])).records).toHaveLength(1);
  });
});
