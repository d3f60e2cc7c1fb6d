import type { AgentTool, RandomSource } from "@throughline/core";
import {
  assertKnownOptions,
  KeyedQueues,
  optionKinds,
  type OptionTable,
  systemRandom,
} from "@throughline/core/internal";
import { createEditTool } from "./edit-tool.ts";
import { createListTool } from "./list-tool.ts";
import { createReadTool } from "./read-tool.ts";
import { createWorkspaceFolder, type WorkspaceFolder } from "./workspace-folder.ts";
import type { Workspace } from "./workspace-tool.ts";
import { createWriteTool } from "./write-tool.ts";

/** Options of `createWorkspaceTools`. */
export interface WorkspaceToolsOptions {
  /** The folder the tools are confined to. It has to exist when a tool runs. */
  readonly root: string;
  /** Leave out `write` and `edit`. @default false */
  readonly readOnly?: boolean;
  /**
   * Files and folders that no tool may touch, with all they hold, wherever they lie and by whatever path or link they are
   * reached. Relative to `root`; they need not exist. A workspace that lies in one can do nothing. @default []
   */
  readonly deny?: readonly string[];
  /**
   * Files that no tool may touch, with everything beside them whose name is theirs and more, such as a database with its
   * journals and backups. @default []
   */
  readonly denyFiles?: readonly string[];
  /**
   * Names that begin with a dot and may be used all the same, with what is below: `.github`, `.git/hooks`. What is denied
   * stays denied. @default []
   */
  readonly allow?: readonly string[];
  /**
   * The only folders in which `write` and `edit` change files, as names from `root`: `memory`, `notes/daily`. A link does
   * not make another folder writable. @default the whole workspace
   */
  readonly writable?: readonly string[];
  /** Most bytes of a file in one answer. @default 65536 */
  readonly maxReadBytes?: number;
  /** Largest file that is written or edited. @default 1048576 */
  readonly maxWriteBytes?: number;
  /** Most entries in one answer. @default 500 */
  readonly maxListEntries?: number;
  /** Most levels in one answer. @default 5 */
  readonly maxListDepth?: number;
  /** Names temporary files. @default the system's */
  readonly random?: RandomSource;
}

const paths = optionKinds.listOf(optionKinds.filledText);
const atLeastOne = optionKinds.integer({ min: 1 });

const table: OptionTable<WorkspaceToolsOptions> = {
  root: optionKinds.required(optionKinds.filledText),
  readOnly: optionKinds.flag,
  deny: paths,
  denyFiles: paths,
  allow: paths,
  writable: paths,
  maxReadBytes: atLeastOne,
  maxWriteBytes: atLeastOne,
  maxListEntries: atLeastOne,
  maxListDepth: atLeastOne,
  random: optionKinds.objectWith("uuid"),
};

/**
 * `read`, `list`, `write` and `edit` for an agent that must not leave its folder. Whatever path it gives, and whatever
 * links lie in the folder, nothing outside is read, listed or changed, and nothing that is denied or hidden. What is
 * refused is an answer to the model
 * (`isError`, and `details.reason` for programs), never an exception.
 * @throws {ThroughlineError} INPUT_INVALID for an option that is missing, unknown, of another type or out of range; from `run`: ABORTED
 */
export function createWorkspaceTools(options: WorkspaceToolsOptions): readonly AgentTool[] {
  assertKnownOptions<WorkspaceToolsOptions>("createWorkspaceTools", options, table);
  const { readOnly = false, random = systemRandom } = options;
  const folder = createWorkspaceFolder({ ...options, random });
  const workspace: Workspace = {
    folder,
    limits: {
      readBytes: options.maxReadBytes ?? 65_536,
      writeBytes: options.maxWriteBytes ?? 1_048_576,
      listEntries: options.maxListEntries ?? 500,
      listDepth: options.maxListDepth ?? 5,
    },
    change: createChanges(folder),
  };
  const reading = [createReadTool(workspace), createListTool(workspace)];
  return readOnly ? reading : [...reading, createWriteTool(workspace), createEditTool(workspace)];
}

/** Two calls of one reply that change the same file follow each other, in their order: each finds its file before the next. */
function createChanges(folder: WorkspaceFolder): Workspace["change"] {
  const locating = new KeyedQueues();
  const files = new KeyedQueues();
  return async (path, run) => {
    const place = await locating.run("", () => folder.locate(path));
    return files.run(place.names.join("/"), () => run(place));
  };
}
