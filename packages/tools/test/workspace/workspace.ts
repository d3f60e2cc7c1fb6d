import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { AgentToolResult } from "@throughline/core";
import { createWorkspaceTools, type WorkspaceToolsOptions } from "../../src/workspace/create-workspace-tools.ts";

/** A folder `inside` with files, beside a folder `outside` that no tool may touch. */
export interface TestWorkspace extends AsyncDisposable {
  readonly root: string;
  readonly outside: string;
  /** Runs a tool; a string result is one with content. */
  run(name: string, args: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<AgentToolResult>;
  /** The reason of the refusal; fails when the tool did not refuse. */
  refusal(name: string, args: Readonly<Record<string, unknown>>): Promise<string>;
}

export async function openWorkspace(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options: Partial<WorkspaceToolsOptions> = {},
): Promise<TestWorkspace> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "throughline-workspace-")));
  const root = join(folder, "inside");
  const outside = join(folder, "outside");
  await mkdir(root);
  await mkdir(outside);
  await writeFile(join(outside, "secret.txt"), "the secret\n");
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  const tools = new Map(createWorkspaceTools({ root, ...options }).map((tool) => [tool.definition.name, tool]));
  const run: TestWorkspace["run"] = async (name, args, signal = new AbortController().signal) => {
    const tool = tools.get(name);
    if (tool === undefined) throw new Error(`There is no tool ${name}.`);
    const result = await tool.run(args, { signal, callId: "call_1" });
    return typeof result === "string" ? { content: result } : result;
  };
  return {
    root,
    outside,
    run,
    async refusal(name, args) {
      const { isError, details, content } = await run(name, args);
      if (isError !== true) throw new Error(`${name} did not refuse: ${String(content)}`);
      // The model's own words may come back to it; nothing else tells where the workspace lies.
      if (String(content).replace(JSON.stringify(args["path"]), "").includes(folder))
        throw new Error(`The refusal tells where the workspace lies: ${String(content)}`);
      return String((details as { readonly reason?: unknown }).reason);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
