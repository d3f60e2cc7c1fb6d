import { textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { checkOllama } from "../rules/ollama.ts";
import type { Violation } from "../violation.ts";
import { accepted } from "../wire-adapter.ts";
import type { Judgement, WireAdapter, WireAnswer, WireContext } from "../wire-adapter.ts";
import { buildChatLines } from "./build-chat-lines.ts";
import { truncatePrompt, windowOf } from "./truncate-prompt.ts";

const overflow: Violation = {
  status: 400,
  type: "",
  message:
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the context length in settings, or use a model with a longer context length",
};

const usual: Readonly<Record<number, string>> = {
  401: "unauthorized",
  404: "model not found",
  429: "server busy, please try again. maximum pending requests exceeded",
  500: "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details",
  503: "server busy, please try again. maximum pending requests exceeded",
};

function judge(body: JsonObject, context: WireContext, defaultWindow: number): Judgement {
  const model = context.model(textOf(body["model"]));
  const violation = checkOllama({ body, model });
  if (violation) return { violation, kind: "invalid", promptTokens: 0 };
  const prompt = truncatePrompt(body, windowOf(body, model.windowTokens, defaultWindow));
  if (prompt.fits) return accepted(prompt.keptTokens);
  return { violation: overflow, kind: "overflow", promptTokens: prompt.sentTokens };
}

export function createOllamaAdapter(context: WireContext, defaultWindow: number): WireAdapter {
  return {
    api: "ollama",
    streamType: "application/x-ndjson",
    streamFailureStatus: 500,
    authenticate: () => null,
    judge: ({ body }) => judge(body, context, defaultWindow),
    // Ollama streams unless the request declines it.
    streams: (body) => body["stream"] !== false,
    answer({ body }, reply, promptTokens): WireAnswer {
      const { whole, lines } = buildChatLines(body, reply, promptTokens, context);
      return { whole: JSON.stringify(whole), events: lines.map((line) => `${JSON.stringify(line)}\n`) };
    },
    count: (promptTokens) => ({ prompt_eval_count: promptTokens }),
    failure: ({ status, message }) => ({ status, headers: {}, body: JSON.stringify({ error: message }) }),
    failureEvent: ({ message }) => `${JSON.stringify({ error: message })}\n`,
    refusalEvents: () => null,
    usualFailure: (status) => ({ status, type: "", message: usual[status] ?? `status ${status}` }),
  };
}
