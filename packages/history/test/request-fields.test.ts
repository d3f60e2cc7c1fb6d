import type Anthropic from "@anthropic-ai/sdk";
import type { GenerateContentConfig } from "@google/genai";
import type { ChatRequest as OllamaRequest } from "ollama";
import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { checkBedrockConverse, checkGemini, checkMistral } from "@throughline/testing/internal";
import { requestFields } from "@throughline/history";

const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const output = { name: "answer", schema };
const tool = { tool: "look" };
const open = { type: "object", additionalProperties: { type: "string" } };

describe("requestFields", () => {
  it("gives Anthropic its choices and its format", () => {
    const expected: Pick<Anthropic.MessageCreateParams, "tool_choice" | "output_config"> = {
      tool_choice: { type: "tool", name: "look" },
      output_config: { format: { type: "json_schema", schema } },
    };
    expect(requestFields("anthropic", { toolChoice: tool, output })).toEqual(expected);
    expect(requestFields("anthropic", { toolChoice: "required" })).toEqual({ tool_choice: { type: "any" } });
    expect(requestFields("anthropic", { toolChoice: "none" })).toEqual({ tool_choice: { type: "none" } });
  });

  it("gives both APIs of OpenAI theirs", () => {
    const chat: Pick<OpenAI.ChatCompletionCreateParams, "tool_choice" | "response_format"> = {
      tool_choice: { type: "function", function: { name: "look" } },
      response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    };
    expect(requestFields("openai", { toolChoice: tool, output })).toEqual(chat);
    const responses: Pick<OpenAI.Responses.ResponseCreateParams, "tool_choice" | "text"> = {
      tool_choice: { type: "function", name: "look" },
      text: { format: { type: "json_schema", name: "answer", schema, strict: true } },
    };
    expect(requestFields("openai-responses", { toolChoice: tool, output })).toEqual(responses);
  });

  it("gives Gemini a function calling config that its rules accept", () => {
    const expected: GenerateContentConfig = {
      toolConfig: { functionCallingConfig: { mode: "ANY" as never, allowedFunctionNames: ["look"] } },
      responseMimeType: "application/json",
      responseJsonSchema: schema,
    };
    expect(requestFields("gemini", { toolChoice: tool, output })).toEqual(expected);
    const tools = [{ functionDeclarations: [{ name: "look" }] }];
    const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
    for (const toolChoice of ["auto", "none", "required", tool] as const)
      expect(checkGemini({ contents, tools, ...requestFields("gemini", { toolChoice }) }, "gemini-3-pro")).toBeNull();
    const unknown = requestFields("gemini", { toolChoice: { tool: "book" } });
    expect(checkGemini({ contents, tools, ...unknown }, "gemini-3-pro")).not.toBeNull();
  });

  it("gives Mistral its own word for a required call", () => {
    expect(requestFields("mistral", { toolChoice: "required" })).toEqual({ tool_choice: "any" });
    const fields = requestFields("mistral", { toolChoice: tool, output });
    expect(fields).toMatchObject({
      tool_choice: { function: { name: "look" } },
      response_format: { type: "json_schema" },
    });
    expect(checkMistral({ model: "m", messages: [{ role: "user", content: "Hi" }], ...fields })).toBeNull();
  });

  it("gives Bedrock the schema as text, and a choice with one member", () => {
    const fields = requestFields("bedrock", { toolChoice: tool, output });
    expect(fields).toMatchObject({
      toolChoice: { tool: { name: "look" } },
      outputConfig: { textFormat: { type: "json_schema", structure: { jsonSchema: { name: "answer" } } } },
    });
    const sent = /"schema":"(.*?[^\\])"/.exec(JSON.stringify(fields))?.[1] ?? "";
    expect(JSON.parse(JSON.parse(`"${sent}"`) as string)).toEqual(schema);
    expect(checkBedrockConverse({ messages: [{ role: "user", content: [{ text: "Hi" }] }], ...fields })).toBeNull();
  });

  it("gives Ollama the schema", () => {
    const expected: Pick<OllamaRequest, "format"> = { format: schema };
    expect(requestFields("ollama", { output })).toEqual(expected);
  });

  it.each([
    ["ollama", { toolChoice: "required" }],
    ["ollama", { toolChoice: tool }],
    ["bedrock", { toolChoice: "none" }],
    ["anthropic", { output: { name: "answer", schema: open } }],
    ["bedrock", { output: { name: "answer", schema: open } }],
  ] as const)("refuses for %s what it does not have: %j", (target, options) => {
    expect(() => requestFields(target, options)).toThrow(expect.objectContaining({ code: "CAPABILITY_UNSUPPORTED" }));
  });

  it.each([
    ["acme", {}],
    ["openai", { toolChoice: "any" }],
    ["openai", { output: { schema } }],
    ["openai", { tools: [] }],
  ])("refuses wrong input: %s %j", (target, options) => {
    expect(() => requestFields(target as "openai", options as object)).toThrow(
      expect.objectContaining({ code: "INPUT_INVALID" }),
    );
  });
});
