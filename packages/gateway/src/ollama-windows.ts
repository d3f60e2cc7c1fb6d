import type { IncomingMessage } from "node:http";
import type { Clock } from "@throughline/core";
import { ollamaWindowTokens, readOllamaWindow } from "@throughline/guard/internal";
import { emptyCalibration, estimateContext, type TokenEstimator } from "@throughline/tokens";
import { requestMessages, type SplitRequest } from "./wire/index.ts";
import { isFields } from "@throughline/core/internal";
import { peekAnswer } from "./peek-answer.ts";

export type AskUpstream = (method: "GET" | "POST", target: string, body: string) => Promise<IncomingMessage>;

const keptMs = 60_000;
const mostAnswerBytes = 8 * 1024 * 1024;
const mostModels = 200;
/** Bounds the token count from above: a token of fewer bytes is rare, so shorter texts need no exact count. */
const leastBytesPerToken = 2;

/**
 * Detects requests that exceed the window of an Ollama model. Ollama silently truncates such a request, unless the
 * request sets `truncate` to false.
 */
export class OllamaWindows {
  readonly #clock: Clock;
  readonly #estimator: TokenEstimator;
  readonly #known = new Map<string, { readonly untilMs: number; readonly show: unknown; readonly ps: unknown }>();

  constructor(clock: Clock, estimator: TokenEstimator) {
    this.#clock = clock;
    this.#estimator = estimator;
  }

  /**
   * Returns the window in tokens only when the request certainly exceeds it. Null leaves the request unchanged, because
   * it may fit or Ollama refuses it.
   */
  async exceeded(upstream: string, split: SplitRequest, ask: AskUpstream): Promise<number | null> {
    const model = split.member("model");
    if (typeof model !== "string" || split.member("truncate") === false) return null;
    const options = split.member("options");
    const asked = isFields(options) && typeof options["num_ctx"] === "number" ? options["num_ctx"] : null;
    if (asked !== null && split.text.length <= asked * leastBytesPerToken) return null;
    const { show, ps } = await this.#facts(upstream, model, ask);
    const window = ollamaWindowTokens(readOllamaWindow(model, show, ps), asked);
    if (window === null || split.text.length <= window * leastBytesPerToken) return null;
    const counter = await this.#estimator.counterFor({ provider: "ollama", modelId: model });
    const tools = split.member("tools");
    const { lowTokens } = estimateContext(
      {
        messages: requestMessages(split).values.filter(isFields),
        system: split.systemParts.join("\n"),
        tools: Array.isArray(tools) ? (tools as readonly unknown[]) : [],
      },
      { counter, calibration: emptyCalibration, actual: null },
    );
    return lowTokens > window ? window : null;
  }

  async #facts(upstream: string, model: string, ask: AskUpstream): Promise<{ show: unknown; ps: unknown }> {
    const name = JSON.stringify([upstream, model]);
    const known = this.#known.get(name);
    if (known !== undefined && known.untilMs > this.#clock.nowMs()) return known;
    const [show, ps] = await Promise.all([
      jsonOf(ask("POST", "/api/show", JSON.stringify({ model }))),
      jsonOf(ask("GET", "/api/ps", "")),
    ]);
    if (this.#known.size >= mostModels) this.#known.clear();
    this.#known.set(name, { untilMs: this.#clock.nowMs() + keptMs, show, ps });
    return { show, ps };
  }
}

/**
 * Returns null when the answer is not usable JSON. Then the window is unknown, and the request is passed on unchanged.
 */
async function jsonOf(asked: Promise<IncomingMessage>): Promise<unknown> {
  try {
    const answer = await asked;
    let bytes = 0;
    const { chunks, state } = await peekAnswer(answer, (chunk) => (bytes += chunk.length) > mostAnswerBytes);
    if (state !== "ended" || answer.statusCode !== 200) {
      answer.destroy();
      return null;
    }
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
  } catch {
    return null;
  }
}
