import { listCheckpoints } from "@throughline/checkpoint";
import { checkpointJson } from "@throughline/http-api/internal/json";
import { printCheckpoint } from "../agent/checkpoint-report.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { resolveSession } from "@throughline/core/internal";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const { ref, sessionId } = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const all = await listCheckpoints(store, ref, { signal });
  const limit = input.options["limit"] as number | undefined;
  const shown = limit === undefined ? all : all.slice(-limit);
  for (const checkpoint of shown) {
    if (output.isJson) await output.object(checkpointJson({ key: ref.key, sessionId }, checkpoint));
    else await printCheckpoint(output, checkpoint);
  }
  if (output.isJson) await output.end(shown.length);
  else if (shown.length === 0) output.note(`${ref.key} has no checkpoints.`);
  else if (shown.length < all.length) output.note(`the newest ${shown.length} of ${all.length}`);
  return 0;
}
