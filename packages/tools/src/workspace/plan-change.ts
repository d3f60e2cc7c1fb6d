import { Buffer, isUtf8 } from "node:buffer";
import { bytesSha256, fileSha256 } from "./approved-bytes.ts";
import { openWorkspace, type WorkspaceToolsOptions } from "./create-workspace-tools.ts";
import { replacementOf, wholeText } from "./edit-tool.ts";
import { isDelicateFile } from "./delicate-files.ts";
import { replaceText } from "./replace-text.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { Place } from "./workspace-folder.ts";
import type { Workspace } from "./workspace-tool.ts";
import { bytesOf, missingFile } from "./write-tool.ts";

/** States what a call of `write` or `edit` would do to the file, as it is now. */
export interface PlannedChange {
  readonly kind: "change";
  /** Holds the path from the workspace, after every link. */
  readonly path: string;
  /** Is null where no file is, and for a file that is no text or too large to be shown. */
  readonly before: string | null;
  readonly after: string;
  /** Counts the bytes of the file; null where no file is. */
  readonly beforeBytes: number | null;
  readonly beforeSha256: string | null;
  readonly afterSha256: string;
  /** Is true for files that start programs or hold keys, and for paths that lead through a link. */
  readonly isDelicate: boolean;
}

/** The tool would refuse the call with this text. */
interface RefusedChange {
  readonly kind: "refused";
  /** Holds the path from the workspace; null for a path that leads nowhere in it. */
  readonly path: string | null;
  readonly reason: string;
}

interface ChangeCall {
  readonly name: string;
  /** They match the schema of the tool. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Returns null for calls that change no file. */
export type PlanChange = (call: ChangeCall) => Promise<PlannedChange | RefusedChange | null>;

/** Creates a function that states what a call would do, by the same rules as the tools of these options. */
export function createChangePlanner(options: WorkspaceToolsOptions): PlanChange {
  const workspace = openWorkspace(options);
  return async ({ name, arguments: input }) => {
    if (name !== "write" && name !== "edit") return null;
    let path: string | null = null;
    try {
      const written = String(input["path"]);
      const place = await workspace.folder.locate(written);
      path = place.names.join("/");
      const change =
        name === "write" ? await planWrite(workspace, place, input) : await planEdit(workspace, place, input);
      const isDelicate = isDelicateFile(place.names) || isThroughLink(written, place);
      return { kind: "change", path, ...change, isDelicate };
    } catch (error) {
      if (error instanceof WorkspaceToolRefusal) return { kind: "refused", path, reason: error.message };
      throw error;
    }
  };
}

type Change = Omit<PlannedChange, "kind" | "path" | "isDelicate">;

async function planEdit(
  { folder, limits }: Workspace,
  place: Place,
  input: Readonly<Record<string, unknown>>,
): Promise<Change> {
  const { bytes, text, state } = await wholeText(folder, place, limits.writeBytes);
  const { result } = replaceText(text, replacementOf(input as never), place.path);
  const after = bytesOf(result, limits.writeBytes);
  return {
    before: text,
    after: result,
    beforeBytes: state.sizeBytes,
    beforeSha256: bytesSha256(bytes),
    afterSha256: bytesSha256(after),
  };
}

async function planWrite(
  { folder, limits }: Workspace,
  place: Place,
  input: Readonly<Record<string, unknown>>,
): Promise<Change> {
  const after = String(input["content"]);
  const afterSha256 = bytesSha256(bytesOf(after, limits.writeBytes));
  const opened = await folder.openFile(place).catch(missingFile);
  if (opened === null) return { before: null, after, beforeBytes: null, beforeSha256: null, afterSha256 };
  const { handle, sizeBytes } = opened;
  try {
    if (sizeBytes > limits.writeBytes)
      return { before: null, after, beforeBytes: sizeBytes, beforeSha256: await fileSha256(handle), afterSha256 };
    const bytes = await handle.readFile();
    const before = isUtf8(bytes) && !bytes.includes(0) ? Buffer.from(bytes).toString("utf8") : null;
    return { before, after, beforeBytes: bytes.length, beforeSha256: bytesSha256(bytes), afterSha256 };
  } finally {
    await handle.close();
  }
}

/** The names after every link differ from the names as written. */
function isThroughLink(path: string, { names }: Place): boolean {
  const written = path.split(/[\\/]+/).filter((name) => name !== "" && name !== ".");
  return written.includes("..") || written.slice(-names.length).join("/") !== names.join("/");
}
