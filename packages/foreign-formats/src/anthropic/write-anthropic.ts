import { providerMappings } from "@throughline/history/internal";
import { sentMessages } from "../message-texts.ts";
import type { FormatWriter } from "../format-writer.ts";

const anthropic = providerMappings.anthropic({});

/** Writes what a model would be sent now, as the messages of a request. */
export const anthropicWriter: FormatWriter = {
  writesHistory: false,
  *write(session, options) {
    for (const message of sentMessages(session, anthropic, options)) yield JSON.stringify(message);
  },
  frame: () => ({ head: '{"messages":[', tail: "\n]}\n" }),
  sessionId: ({ sessionId }) => sessionId,
  path: ({ sessionId }) => [`${sessionId}.json`],
  resume: null,
};
