import { withoutTypeOfOurs } from "./wire-values.ts";
import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayResult, ReplaySource, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** A content of Gemini's generateContent. */
export interface GeminiContent {
  /** Who wrote the content; `user` also holds results of tools. */
  readonly role: "user" | "model";
  /** The parts of the content. */
  readonly parts: GeminiPart[];
}

/** A part of a content, with its signature. */
type GeminiPart = GeminiPartData & {
  /** The provider's signature, as it was received. Absent where it gave none. */
  readonly thoughtSignature?: string;
};

/** What a part holds. Each has one of these fields, `thought` apart. */
type GeminiPartData =
  | {
      /** A piece of text, or of thinking. */
      readonly text: string;
      /** True for thinking. */
      readonly thought?: true;
    }
  | {
      /** An image or a file, as bytes. */
      readonly inlineData: {
        /** The media type of the bytes. */
        readonly mimeType: string;
        /** The bytes as base64. */
        readonly data: string;
      };
    }
  | {
      /** A file that the provider reads from its address. */
      readonly fileData: {
        /** The address of the file. */
        readonly fileUri: string;
      };
    }
  | {
      /** A tool call of the model. */
      readonly functionCall: {
        /** The name of the tool. */
        readonly name: string;
        /** The arguments of the call. */
        readonly args: Readonly<Record<string, unknown>>;
      };
    }
  | {
      /** The result of a tool call. */
      readonly functionResponse: {
        /** The name of the tool; results are matched by it and by their order. */
        readonly name: string;
        /** The result: `output`, or `error` when the call failed. */
        readonly response: Readonly<Record<string, string>>;
      };
    };

/** What the service takes in place of a signature that cannot be had any more. */
const signatureStandIn = "skip_thought_signature_validator";

export const geminiMapping: ProviderMapping<GeminiContent> = {
  rules: {
    ...usualRules,
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

/** The contents for Gemini; `system` is for `systemInstruction`. Calls carry no ids there: results follow their order. */
export function renderGemini(context: Context, options: RenderOptions = {}): Rendering<GeminiContent> {
  assertRenderOptions("renderGemini", options);
  return renderWith(context, geminiMapping, options);
}

/** From Gemini 3 on; of a model that is not known the stricter is expected. */
function wantsSignatures(modelId: string | null): boolean {
  return Number(/gemini-(\d+)/.exec(modelId ?? "")?.[1] ?? 3) >= 3;
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

function contentsOf(turn: ReplayTurn): readonly GeminiContent[] {
  if (turn.role === "system") return [{ role: "user", parts: [{ text: turn.text }] }];
  if (turn.role === "assistant") return [{ role: "model", parts: turn.blocks.map(modelPart) }];
  // Responses have a content of their own: the service counts them against the calls before.
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
      // As its provider wrote it, of a type that the caller asked for.
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
      // As its provider wrote it, of a type that the caller asked for.
      return withoutTypeOfOurs(block.block) as GeminiPart;
  }
}

function sourcePart(source: ReplaySource): GeminiPart {
  if (source.type === "url") return { fileData: { fileUri: source.url } };
  return { inlineData: { mimeType: source.media_type, data: source.data } };
}
