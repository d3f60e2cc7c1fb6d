import { type AgentTool, defineTool } from "@throughline/core";
import { readLines, type ReadLines } from "./read-lines.ts";
import { wholeNumber } from "./tool-arguments.ts";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import { refusing, type Workspace } from "./workspace-tool.ts";

const usualLines = 2000;

export function createReadTool({ folder, limits }: Workspace): AgentTool {
  return defineTool({
    name: "read",
    description:
      `Reads a text file of the workspace, at most ${limits.readBytes} bytes at once. ` +
      "A longer file is read in parts: the answer says at which line it goes on.",
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "Path of the file, relative to the workspace." },
        offset: { type: "integer", minimum: 1, description: "The first line to read, from 1. Default: 1." },
        limit: { type: "integer", minimum: 1, description: `How many lines to read. Default: ${usualLines}.` },
      },
      required: ["path"],
      additionalProperties: false,
    },
    run: (args, { signal }) =>
      refusing(signal, async () => {
        const offset = wholeNumber("offset", args.offset, 1);
        const limit = wholeNumber("limit", args.limit, usualLines);
        const place = await folder.locate(args.path);
        const file = await folder.openFile(place);
        try {
          const lines = await readLines(file, place.path, { offset, limit, mostBytes: limits.readBytes }, signal);
          const content = withNotes(lines, place.path, offset, file.sizeBytes);
          const { lineCount, isAtEnd } = lines;
          return { content, details: { path: place.path, offset, lineCount, isAtEnd, sizeBytes: file.sizeBytes } };
        } finally {
          await file.handle.close();
        }
      }),
  });
}

/**
 * A note after the text states what was left out. In that position the note cannot be confused with the file's text.
 */
function withNotes(
  { text, lineCount, isAtEnd, cutBytes, isLossy }: ReadLines,
  path: string,
  offset: number,
  sizeBytes: number,
): string {
  if (lineCount === 0) {
    if (sizeBytes === 0) return `[${quoted(path)} is empty]`;
    throw new WorkspaceToolRefusal("arguments", `${quoted(path)} has fewer than ${offset} lines.`);
  }
  const last = offset + lineCount - 1;
  const notes: string[] = [];
  if (cutBytes > 0) {
    notes.push(
      `line ${offset} is longer than what is read at once: its beginning is shown, the rest of it was left out; line ${offset + 1} can be read on its own`,
    );
  } else if (!isAtEnd) {
    notes.push(
      `lines ${offset} to ${last} of a file of ${sizeBytes} bytes; it goes on: read it with offset ${last + 1}`,
    );
  }
  if (isLossy) notes.push("some bytes are no UTF-8 and are shown as \uFFFD");
  return notes.length === 0 ? text : `${text}${text.endsWith("\n") ? "" : "\n"}[${notes.join("; ")}]`;
}
