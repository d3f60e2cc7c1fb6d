import { spawn } from "node:child_process";
import process from "node:process";

/** Another process that takes every lock of the agent and keeps it until it is killed. */
export function holdLocks(root: string): Promise<{ readonly pid: number; kill(signal: NodeJS.Signals): void }> {
  const program = `
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
    const folder = ${JSON.stringify(`${root}/agents/main/throughline/locks`)};
    const held = [];
    for (const name of process.getBuiltinModule("node:fs").readdirSync(folder)) {
      const database = new DatabaseSync(folder + "/" + name);
      database.exec("PRAGMA journal_mode=MEMORY; BEGIN IMMEDIATE");
      held.push(database);
    }
    process.stdout.write("held");
    setInterval(() => held.length, 1000);`;
  const running = spawn(process.execPath, ["--no-warnings", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve) => {
    running.stdout.once("data", () => resolve({ pid: running.pid ?? 0, kill: (signal) => void running.kill(signal) }));
  });
}
