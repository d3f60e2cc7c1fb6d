import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandContext, CommandInput } from "../command.ts";
import { demoSteps } from "../demo/demo-steps.ts";
import type { DemoStage, DemoStep } from "../demo/demo-steps.ts";

/** Uses a temporary store that is deleted afterwards. Exits with 1 when a step fails. */
export async function run({ host, output, signal }: CommandContext, input: CommandInput): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "throughline-demo-"));
  const stage: DemoStage = {
    host,
    directory,
    storeUrl: `jsonl:${join(directory, "store")}`,
    workspace: join(directory, "workspace"),
    requests: [],
    isSabotaged: input.options["sabotage"] === true,
    signal,
  };
  const startMs = performance.now();
  const steps: DemoStep[] = [];
  try {
    if (!output.isJson)
      await output.line({ text: "Throughline: what an agent's conversation withstands", style: "bold" });
    for (const step of demoSteps) {
      const done = await step(stage);
      steps.push(done);
      if (output.isJson) continue;
      const mark = done.ok
        ? ({ text: "ok    ", style: "green" } as const)
        : ({ text: "FAILED", style: "red" } as const);
      await output.line("");
      await output.line(`${steps.length}. `, { text: done.name.padEnd(10), style: "bold" }, mark);
      await output.line(`   ${done.summary}`);
      await output.flush();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const ok = steps.every((step) => step.ok);
  const elapsedMs = Math.round(performance.now() - startMs);
  if (output.isJson) await output.object({ kind: "demo", ok, elapsedMs, steps });
  else {
    await output.line("");
    await output.line(ok ? `All as promised, in ${(elapsedMs / 1000).toFixed(1)} s.` : "Not all is as promised.");
  }
  return ok ? 0 : 1;
}
