import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { homeOf } from "@throughline/agent/internal";
import { ThroughlineError } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import type { CommandContext } from "../../command.ts";
import { terminalSafe } from "../../terminal-safe.ts";

/**
 * Opens a text in the person's editor and returns what it became. The file lies in the home. Only this person can read it,
 * and it is removed afterwards.
 * @throws {ThroughlineError} USAGE for an editor that fails; the text is as before
 */
export async function editText(context: CommandContext, text: string): Promise<string> {
  const { environment } = context.host;
  const editor =
    [environment["VISUAL"], environment["EDITOR"], "vi"].find((name) => (name ?? "").trim() !== "") ?? "vi";
  const home = homeOf(context);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const path = join(home, `edited-${systemRandom.uuid()}.md`);
  try {
    writeFileSync(path, text, { mode: 0o600, flag: "wx" });
    const problem = await run(editor, path);
    if (problem !== null)
      throw new ThroughlineError("USAGE", `The editor ${editor} ${problem}. The text is as before.`);
    return terminalSafe(
      readFileSync(path, "utf8")
        .replace(/^\uFEFF/, "")
        .replaceAll("\r\n", "\n"),
    ).trimEnd();
  } finally {
    rmSync(path, { force: true });
  }
}

/** The variable may hold arguments, such as `code --wait`, so a shell reads it. */
function run(editor: string, path: string): Promise<string | null> {
  const isWindows = process.platform === "win32";
  const child = isWindows
    ? spawn(`${editor} "${path}"`, { shell: true, stdio: "inherit" })
    : spawn("sh", ["-c", `${editor} "$1"`, "sh", path], { stdio: "inherit" });
  return new Promise((resolve) => {
    child.on("error", (error) => resolve(`could not be started: ${error.message}`));
    child.on("close", (code, signal) => resolve(code === 0 ? null : `ended with ${code ?? signal ?? "an error"}`));
  });
}
