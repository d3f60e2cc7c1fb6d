import { type AgentTool, defineTool } from "@throughline/core";
import { wholeNumber } from "./tool-arguments.ts";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { FolderEntry, Place } from "./workspace-folder.ts";
import { assertNotAborted, refusing, type Workspace } from "./workspace-tool.ts";

/** The tool names these folders but does not open them: a listing of a project rarely needs their entries. */
const closedFolders: ReadonlySet<string> = new Set([".git", "node_modules"]);
const denied = "  [not for tools]";

export function createListTool(workspace: Workspace): AgentTool {
  const { listEntries, listDepth } = workspace.limits;
  return defineTool({
    name: "list",
    description:
      "Lists a folder of the workspace, with sizes in bytes; folders end in /. " +
      `At most ${listEntries} entries. Inside .git and node_modules only when asked for by path.`,
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "Path of the folder, relative to the workspace. Default: the workspace." },
        depth: { type: "integer", minimum: 1, maximum: listDepth, description: "How many levels to list. Default: 1." },
      },
      additionalProperties: false,
    },
    run: (args, { signal }) =>
      refusing(signal, async () => {
        const path = args.path ?? ".";
        const depth = Math.min(wholeNumber("depth", args.depth, 1), listDepth);
        const listing = new Listing(workspace, signal);
        await listing.add(await workspace.folder.locate(path), "", depth);
        const { lines, notes } = listing;
        const shown = lines.length === 0 ? [`[${quoted(path)} is empty]`] : lines;
        return {
          content: [...shown, ...notes.map((note) => `[${note}]`)].join("\n"),
          details: { path, entries: lines.length, isWhole: notes.length === 0 },
        };
      }),
  });
}

/** Collects the lines of a tree until the limit is reached. */
class Listing {
  readonly lines: string[] = [];
  readonly notes: string[] = [];
  readonly #workspace: Workspace;
  readonly #signal: AbortSignal;

  constructor(workspace: Workspace, signal: AbortSignal) {
    this.#workspace = workspace;
    this.#signal = signal;
  }

  async add(place: Place, prefix: string, depth: number): Promise<void> {
    assertNotAborted(this.#signal);
    const { folder, limits } = this.#workspace;
    const { entries, isWhole } = await folder.list(place, limits.listEntries - this.lines.length);
    for (const entry of entries) {
      if (this.lines.length === limits.listEntries) return this.#cut();
      this.lines.push(lineOf(prefix, entry));
      const isOpened = depth > 1 && entry.kind === "folder" && !entry.isDenied && !closedFolders.has(entry.name);
      if (isOpened) await this.#addBelow(place, `${prefix}${entry.name}`, entry.name, depth - 1);
    }
    if (!isWhole) this.#cut();
  }

  /** A folder that is denied or disappears meanwhile must not end the listing. */
  async #addBelow(parent: Place, path: string, name: string, depth: number): Promise<void> {
    try {
      // The entry was no link when it was listed. If it became a link, the descent refuses it.
      await this.add({ path, names: [...parent.names, name] }, `${path}/`, depth);
    } catch (error) {
      if (!(error instanceof WorkspaceToolRefusal)) throw error;
      this.notes.push(error.message);
    }
  }

  #cut(): void {
    const note = `not all entries are shown: at most ${this.#workspace.limits.listEntries} at once`;
    if (!this.notes.includes(note)) this.notes.push(note);
  }
}

function lineOf(prefix: string, { name, kind, sizeBytes, target, isDenied }: FolderEntry): string {
  const path = shown(`${prefix}${name}`);
  if (kind === "folder") return `${path}/${isDenied ? denied : ""}`;
  if (isDenied) return `${path}${denied}`;
  if (kind === "link") return `${path} -> ${shown(target ?? "?")}`;
  return kind === "file" ? `${path}  ${sizeBytes ?? "?"}` : `${path}  [no regular file]`;
}

/** Writes a name as JSON when its characters could be mistaken for the syntax of the listing. */
function shown(name: string): string {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}"]|^\s|\s$| {2}| -> /u.test(name) || !name.isWellFormed() ? quoted(name) : name;
}
