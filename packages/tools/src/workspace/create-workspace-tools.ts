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

/** Sets the folder, the access rules and the limits of `createWorkspaceTools`. */
export interface WorkspaceToolsOptions {
  /** Names the folder that the tools are confined to. The folder must exist when a tool runs. */
  readonly root: string;
  /** Leaves out the tools `write` and `edit`. @default false */
  readonly readOnly?: boolean | undefined;
  /**
   * Denies files and folders with everything below them, by whatever path or link a call reaches them. Paths are
   * relative to `root` and need not exist. In a workspace inside a denied folder every call is refused.
   * @default []
   */
  readonly deny?: readonly string[] | undefined;
  /**
   * Denies files and the files beside them whose names extend the denied name, such as the journals and backups of a
   * database.
   * @default []
   */
  readonly denyFiles?: readonly string[] | undefined;
  /**
   * Allows names that begin with a dot, with everything below them: `.github`, `.git/hooks`. Denied paths stay denied.
   * @default []
   */
  readonly allow?: readonly string[] | undefined;
  /**
   * Limits the folders in which `write` and `edit` change files, as paths from `root`: `memory`, `notes/daily`. A link
   * does not make another folder writable.
   * @default the whole workspace
   */
  readonly writable?: readonly string[] | undefined;
  /** Limits the bytes of a file in one answer. @default 65536 */
  readonly maxReadBytes?: number | undefined;
  /** Limits the size of a file that is written or edited, in bytes. @default 1048576 */
  readonly maxWriteBytes?: number | undefined;
  /** Limits the entries in one answer. @default 500 */
  readonly maxListEntries?: number | undefined;
  /** Limits the folder levels in one answer. @default 5 */
  readonly maxListDepth?: number | undefined;
  /**
   * States which bytes a call of `write` or `edit` may replace, by the id of the call: the SHA-256 of the file in hex,
   * or null for no file. With other bytes nothing is written, and the model reads that the file changed.
   * @default undefined for every call: the bytes are not checked
   */
  readonly expectBefore?: ((callId: string) => string | null | undefined) | undefined;
  /** Generates the names of temporary files. @default the system's random source */
  readonly random?: RandomSource | undefined;
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
  expectBefore: optionKinds.callback,
  random: optionKinds.objectWith("uuid"),
};

/**
 * Creates the tools `read`, `list`, `write` and `edit`, which are confined to one folder. Whatever path or link a call
 * uses, the tools touch no file outside of the folder, and no denied or hidden file. A refusal is an answer to the
 * model (`isError`, and `details.reason` for programs), never an exception.
 * @throws {ThroughlineError} INPUT_INVALID for an option that is missing, unknown, of another type or out of range;
 *   from `run`: ABORTED
 */
export function createWorkspaceTools(options: WorkspaceToolsOptions): readonly AgentTool[] {
  assertKnownOptions<WorkspaceToolsOptions>("createWorkspaceTools", options, table);
  const { readOnly = false } = options;
  const workspace = openWorkspace(options);
  const reading = [createReadTool(workspace), createListTool(workspace)];
  return readOnly ? reading : [...reading, createWriteTool(workspace), createEditTool(workspace)];
}

/** Returns what the tools share: the folder with its rules, and the limits. */
export function openWorkspace(options: WorkspaceToolsOptions): Workspace {
  const { random = systemRandom } = options;
  const folder = createWorkspaceFolder({ ...options, random });
  return {
    folder,
    limits: {
      readBytes: options.maxReadBytes ?? 65_536,
      writeBytes: options.maxWriteBytes ?? 1_048_576,
      listEntries: options.maxListEntries ?? 500,
      listDepth: options.maxListDepth ?? 5,
    },
    change: createChanges(folder),
    expectBefore: options.expectBefore ?? (() => undefined),
  };
}

/**
 * Two calls of one reply may change the same file. They run in order, so that each sees the result of the one before.
 */
function createChanges(folder: WorkspaceFolder): Workspace["change"] {
  const locating = new KeyedQueues();
  const files = new KeyedQueues();
  return async (path, run) => {
    const place = await locating.run("", () => folder.locate(path));
    return files.run(place.names.join("/"), () => run(place));
  };
}
