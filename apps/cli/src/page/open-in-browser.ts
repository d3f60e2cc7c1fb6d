import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { isThere } from "@throughline/config/internal";
import type { CommandContext } from "../command.ts";
import { findProgram } from "../start-program.ts";

type Opening = Pick<CommandContext, "host">;

const openers: Readonly<Record<string, readonly string[]>> = { darwin: ["open"], win32: ["explorer.exe"] };
/** `wslview` opens the browser of Windows, which a program of Linux cannot start by itself. */
const usualOpeners: readonly string[] = ["wslview", "xdg-open"];
/** An opener that cannot open the file ends with an error within this time. */
const refusalMs = 1000;

/**
 * Opens a file or an address in the browser of this desktop. It waits for no browser. Returns why it did not, or null.
 * Other users can read the arguments of a program, so an address with a token goes through `openWithToken`.
 */
export async function openInBrowser({ host }: Opening, target: string): Promise<string | null> {
  const { environment } = host;
  if (!hasDesktop(environment)) return "No desktop was found";
  const names = openers[process.platform] ?? usualOpeners;
  const path = environment["PATH"] ?? "";
  const program = names.map((name) => findProgram(path, name)).find((file) => file !== null);
  if (program === undefined) return `${names.at(-1)} is not on the path`;
  // A browser and its pages get no secret of this command.
  const { THROUGHLINE_TOKEN: _token, ...others } = environment;
  const child = spawn(program, [target], { detached: true, stdio: "ignore", env: others });
  const isRefused = await hasFailed(child);
  child.unref();
  return isRefused ? `${program} could not open it` : null;
}

function hasFailed(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const waited = setTimeout(() => resolve(false), refusalMs);
    child.once("error", () => end(true));
    // The explorer of Windows ends with 1 whatever it opened.
    child.once("exit", (code) => end(code !== 0 && process.platform !== "win32"));
    const end = (isFailed: boolean): void => {
      clearTimeout(waited);
      resolve(isFailed);
    };
  });
}

/** Without a display `xdg-open` starts a browser in the terminal. Over SSH a browser would open on another desk. */
function hasDesktop(environment: CommandContext["host"]["environment"]): boolean {
  const isSet = (name: string): boolean => (environment[name] ?? "") !== "";
  if (isSet("DISPLAY") || isSet("WAYLAND_DISPLAY") || isSet("WSL_DISTRO_NAME")) return true;
  return (process.platform === "darwin" || process.platform === "win32") && !isSet("SSH_CONNECTION");
}

export interface OpenedPage {
  /** Says why no browser was opened; null if one was. */
  readonly problem: string | null;
  /** Removes the file with the token. */
  remove(): void;
}

/**
 * Opens an address with a token. A file that only this user can read leads there, as Jupyter does it. The arguments of
 * the opener and of the browser name that file only.
 */
export async function openWithToken(context: Opening, url: string): Promise<OpenedPage> {
  const folder = mkdtempSync(join(redirectRoot(context.host.userHome), "throughline-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const path = join(folder, "open.html");
    writeFileSync(path, redirectPage(url), { mode: 0o600, flag: "wx" });
    const problem = await openInBrowser(context, path);
    if (problem !== null) remove();
    return { problem, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** A browser from a snap has a /tmp of its own, and reads no hidden folder of the user's home. */
function redirectRoot(userHome: string): string {
  const hasSnaps = process.platform === "linux" && isThere("/snap/bin") && isThere(userHome);
  return hasSnaps ? userHome : tmpdir();
}

function redirectPage(url: string): string {
  const shown = url.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=${shown}">
<title>Throughline</title>
<p><a href="${shown}">Open the page</a></p>
</html>
`;
}
