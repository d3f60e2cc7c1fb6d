import { simulateReadableStream, wrapLanguageModel, type LanguageModel } from "ai";
import * as doubles from "ai/test";
import { type SessionRef, sessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { throughlineMiddleware, type ThroughlineMiddlewareOptions } from "../src/middleware.ts";

export type Part = Readonly<Record<string, unknown>> & { readonly type: string };

export const ref: SessionRef = sessionRef({ key: "agent:main:ai-sdk:one" });

export const usage = {
  inputTokens: { total: 12, noCache: 7, cacheRead: 5, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 1 },
} as const;

export const say = (text: string): readonly Part[] => [{ type: "text", text }];
export const toolCall = (id: string): Part => ({ type: "tool-call", toolCallId: id, toolName: "clock", input: "{}" });

/** A model with these answers, one a call; an error is thrown. What it was sent is kept. */
export interface Scripted {
  readonly prompts: Part[][];
  readonly model: LanguageModel;
}

type Answer = readonly Part[] | Error | (() => Promise<readonly Part[]>);

/** Of the newest provider specification that the SDK has: the suite also runs on other versions than the workspace's. */
const Double = (Reflect.get(doubles, "MockLanguageModelV4") ??
  doubles.MockLanguageModelV3) as typeof doubles.MockLanguageModelV3;

/** A recorded model. */
export function scripted(
  store: SessionStore,
  answers: readonly Answer[],
  options: Partial<ThroughlineMiddlewareOptions> = {},
  chunkDelayInMs: number | null = null,
): Scripted {
  const left = [...answers];
  const prompts: Part[][] = [];
  const next = async (prompt: unknown): Promise<readonly Part[]> => {
    prompts.push(prompt as Part[]);
    const answer = left.shift();
    if (answer === undefined) throw new Error("no answer is left");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer() : answer;
  };
  const finishOf = (parts: readonly Part[]) => {
    const unified = parts.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
    return { unified, raw: unified } as const;
  };
  const double = new Double({
    provider: "acme.chat",
    modelId: "acme-1",
    doGenerate: async ({ prompt }) => {
      const content = await next(prompt);
      const response = { id: "resp-1", modelId: "acme-1-0" };
      return { content: content as never, finishReason: finishOf(content), usage, warnings: [], response };
    },
    doStream: async ({ prompt }) => {
      const content = await next(prompt);
      const chunks = [
        { type: "stream-start", warnings: [] },
        ...content.flatMap((part, at) => streamed(part, String(at))),
        ...(content.some(({ type }) => type === "error")
          ? []
          : [{ type: "finish", usage, finishReason: finishOf(content) }]),
      ];
      return {
        stream: simulateReadableStream({ chunks: chunks as never[], initialDelayInMs: null, chunkDelayInMs }),
      };
    },
  });
  const middleware = throughlineMiddleware({ store, ref, ...options });
  return { prompts, model: wrapLanguageModel({ model: double, middleware }) };
}

function streamed(part: Part, id: string): readonly Part[] {
  const { type, text, providerMetadata } = part;
  if (type !== "text" && type !== "reasoning") return [part];
  const pieces = String(text).match(/.{1,3}/gsu) ?? [];
  const own = providerMetadata === undefined ? {} : { providerMetadata };
  return [
    { type: `${type}-start`, id },
    ...pieces.map((delta) => ({ type: `${type}-delta`, id, delta })),
    { type: `${type}-end`, id, ...own },
  ];
}

export async function recordsOf(store: SessionStore, of: SessionRef = ref): Promise<readonly StoredRecord[]> {
  return (await Array.fromAsync(store.read(of))).flatMap(({ records }) => [...records]);
}

/** What the branch of a session says, a line for each block. */
export async function spoken(store: SessionStore, of: SessionRef = ref): Promise<readonly string[]> {
  const { buildContext } = await import("@throughline/history");
  const state = await store.load(of);
  const { messages } = buildContext(await recordsOf(store, of), { headId: state?.head.headId ?? null });
  return messages.flatMap(({ role, content }) =>
    content.map(
      (block) => `${role}: ${block.type === "text" ? block.text : block.type === "toolCall" ? block.id : block.type}`,
    ),
  );
}
