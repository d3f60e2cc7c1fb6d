import { systemRandom } from "@throughline/core/internal";
import type { WorkspaceToolsOptions } from "./create-workspace-tools.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";
import { createWorkspaceFolder } from "./workspace-folder.ts";

type WholeFile =
  | { readonly kind: "file"; readonly bytes: Uint8Array }
  | { readonly kind: "too-large"; readonly sizeBytes: number }
  | { readonly kind: "refused"; readonly reason: string };

const headBytes = 1024;

/**
 * Reads a whole file by the rules of the tools of these options, also while another process swaps links on the way.
 * @param mostBytes returns how many bytes the file may have, by its first bytes
 */
export async function readWholeFile(
  { root, deny, denyFiles, allow }: WorkspaceToolsOptions,
  path: string,
  mostBytes: (head: Uint8Array) => number,
): Promise<WholeFile> {
  try {
    const folder = createWorkspaceFolder({ root, deny, denyFiles, allow, random: systemRandom });
    const { handle, sizeBytes } = await folder.openFile(await folder.locate(path));
    try {
      const head = new Uint8Array(Math.min(headBytes, sizeBytes));
      await handle.read(head, 0, head.length, 0);
      if (sizeBytes > mostBytes(head)) return { kind: "too-large", sizeBytes };
      // A file that grows meanwhile is read up to the size that was allowed.
      const bytes = new Uint8Array(sizeBytes);
      let length = 0;
      while (length < sizeBytes) {
        const { bytesRead } = await handle.read(bytes, length, sizeBytes - length, length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return { kind: "file", bytes: bytes.subarray(0, length) };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof WorkspaceToolRefusal) return { kind: "refused", reason: error.message };
    throw error;
  }
}
