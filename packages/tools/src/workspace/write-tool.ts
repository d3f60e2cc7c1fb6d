import { Buffer } from "node:buffer";
import { type AgentTool, defineTool } from "@throughline/core";
import { assertApproved, fileSha256 } from "./approved-bytes.ts";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { FileState, Place, WorkspaceFolder } from "./workspace-folder.ts";
import { assertNotAborted, refusing, type Workspace } from "./workspace-tool.ts";

export function createWriteTool({ folder, limits, change, expectBefore }: Workspace): AgentTool {
  return defineTool({
    name: "write",
    description:
      "Writes a text file of the workspace, in place of what was there; folders that are missing are made. " +
      `At most ${limits.writeBytes} bytes. To change a part of a file use edit.`,
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "Path of the file, relative to the workspace." },
        content: { type: "string", description: "The whole content." },
      },
      required: ["path", "content"],
      additionalProperties: false,
    },
    run: (args, { signal, callId }) =>
      refusing(signal, async () => {
        const content = bytesOf(args.content, limits.writeBytes);
        return change(args.path, async (place) => {
          assertNotAborted(signal);
          const before = await stateBefore(folder, place, expectBefore(callId));
          assertNotAborted(signal);
          await folder.replace(place, content, before);
          const what = before === null ? "a new file" : `in place of ${before.sizeBytes} bytes`;
          return {
            content: `Wrote ${quoted(place.path)}: ${content.length} bytes, ${what}.`,
            details: { path: place.path, sizeBytes: content.length, beforeBytes: before?.sizeBytes ?? null },
          };
        });
      }),
  });
}

/** Encodes text for a file. @throws {WorkspaceToolRefusal} when the text is not well-formed or too large */
export function bytesOf(text: string, mostBytes: number): Buffer {
  if (!text.isWellFormed()) throw new WorkspaceToolRefusal("arguments", "The content is not well-formed text.");
  const bytes = Buffer.from(text);
  if (bytes.length <= mostBytes) return bytes;
  throw new WorkspaceToolRefusal(
    "too-large",
    `The content is ${bytes.length} bytes; at most ${mostBytes} are written at once. Nothing was written.`,
  );
}

/** @throws {WorkspaceToolRefusal} when the file does not hold the expected bytes */
async function stateBefore(
  folder: WorkspaceFolder,
  place: Place,
  expected: string | null | undefined,
): Promise<FileState | null> {
  if (expected === undefined) return folder.stateOf(place).catch(missingFile);
  const opened = await folder.openFile(place).catch(missingFile);
  if (opened === null) {
    assertApproved(place.path, null, expected);
    return null;
  }
  const { handle, ...state } = opened;
  try {
    assertApproved(place.path, await fileSha256(handle), expected);
    return state;
  } finally {
    await handle.close();
  }
}

/** When a folder of the path is missing, the file is missing too. */
export function missingFile(error: unknown): null {
  if (error instanceof WorkspaceToolRefusal && error.reason === "missing") return null;
  throw error;
}
