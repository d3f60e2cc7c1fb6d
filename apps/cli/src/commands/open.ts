import { ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { keptPlace } from "../search/last-search.ts";
import { showHeading } from "../search/show-group.ts";
import { shownName } from "../session-names.ts";
import { showPlace } from "../show-place.ts";

interface OpenOptions {
  readonly allBranches?: boolean;
  readonly raw?: boolean;
}

/** Shows a numbered hit of the last search with the records around it. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output, scope, signal } = context;
  const { allBranches, raw } = input.options as OpenOptions;
  const text = input.arguments[0] ?? "";
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (number === 0)
    throw usageError(
      `open takes the number of a hit, not ${quote(text)}.`,
      {},
      "Show a session by its name: `throughline show KEY`.",
    );
  const { agentId, key, archiveId, sessionId, seq } = keptPlace(context, number);
  if (scope.isAgentGiven && agentId !== scope.agentId)
    throw new ThroughlineError("SESSION_NOT_FOUND", `Hit ${number} is in no session of agent ${scope.agentId}.`, {
      details: { number, agentId: scope.agentId },
      remedy: "Leave out --agent, or search again.",
    });
  const store = await context.openStore("read");
  const ref = { namespace: scope.namespace, agentId, key, ...(archiveId === null ? {} : { archiveId }) };
  const state = await store.load(ref, { signal });
  if (state?.sessionId !== sessionId)
    throw new ThroughlineError(
      "SESSION_NOT_FOUND",
      `The session ${quote(sessionId)} of hit ${number} is not at ${quote(key)} any more.`,
      {
        details: { ...ref, sessionId, seq },
        remedy: "Search again: `throughline search WORDS`.",
      },
    );
  if (!output.isJson && raw !== true) {
    await showHeading(context, { hit: state, state, name: await shownName(store, state, signal) });
    await output.line("");
  }
  const shown = await showPlace(context, store, ref, {
    seq,
    hasSideRecords: allBranches === true,
    isRaw: raw === true,
  });
  if (output.isJson) await output.end(shown);
  return 0;
}
