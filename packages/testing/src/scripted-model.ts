import type { AssistantMessage, ChatDelta, ChatModel, ChatReply, ChatRequest, Clock, Usage } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import {
  assertKnownOptions,
  isFields,
  optionKinds,
  type OptionTable,
  portKinds,
  refused,
  type SessionModel,
  systemClock,
} from "@throughline/core/internal";
import { pieces } from "./simulated-reply.ts";

/** Scripts one answer of the model. The parts are streamed in this order: thinking, text, output, calls. */
interface ScriptedReply {
  /** Holds the model's thinking. */
  readonly thinking?: string | undefined;
  /** Holds the text. */
  readonly text?: string | undefined;
  /**
   * Holds a structured answer. It is sent as JSON to a request with `output`, else as a call of the tool that the
   * request forces, else of its last tool.
   */
  readonly output?: unknown;
  /** Lists tool calls. */
  readonly calls?:
    | readonly {
        /** Names the tool. */
        readonly name: string;
        /** Holds the arguments. @default {} */
        readonly arguments?: Readonly<Record<string, unknown>> | undefined;
        /** Identifies the call. @default `call_1`, `call_2`, … in the order of the script */
        readonly id?: string | undefined;
      }[]
    | undefined;
  /** Splits the text of streamed answers into pieces of this many characters. @default one piece */
  readonly pieceLength?: number | undefined;
  /** Sets the wait before the answer, in milliseconds. An abort ends it. @default 0 */
  readonly delayMs?: number | undefined;
  /** Sets the wait before each piece, in milliseconds. @default 0 */
  readonly pieceDelayMs?: number | undefined;
  /** States why the answer ended, in the words of the record format. @default `toolUse` with calls, else `stop` */
  readonly stopReason?: string | undefined;
  /** Holds the tokens that the provider would report. @default none */
  readonly usage?: Usage | undefined;
  /** Rejects with this error; a text arrives before, in part or whole. @default none */
  readonly error?: unknown;
}

/** Holds what a step or the function of a step gives. */
type ScriptedStep = string | ScriptedReply | Error;

/** Holds a step of the script: a text, an answer, an error, or a function that makes one from the request. */
type ScriptStep = ScriptedStep | ((request: ScriptedRequest) => ScriptedStep | Promise<ScriptedStep>);

/** Holds a request as the model received it, in a copy. */
interface ScriptedRequest extends Omit<ChatRequest, "signal" | "onDelta" | "onPartial" | "onWait"> {
  /** Counts the requests, from 1. */
  readonly number: number;
}

/** Sets the identity and the abilities of a scripted model. */
interface ScriptedModelOptions {
  /** Names the wire shape of the messages in `requests`. @default "anthropic" */
  readonly api?: string | undefined;
  /** Names the provider. @default "scripted" */
  readonly provider?: string | undefined;
  /** Names the model. @default "scripted" */
  readonly modelId?: string | undefined;
  /** Sets the window, in tokens. @default 200000 */
  readonly windowTokens?: number | undefined;
  /** States whether the model has a JSON mode. Without one, a tool takes a structured answer. @default true */
  readonly jsonMode?: boolean | undefined;
  /** Supplies the waits. @default the system clock */
  readonly clock?: Clock | undefined;
}

/** Answers by script, in the process of the test. */
interface ScriptedModel extends SessionModel {
  /** Holds the requests in the order in which they came. */
  readonly requests: readonly ScriptedRequest[];
  /** Counts the steps that no request has used. A test that expects the whole script compares it with 0. */
  readonly stepsLeft: number;
}

const table: OptionTable<ScriptedModelOptions> = {
  api: optionKinds.filledText,
  provider: optionKinds.filledText,
  modelId: optionKinds.filledText,
  windowTokens: optionKinds.integer({ min: 1 }),
  jsonMode: optionKinds.flag,
  clock: portKinds.clock,
};

/**
 * Creates a model that answers by script, without a network. Each request uses one step. A request behind the end of
 * the script fails with MODEL_FAILED, and the error states which call it was.
 *
 * @param script the steps in order
 * @returns the `model` option of `createSessions`; its `chat` is a `ChatModel`, and `requests` holds what it received
 * @throws {ThroughlineError} INPUT_INVALID for a step or an option that is unknown or of another type
 * @example
 * const model = scriptedModel([{ calls: [{ name: "weather", arguments: { city: "Graz" } }] }, "It rains in Graz."]);
 * const sessions = createSessions({ store: createMemoryStore(), model, tools: [weather] });
 */
export function scriptedModel(script: readonly ScriptStep[], options: ScriptedModelOptions = {}): ScriptedModel {
  assertKnownOptions<ScriptedModelOptions>("scriptedModel", options, table);
  for (const [index, step] of script.entries()) assertStep(step, index);
  return new ScriptModel(script, options);
}

/** Requests and steps are getters of the class, because the options of a model take no further fields. */
class ScriptModel implements ScriptedModel {
  readonly chat: ChatModel;
  readonly modelId: string;
  readonly windowTokens: number;
  readonly #script: readonly ScriptStep[];
  readonly #requests: ScriptedRequest[] = [];
  readonly #clock: Clock;
  #calls = 0;

  constructor(script: readonly ScriptStep[], options: ScriptedModelOptions) {
    const { api = "anthropic", provider = "scripted", jsonMode = true } = options;
    this.#script = script;
    this.#clock = options.clock ?? systemClock;
    this.modelId = options.modelId ?? "scripted";
    this.windowTokens = options.windowTokens ?? 200_000;
    this.chat = {
      provider,
      api,
      toolChoices: ["none", "required", "tool"],
      acceptsOutput: () => jsonMode,
      chat: (request) => this.#answer(request),
    };
  }

  get requests(): readonly ScriptedRequest[] {
    return this.#requests;
  }

  get stepsLeft(): number {
    return Math.max(0, this.#script.length - this.#requests.length);
  }

  async #answer(request: ChatRequest): Promise<ChatReply> {
    const { signal, onDelta: _onDelta, onPartial: _onPartial, onWait: _onWait, ...given } = request;
    const received: ScriptedRequest = { ...structuredClone(given), number: this.#requests.length + 1 };
    this.#requests.push(received);
    const step = this.#script[received.number - 1];
    if (step === undefined) throw notScripted(received, this.#script.length);
    const made = typeof step === "function" ? await step(received) : step;
    if (typeof step === "function") assertStep(made, received.number - 1);
    if (made instanceof Error) throw made;
    const reply = typeof made === "string" ? { text: made } : made;
    if (reply.delayMs !== undefined) await this.#clock.sleep(reply.delayMs, signal);
    const { api, provider } = this.chat;
    return answer(reply, request, { api, provider, clock: this.#clock, nextCallId: () => `call_${++this.#calls}` });
  }
}

interface Answering {
  readonly api: string;
  readonly provider: string;
  readonly clock: Clock;
  readonly nextCallId: () => string;
}

async function answer(reply: ScriptedReply, request: ChatRequest, answering: Answering): Promise<ChatReply> {
  const { signal, onDelta, onPartial } = request;
  const { clock } = answering;
  const { pieceLength, pieceDelayMs, error } = reply;
  const parts = partsOf(reply, request, answering.nextCallId);
  const message = messageOf(parts, reply, request, answering);
  let arrived = "";
  try {
    for (const delta of deltasOf(parts, pieceLength)) {
      if (pieceDelayMs !== undefined) await clock.sleep(pieceDelayMs, signal);
      if (signal?.aborted === true) throw new ThroughlineError("ABORTED", "The call was aborted.");
      if (delta.type === "text") arrived += delta.text;
      onDelta?.(delta);
    }
    if (error !== undefined) throw error;
  } catch (cause) {
    const stopReason = signal?.aborted === true ? "aborted" : "error";
    if (arrived !== "") onPartial?.({ ...message, content: [{ type: "text", text: arrived }], stopReason });
    throw cause;
  }
  return { message, stopReason: message.stopReason ?? "stop", usage: reply.usage ? { ...reply.usage } : null };
}

type Content = Exclude<AssistantMessage["content"], string>;

function partsOf(reply: ScriptedReply, request: ChatRequest, nextCallId: () => string): Content {
  const { thinking, text, output, calls = [] } = reply;
  const answeringCalls = output === undefined ? [] : outputCalls(output, request);
  const isJson = output !== undefined && answeringCalls.length === 0;
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking" as const, thinking }]),
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...(isJson ? [{ type: "text" as const, text: JSON.stringify(output) }] : []),
    ...[...answeringCalls, ...calls].map(({ id = nextCallId(), name, arguments: args = {} }) => ({
      type: "toolCall" as const,
      id,
      name,
      arguments: { ...args },
    })),
  ];
}

function outputCalls(output: unknown, request: ChatRequest): NonNullable<ScriptedReply["calls"]> {
  const { tools = [], toolChoice } = request;
  const name = typeof toolChoice === "object" ? toolChoice.tool : tools.at(-1)?.name;
  if (request.output !== undefined || name === undefined || !isFields(output)) return [];
  return [{ name, arguments: output }];
}

function messageOf(
  content: Content,
  { stopReason, usage }: ScriptedReply,
  { modelId }: ChatRequest,
  { api, provider }: Answering,
): AssistantMessage {
  const hasCalls = content.some(({ type }) => type === "toolCall");
  return {
    role: "assistant",
    content,
    api,
    provider,
    model: modelId,
    ...(usage === undefined ? {} : { usage }),
    stopReason: stopReason ?? (hasCalls ? "toolUse" : "stop"),
  };
}

function deltasOf(content: Content, pieceLength: number | undefined): readonly ChatDelta[] {
  return content.flatMap((part): readonly ChatDelta[] => {
    const { type, ...fields }: Readonly<Record<string, unknown>> = { ...part };
    if (type === "toolCall") return [{ type: "tool-call", id: String(fields["id"]), name: String(fields["name"]) }];
    if (type !== "text" && type !== "thinking") return [];
    const text = String(fields[type]);
    const parts = pieceLength === undefined ? [text] : pieces(text, pieceLength);
    return parts.map((piece) => ({ type, text: piece }));
  });
}

/** A typing error in a script would else look like an empty answer of the model. */
const knownFields = new Set(
  "thinking text output calls pieceLength delayMs pieceDelayMs stopReason usage error".split(" "),
);

function assertStep(step: unknown, index: number): void {
  if (typeof step === "string" || typeof step === "function" || step instanceof Error) return;
  const unknown = isFields(step) ? Object.keys(step).find((name) => !knownFields.has(name)) : undefined;
  if (isFields(step) && unknown === undefined && Object.keys(step).length > 0) return;
  const problem = unknown === undefined ? "is no step" : `has the unknown field ${JSON.stringify(unknown)}`;
  throw refused("INPUT_INVALID", `scriptedModel(): step ${index + 1} ${problem}.`, {
    argument: `script[${index}]`,
    expected: `a text, an Error, a function, or an object with ${[...knownFields].join(", ")}`,
  });
}

function notScripted({ number, messages }: ScriptedRequest, steps: number): ThroughlineError {
  const last = JSON.stringify(messages.at(-1)) ?? "none";
  const shown = last.length > 300 ? `${last.slice(0, 300)}…` : last;
  const count = steps === 1 ? "1 step" : `${steps} steps`;
  const message = `scriptedModel: call ${number} is not scripted; the script has ${count}. The last message of the call: ${shown.toWellFormed()}`;
  return new ThroughlineError("MODEL_FAILED", message, {
    details: { call: number, steps },
    remedy: `Add step ${number} to the script.`,
  });
}
