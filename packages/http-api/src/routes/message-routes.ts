import type { MessageDraft } from "@throughline/core/internal";
import { recordUsage, refused } from "@throughline/core/internal";
import { recordsFromMessages as fromAnthropic } from "@throughline/history/anthropic";
import { recordsFromMessages as fromBedrock } from "@throughline/history/bedrock";
import { recordsFromMessages as fromGemini } from "@throughline/history/gemini";
import { recordsFromMessages as fromMistral } from "@throughline/history/mistral";
import { recordsFromMessages as fromOllama } from "@throughline/history/ollama";
import { recordsFromMessages as fromOpenAi } from "@throughline/history/openai";
import { z } from "zod";
import { route, type RouteDefinition } from "../http/route.ts";
import { appendedSchema, messagesSchema } from "../schemas/record.ts";
import { sessionQuery } from "../schemas/session.ts";
import { appendOptionsOf } from "./append-options.ts";
import { appendedAnswer, appendErrors, appendHeaders } from "./record-routes.ts";

type ReadMessages = (
  messages: readonly unknown[],
  options: { readonly model?: string; readonly provider?: string },
) => readonly MessageDraft[];

/**
 * Maps an API to the reader of its messages. One reader handles both OpenAI APIs, because it detects them by their
 * shape.
 */
const readers: ReadonlyMap<string, ReadMessages> = new Map([
  ["anthropic", fromAnthropic],
  ["openai", fromOpenAi],
  ["openai-responses", fromOpenAi],
  ["ollama", fromOllama],
  ["gemini", fromGemini],
  ["mistral", fromMistral],
  ["bedrock", fromBedrock],
]);

export const messageRoutes: readonly RouteDefinition[] = [
  route({
    id: "appendMessages",
    method: "POST",
    path: "/sessions/{session}/messages",
    summary: "Appends messages in the shape of a provider's API, all or none.",
    description:
      "For programs that keep messages as their provider takes and gives them. Everything else is as with `POST …/records`.",
    scope: "write",
    query: z.strictObject({
      ...sessionQuery,
      api: z.enum([...readers.keys()] as [string, ...string[]]).describe("whose shapes the messages have"),
    }),
    body: { schema: messagesSchema },
    headers: appendHeaders,
    answers: { 201: { description: "The acknowledgements, in the order of the records.", schema: appendedSchema } },
    errors: appendErrors,
    handle: async (request) => {
      const { query, body } = request;
      const { messages, usage, model, provider, ...options } = body;
      const at = request.ref();
      const read = readers.get(query.api);
      if (read === undefined) throw refused("INPUT_INVALID", "The API is not known.", { path: "api" });
      const named = { ...(model === undefined ? {} : { model }), ...(provider === undefined ? {} : { provider }) };
      const drafts = withUsage(read(messages, named), usage);
      return appendedAnswer(await request.view.store(at.agentId).append(at, drafts, appendOptionsOf(request, options)));
    },
  }),
];

/** Adds the provider's usage to the newest reply. @throws {ThroughlineError} INPUT_INVALID */
function withUsage(drafts: readonly MessageDraft[], given: unknown): readonly MessageDraft[] {
  if (given === undefined) return drafts;
  const usage = recordUsage(given);
  const at = drafts.findLastIndex(({ message }) => message.role === "assistant");
  const reply = drafts[at];
  if (usage === null) throw refused("INPUT_INVALID", "usage is not in the shape of a provider.", { path: "usage" });
  if (reply === undefined)
    throw refused("INPUT_INVALID", "usage belongs to a reply, and no message is one.", { path: "usage" });
  // The cast is safe: only a reply has usage, and this message is a reply.
  return drafts.with(at, { ...reply, message: { ...reply.message, usage } as MessageDraft["message"] });
}
