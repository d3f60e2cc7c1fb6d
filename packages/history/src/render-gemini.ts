import { withoutTypeOfOurs } from "./wire-values.ts";
import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayResult, ReplaySource, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** Holds a content of Gemini's generateContent. */
export interface GeminiContent {
  /** States who wrote the content. `user` also holds tool results. */
  readonly role: "user" | "model";
  /** Holds the parts of the content. */
  readonly parts: GeminiPart[];
}

/** Holds a part of a content, with its signature. */
type GeminiPart = GeminiPartData & {
  /** Holds the provider's signature, unchanged; absent if the provider sent none. */
  readonly thoughtSignature?: string;
};

/** Holds the data of a part. Each part has exactly one of these fields, apart from `thought`. */
type GeminiPartData =
  | {
      /** Holds a piece of text or of thinking. */
      readonly text: string;
      /** Is true for thinking; absent otherwise. */
      readonly thought?: true;
    }
  | {
      /** Holds an image or a file as bytes. */
      readonly inlineData: {
        /** States the media type of the bytes. */
        readonly mimeType: string;
        /** Holds the bytes as base64. */
        readonly data: string;
      };
    }
  | {
      /** Holds a file that the provider reads from its address. */
      readonly fileData: {
        /** Holds the address of the file. */
        readonly fileUri: string;
      };
    }
  | {
      /** Holds a tool call of the model. */
      readonly functionCall: {
        /** Names the tool. */
        readonly name: string;
        /** Holds the arguments of the call. */
        readonly args: Readonly<Record<string, unknown>>;
      };
    }
  | {
      /** Holds the result of a tool call. */
      readonly functionResponse: {
        /** Names the tool. The provider matches results by name and order. */
        readonly name: string;
        /** Holds the result as `output`, or as `error` when the call failed. */
        readonly response: Readonly<Record<string, string>>;
      };
    };

/** The service accepts this text in place of a lost signature. */
const signatureStandIn = "skip_thought_signature_validator";

export const geminiMapping: ProviderMapping<GeminiContent> = {
  rules: {
    ...usualRules,
    maxFileBytes: providerLimits.gemini.maxFileBytes,
    maxRequestBytes: providerLimits.gemini.maxRequestBytes,
    apis: new Set(["google-generative-ai", "google-gemini-cli", "google-vertex"]),
    callIds: providerLimits.gemini.callId,
    toolNames: providerLimits.gemini.toolName,
    imageTypes: new Set(["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"]),
    resultsInCallOrder: true,
    mergesReplies: true,
    beginsWithUser: true,
    systemMessages: "user",
    trailingAssistant: () => "continue",
    carryThinking: ({ signature, thinking, redacted }) =>
      !redacted && thinking.trim() !== "" && signature !== null && isBase64(signature) ? { itemId: null } : null,
    bindsThinking: true,
    signsParts: true,
    callSignature: (modelId) => (wantsSignatures(modelId) ? signatureStandIn : null),
  },
  turn: (turn) => contentsOf(turn),
  system: (system) => ({ field: system, first: [] }),
};

/**
 * Renders a context as contents for Gemini. `system` belongs into `systemInstruction`. Calls have no ids in this
 * format, so results follow the order of the calls.
 */
export function renderGemini(context: Context, options: RenderOptions = {}): Rendering<GeminiContent> {
  assertRenderOptions("renderGemini", options);
  return renderWith(context, geminiMapping, options);
}

/** Gemini 3 and later require signatures. An unknown model is assumed to require them too. */
function wantsSignatures(modelId: string | null): boolean {
  return Number(/gemini-(\d+)/.exec(modelId ?? "")?.[1] ?? 3) >= 3;
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

function contentsOf(turn: ReplayTurn): readonly GeminiContent[] {
  if (turn.role === "system") return [{ role: "user", parts: [{ text: turn.text }] }];
  if (turn.role === "assistant") return [{ role: "model", parts: turn.blocks.map(modelPart) }];
  // Responses need their own content, because the service counts them against the preceding calls.
  const answers: readonly GeminiContent[] =
    turn.results.length === 0 ? [] : [{ role: "user", parts: turn.results.map(responsePart) }];
  return turn.blocks.length === 0 ? answers : [...answers, { role: "user", parts: turn.blocks.map(userPart) }];
}

function modelPart(block: AssistantTurn["blocks"][number]): GeminiPart {
  switch (block.type) {
    case "text":
      return signed({ text: block.text }, block.signature ?? null);
    case "thinking":
      return signed({ text: block.thinking, thought: true }, block.signature);
    case "toolCall":
      return signed({ functionCall: { name: block.name, args: block.arguments } }, block.signature);
    case "raw":
      // The caller asked for this type, and the provider wrote the block, so the cast is safe.
      return withoutTypeOfOurs(block.block) as GeminiPart;
  }
}

function signed(part: GeminiPartData, thoughtSignature: string | null): GeminiPart {
  return thoughtSignature === null ? part : { ...part, thoughtSignature };
}

function responsePart({ name, content, isError }: ReplayResult): GeminiPart {
  const text = textOf(content);
  return { functionResponse: { name, response: isError ? { error: text } : { output: text } } };
}

function userPart(block: ReplayUserBlock): GeminiPart {
  switch (block.type) {
    case "text":
      return { text: block.text };
    case "image":
    case "file":
      return sourcePart(block.source);
    case "raw":
      // The caller asked for this type, and the provider wrote the block, so the cast is safe.
      return withoutTypeOfOurs(block.block) as GeminiPart;
  }
}

function sourcePart(source: ReplaySource): GeminiPart {
  if (source.type === "url") return { fileData: { fileUri: source.url } };
  return { inlineData: { mimeType: source.media_type, data: source.data } };
}
