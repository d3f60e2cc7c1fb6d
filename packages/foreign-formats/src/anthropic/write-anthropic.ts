import { providerMappings } from "@throughline/history/internal";
import { documentWriter } from "../document-writer.ts";
import type { FormatWriter } from "../format-writer.ts";
import { sentMessages } from "../message-texts.ts";

const anthropic = providerMappings.anthropic({});

/** The writer renders the messages that a model would get now, in the form of a request. */
export const anthropicWriter: FormatWriter = documentWriter(
  { head: '{"messages":[', tail: "\n]}\n" },
  (session, options) => sentMessages(session, anthropic, options),
);
