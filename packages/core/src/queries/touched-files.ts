import { pathArgumentNames, writeToolNames } from "../file-tool-names.ts";
import { type Fields, isFields } from "../json-object.ts";
import type { SessionRecord } from "../record.ts";
import { messageOf } from "./record-text.ts";

/** Describes a call of a tool that writes a file. */
interface FileTouch {
  /** States the path as the call states it. */
  readonly path: string;
  readonly tool: string;
}

/** Programs use these names beside those that compactions know. The names are in lower case. */
const moreWriteTools: readonly string[] = [
  "replace",
  "write_to_file",
  "replace_in_file",
  "str_replace_editor",
  "developer__text_editor",
  "text_editor",
  "search_replace",
  "delete_file",
  "patch",
  "insert_edit_into_file",
  "replace_string_in_file",
  "multi_replace_string_in_file",
];
const editingTools: ReadonlySet<string> = new Set([...writeToolNames, ...moreWriteTools]);
/** Programs use these argument names for the path of a file; the most usual name comes first. */
export const pathNames: readonly string[] = [...pathArgumentNames, "target_file", "absolute_path", "target_notebook"];
/** Tools with several commands name those that only read like this. */
const readingCommands: ReadonlySet<unknown> = new Set(["view", "read"]);
/** Codex runs patches as a command of its shell. */
const shells: ReadonlySet<string> = new Set(["shell", "shell_command", "exec_command", "local_shell", "bash"]);

/** Returns the files that the calls of a record write, in the order of the calls, each path once. */
export function touchedFiles(record: SessionRecord): readonly FileTouch[] {
  const content = messageOf(record)?.["content"];
  if (!Array.isArray(content)) return [];
  const touches = new Map<string, FileTouch>();
  for (const block of content as readonly unknown[]) {
    if (!isFields(block) || block["type"] !== "toolCall" || typeof block["name"] !== "string") continue;
    const tool = block["name"];
    for (const path of writtenPaths(tool, block["arguments"]))
      if (!touches.has(path)) touches.set(path, { path, tool });
  }
  return [...touches.values()];
}

/** Returns the paths that a call with these arguments writes, as it states them. */
export function writtenPaths(tool: string, args: unknown): readonly string[] {
  return pathsOf(tool.toLowerCase(), args).filter((path) => path !== "");
}

function pathsOf(tool: string, given: unknown): readonly string[] {
  const args = isFields(given) ? given : {};
  if (shells.has(tool)) return patchedPaths(commandText(args), true);
  if (!editingTools.has(tool) || readingCommands.has(args["command"])) return [];
  const edits = [args["edits"], args["replacements"], args["files"]].flatMap((list) =>
    Array.isArray(list) ? list.filter(isFields) : [],
  );
  const stated = [args, ...edits].flatMap((fields) => pathNames.map((name) => fields[name]));
  const patches = [args["input"], args["patch"], args["patchText"], args["patch_text"], given];
  return [
    ...stated.filter((path) => typeof path === "string"),
    ...patches.flatMap((text) => (typeof text === "string" ? patchedPaths(text) : [])),
  ];
}

/** Returns the command of a call: a text, or its words one a line. */
export function commandText({ command, cmd }: Fields): string {
  const text = command ?? cmd;
  const parts: readonly unknown[] = Array.isArray(text) ? text : [text];
  return parts.filter((part) => typeof part === "string").join("\n");
}

const patchMarks: readonly string[] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/** @param isCommand true if the text is a command, which may hold no patch at all */
function patchedPaths(text: string, isCommand = false): readonly string[] {
  if (isCommand && !text.includes("apply_patch")) return [];
  if (!text.includes("*** ")) return [];
  return text.split("\n").flatMap((line) => {
    const mark = patchMarks.find((each) => line.startsWith(each));
    return mark === undefined ? [] : [line.slice(mark.length).trim()];
  });
}

/**
 * Returns whether a record writes the wanted file: a path that is the wanted one or ends with it as whole parts. Relative
 * paths are those of the folder of the session.
 */
export function touchesFile(record: SessionRecord, wanted: string, cwd: unknown): boolean {
  const other = partsOf(wanted);
  const isSame = (parts: readonly string[]): boolean => parts.slice(-other.length).join("/") === other.join("/");
  const folder = typeof cwd === "string" ? partsOf(cwd) : [];
  return touchedFiles(record).some(({ path }) => {
    const parts = partsOf(path);
    return other.length > 0 && (isSame(parts) || (!/^(?:[/\\]|[A-Za-z]:)/.test(path) && isSame([...folder, ...parts])));
  });
}

function partsOf(path: string): readonly string[] {
  return path.split(/[/\\]/).filter((part) => part !== "" && part !== ".");
}

/** Returns true for a failed tool result, a failed command, and a reply that ended with an error. */
export function isFailedRecord(record: SessionRecord): boolean {
  const message = messageOf(record);
  if (message?.["role"] !== "assistant") return isFailedTool(record);
  const { stopReason, errorMessage } = message;
  return stopReason === "error" || (typeof errorMessage === "string" && errorMessage !== "");
}

/** Returns true for a failed tool result and a failed command. */
export function isFailedTool(record: SessionRecord): boolean {
  const { role, isError, exitCode } = messageOf(record) ?? {};
  if (role === "bashExecution") return typeof exitCode === "number" && exitCode !== 0;
  return role === "toolResult" && isError === true;
}
