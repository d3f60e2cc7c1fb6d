import { type Buffer, isUtf8 } from "node:buffer";
import { type AgentTool, defineTool } from "@throughline/core";
import { replaceText, type TextChange } from "./replace-text.ts";
import { assertApproved, bytesSha256 } from "./approved-bytes.ts";
import { assertText } from "./read-lines.ts";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import { bytesOf } from "./write-tool.ts";
import type { FileState, Place, WorkspaceFolder } from "./workspace-folder.ts";
import { assertNotAborted, refusing, type Workspace } from "./workspace-tool.ts";

export function createEditTool({ folder, limits, change, expectBefore }: Workspace): AgentTool {
  return defineTool({
    name: "edit",
    description:
      "Replaces a text in a file of the workspace. The old text has to stand there exactly, white space included, and " +
      "only once, unless all of its places are meant.",
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "Path of the file, relative to the workspace." },
        old_text: { type: "string", description: "The text to replace, with enough around it to stand only once." },
        new_text: { type: "string", description: "The text to put there." },
        replace_all: { type: "boolean", description: "Replace every place. Default: false." },
      },
      required: ["path", "old_text", "new_text"],
      additionalProperties: false,
    },
    run: (args, { signal, callId }) =>
      refusing(signal, async () => {
        const replacement = replacementOf(args);
        return change(args.path, async (place) => {
          assertNotAborted(signal);
          const { bytes, text, state } = await wholeText(folder, place, limits.writeBytes);
          assertApproved(place.path, bytesSha256(bytes), expectBefore(callId));
          const { result, lines } = replaceText(text, replacement, place.path);
          const content = bytesOf(result, limits.writeBytes);
          assertNotAborted(signal);
          await folder.replace(place, content, state);
          const where = lines.length === 1 ? `at line ${lines[0]}` : `at ${lines.length} places`;
          return {
            content: `Edited ${quoted(place.path)} ${where}; it is ${content.length} bytes now.`,
            details: { path: place.path, lines, sizeBytes: content.length, beforeBytes: state.sizeBytes },
          };
        });
      }),
  });
}

interface EditArguments {
  readonly old_text: string;
  readonly new_text: string;
  readonly replace_all?: boolean | undefined;
}

export function replacementOf({ old_text, new_text, replace_all = false }: EditArguments): TextChange {
  return { oldText: old_text, newText: new_text, isForAll: replace_all };
}

interface WholeText {
  readonly bytes: Buffer;
  readonly text: string;
  readonly state: FileState;
}

/** @throws {WorkspaceToolRefusal} for a file that is too large, or no text */
export async function wholeText(folder: WorkspaceFolder, place: Place, mostBytes: number): Promise<WholeText> {
  const { handle, ...state } = await folder.openFile(place);
  try {
    if (state.sizeBytes > mostBytes) {
      const size = `${quoted(place.path)} is ${state.sizeBytes} bytes`;
      throw new WorkspaceToolRefusal(
        "too-large",
        `${size}; files of at most ${mostBytes} are edited. Nothing was changed.`,
      );
    }
    const bytes = await handle.readFile();
    assertText(bytes, place.path, state.sizeBytes);
    // Bytes that are not UTF-8 would be lost when the text is decoded and written back.
    if (!isUtf8(bytes))
      throw new WorkspaceToolRefusal("binary", `${quoted(place.path)} is no UTF-8 text. Nothing was changed.`);
    return { bytes, text: bytes.toString("utf8"), state };
  } finally {
    await handle.close();
  }
}
