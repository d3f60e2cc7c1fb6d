import { Buffer, isUtf8 } from "node:buffer";
import { type AgentTool, defineTool } from "@throughline/core";
import { replaceText } from "./replace-text.ts";
import { assertText } from "./read-lines.ts";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import { bytesOf } from "./write-tool.ts";
import type { FileState, Place, WorkspaceFolder } from "./workspace-folder.ts";
import { assertNotAborted, refusing, type Workspace } from "./workspace-tool.ts";

export function createEditTool({ folder, limits, change }: Workspace): AgentTool {
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
    run: (args, { signal }) =>
      refusing(signal, async () => {
        const replacement = {
          oldText: args.old_text,
          newText: args.new_text,
          isForAll: args.replace_all ?? false,
        };
        return change(args.path, async (place) => {
          assertNotAborted(signal);
          const { text, state } = await wholeText(folder, place, limits.writeBytes);
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

async function wholeText(
  folder: WorkspaceFolder,
  place: Place,
  mostBytes: number,
): Promise<{ readonly text: string; readonly state: FileState }> {
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
    return { text: Buffer.from(bytes).toString("utf8"), state };
  } finally {
    await handle.close();
  }
}
