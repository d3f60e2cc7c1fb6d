import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import type { SessionEvent } from "@throughline/core";
import { type FileSystemKind, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { findingCodesOf, mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { makeFolder, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const canMount = process.getuid?.() === 0 && spawnSync("unshare", ["-m", "true"]).status === 0;

/** Mounts something on a new folder for as long as the work takes; null when that is not possible here. */
function mounted<T>(command: string, work: (folder: string) => T): T | null {
  const folder = makeFolder();
  const isMounted = spawnSync("bash", ["-c", command, "mount", folder]).status === 0;
  try {
    return isMounted ? work(folder) : null;
  } finally {
    if (isMounted) execFileSync("umount", ["-l", folder]);
    spawnSync("rmdir", [folder]);
  }
}

describe.skipIf(process.platform !== "linux")("the file system of a folder", () => {
  it.for([
    ["tmpfs", 'mount -t tmpfs none "$1"', "local"],
    ["proc, which is on no disk", 'mount -t proc none "$1"', "unknown"],
    // Of another user: the kernel answers by itself, and nobody need be behind it.
    [
      "FUSE, which may be anything",
      'exec 3<>/dev/fuse && mount -i -t fuse -o fd=3,rootmode=40000,user_id=65534,group_id=65534 none "$1"',
      "unknown",
    ],
  ] as const)("is told from what the kernel says of %s", ([, command, kind], context) => {
    context.skip(!canMount, "need root, to mount");
    const told = mounted(command, (folder) => nodeFiles.fileSystem(folder));
    context.skip(told === null, "it cannot be mounted here");
    expect(told).toBe(kind);
  });

  it.for(["", "/sessions", "/throughline"])(
    "is asked of the agent's own folder%s, which may be a mount",
    async (part) => {
      const root = newFolder();
      const agent = `${root}/agents/main`;
      mkdirSync(`${agent}${part}`, { recursive: true });
      const events: SessionEvent[] = [];
      const fileSystem = (path: string): FileSystemKind => (path === `${agent}${part}` ? "unknown" : "local");
      const store = await storeWithSession(root, {
        files: { ...nodeFiles, fileSystem },
        onEvent: (event) => void events.push(event),
      });
      await store.append(mainRef, [userDraft("one")]);
      await store.list();
      await store.close();
      expect(findingCodesOf(events)).toEqual(["FILE_SYSTEM_REMOTE"]);
      expect(existsSync(`${agent}/throughline/index.db`)).toBe(false);
    },
  );
});
