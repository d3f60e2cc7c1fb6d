import { type AgentTool, defineTool } from "@throughline/core";
import { sessionRow } from "./session-row.ts";
import type { SessionToolContext } from "./session-tool-context.ts";
import { refusing, wholeNumber } from "./tool-refusal.ts";

const usualSessions = 20;
const mostSessions = 100;

export function createListTool({ sessionsOf, clock }: SessionToolContext): AgentTool {
  return defineTool({
    name: "sessions_list",
    description: "Lists the sessions that you may see, the one used last first, a JSON object on each line.",
    input: {
      type: "object",
      properties: {
        limit: { type: "integer", minimum: 1, maximum: mostSessions, description: `Default: ${usualSessions}.` },
      },
      additionalProperties: false,
    },
    run: (args, call) =>
      refusing(call.signal, async () => {
        const limit = wholeNumber("limit", args.limit, usualSessions, mostSessions);
        const { sessions, isWhole } = await sessionsOf(call).list(limit);
        const rows = sessions.map((state) => sessionRow(state, clock.nowMs()));
        const note = isWhole ? [] : [`[not all sessions are shown: at most ${limit}]`];
        const lines = rows.length === 0 ? ["[there is no session that you may see]"] : rows.map(asLine);
        return { content: [...lines, ...note].join("\n"), details: { sessions: rows, isWhole } };
      }),
  });
}

/**
 * JSON leaves bidirectional marks and other invisible characters unescaped. They could reverse or hide text, so they
 * are escaped here.
 */
function asLine(row: unknown): string {
  return JSON.stringify(row).replaceAll(
    /[\p{Cf}\u2028\u2029\u007f-\u009f]/gu,
    (each) => `\\u${(each.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}
