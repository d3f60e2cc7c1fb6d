import { describe, expect, it } from "vitest";
import { buildContext, createHistory } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import type { Context, HistoryTarget } from "@throughline/history";
import type { RenderOptions } from "../src/render-options.ts";
import type { TargetName } from "../src/provider-mappings.ts";
import { renderOpenAiChat } from "@throughline/history/openai";
import { assistant, call, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

const render = (name: TargetName, sketches: readonly RecordSketch[], options: RenderOptions = {}): unknown[] => {
  const target = historyTargets.get(name);
  const context = buildContext(storedRecords(sketches));
  const { messages } = target?.render(context, options) ?? { messages: [] };
  expect(target?.validate(messages, (options.target ?? context.model)?.modelId ?? null)).toEqual([]);
  return [...messages];
};
const repairsOf = (name: TargetName, sketches: readonly RecordSketch[], options: RenderOptions = {}): string[] =>
  (historyTargets.get(name)?.render(buildContext(storedRecords(sketches)), options).repairs ?? []).map(
    ({ rule, recordId }) => `${rule} ${recordId}`,
  );

const thinking = (thought: string, thinkingSignature: string): object => ({
  type: "thinking",
  thinking: thought,
  thinkingSignature,
});
const by = (provider: string, model: string, api: string): Readonly<Record<string, unknown>> => ({
  provider,
  model,
  api,
});
const openai = by("openai", "gpt-5", "openai-responses");
const google = by("google", "gemini-3-pro", "google-generative-ai");
const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" };
const loop = (more: Readonly<Record<string, unknown>>, ...blocks: readonly object[]): RecordSketch[] => [
  user("hi"),
  assistant([...blocks, call("call_1|fc_1")], more),
  result("call_1|fc_1"),
];

describe("thinking and reasoning", () => {
  it("an item of reasoning goes back whole, before what it led to", () => {
    const items = render("openai-responses", loop(openai, thinking("so", JSON.stringify(reasoning))));
    expect(items.slice(1)).toEqual([
      reasoning,
      { type: "function_call", call_id: "call_1", name: "read", arguments: '{"path":"call_1|fc_1"}' },
      { type: "function_call_output", call_id: "call_1", output: "ok" },
    ]);
  });

  it("goes when another model, another provider or a compaction comes in between", () => {
    const log = loop(openai, thinking("so", JSON.stringify(reasoning)));
    const target = { provider: "openai", modelId: "gpt-5.1" };
    expect(repairsOf("openai-responses", log, { target })).toContain("thinking-removed r2");
    expect(repairsOf("anthropic", log)).toContain("thinking-removed r2");
    const compacted = [...log, { type: "compaction", summary: "s", firstKeptEntryId: "r2", tokensBefore: 1 }];
    expect(repairsOf("openai-responses", compacted)).toContain("thinking-removed r2");
  });

  it("one whose encrypted content is missing, or that came before, is left out and named", () => {
    const bare = JSON.stringify({ type: "reasoning", id: "rs_2", summary: [] });
    expect(repairsOf("openai-responses", loop(openai, thinking("so", bare)))).toContain("thinking-removed r2");
    const twice = [
      ...loop(openai, thinking("so", JSON.stringify(reasoning))),
      assistant([thinking("so", JSON.stringify(reasoning)), text("a")], openai),
    ];
    expect(repairsOf("openai-responses", twice)).toContain("thinking-removed r4");
  });

  it("Gemini's signatures stay on their parts; a call that lost its own gets the stand-in", () => {
    const signed = [user("hi"), assistant([{ ...call("c"), thoughtSignature: "c2ln" }], google), result("c")];
    expect(render("gemini", signed)[1]).toEqual({
      role: "model",
      parts: [{ functionCall: { name: "read", args: { path: "c" } }, thoughtSignature: "c2ln" }],
    });
    const foreign = loop(openai);
    const target = { provider: "google", modelId: "gemini-3-pro" };
    expect(JSON.stringify(render("gemini", foreign, { target }))).toContain("skip_thought_signature_validator");
    expect(repairsOf("gemini", foreign, { target })).toContain("signature-replaced r2");
  });

  it("Ollama, Mistral and servers with a field for it get the words", () => {
    const log = [user("hi"), assistant([thinking("so", ""), text("a")], by("ollama", "qwen3", "ollama")), user("b")];
    expect(render("ollama", log)[1]).toEqual({ role: "assistant", content: "a", thinking: "so" });
    const mistral = [
      user("hi"),
      assistant([thinking("so", ""), text("a")], by("mistral", "magistral", "mistral")),
      user("b"),
    ];
    expect(render("mistral", mistral)[1]).toMatchObject({
      content: [{ type: "thinking" }, { type: "text", text: "a" }],
    });
    const chat = (signature: string): Context => {
      const reply = assistant([thinking("so", signature), text("a")], by("x", "r1", "openai-completions"));
      return buildContext(storedRecords([user("hi"), reply]));
    };
    const sent = { reasoning_content: "so", content: "a" };
    expect(renderOpenAiChat(chat("s"), { reasoningContent: true }).messages[1]).toMatchObject(sent);
    expect(renderOpenAiChat(chat("s")).repairs.map(({ rule }) => rule)).toEqual(["thinking-removed"]);
    // What came in this field goes back in it, to the model it came from.
    expect(renderOpenAiChat(chat("reasoning_content"))).toMatchObject({ messages: [{}, sent], repairs: [] });
    const target = { provider: "x", modelId: "r2" };
    expect(renderOpenAiChat(chat("reasoning_content"), { target }).messages[1]).not.toHaveProperty("reasoning_content");
  });

  it("says when a loop has lost the thinking it must begin with", () => {
    const log = loop(by("anthropic", "claude-opus-4-5", "anthropic-messages"), thinking("so", "s"));
    const context = buildContext(storedRecords(log));
    expect(renderAnthropic(context).canThink).toBe(true);
    const other = renderAnthropic(context, { target: { provider: "anthropic", modelId: "claude-opus-5" } });
    expect(other.canThink).toBe(false);
    expect(validateAnthropic(other.messages, { thinking: true }).map(({ rule }) => rule)).toEqual(["thinking-first"]);
  });
});

describe("ids and names", () => {
  it("are what each provider takes, and can be turned back", () => {
    const log = [user("hi"), assistant([{ ...call("toolu_1"), name: "look at" }]), result("toolu_1")];
    const context = buildContext(storedRecords(log));
    for (const [name, target] of historyTargets) {
      const { messages, callIds, toolNames } = target.render(context);
      for (const [sent, logged] of callIds)
        expect([JSON.stringify(messages).includes(sent), logged]).toEqual([true, "toolu_1"]);
      expect([name, toolNames.get("look_at")]).toEqual([name, "look at"]);
    }
    expect([...(historyTargets.get("mistral")?.render(context).callIds.keys() ?? [])][0]).toMatch(/^[a-z0-9]{9}$/);
  });

  it("two names that only differ in what is replaced stay two", () => {
    const log = [
      user("hi"),
      assistant([
        { ...call("a"), name: "b c" },
        { ...call("d"), name: "b_c" },
      ]),
      result("a"),
      result("d"),
    ];
    const { toolNames } = renderAnthropic(buildContext(storedRecords(log)));
    expect([...toolNames]).toEqual([
      ["b_c", "b c"],
      ["b_c_2", "b_c"],
    ]);
  });
});

describe("images, files and blocks of other types", () => {
  const image = { type: "image", data: "aWs=", mimeType: "image/png" };
  const pdf = { type: "file", data: "aWs=", mimeType: "application/pdf", name: "a b.pdf" };

  it("are carried in each provider's shape", () => {
    const sent = (name: TargetName): string => JSON.stringify(render(name, [user([text("see"), image, pdf])]));
    expect(sent("anthropic")).toContain(
      '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aWs="},"title":"a b.pdf"}',
    );
    expect(sent("openai")).toContain('{"type":"image_url","image_url":{"url":"data:image/png;base64,aWs="}}');
    expect(sent("openai-responses")).toContain(
      '{"type":"input_file","filename":"a b.pdf","file_data":"data:application/pdf;base64,aWs="}',
    );
    expect(sent("ollama")).toContain('"images":["aWs="]');
    expect(sent("ollama")).toContain("[file left out: a b.pdf, application/pdf]");
    expect(sent("gemini")).toContain('{"inlineData":{"mimeType":"application/pdf","data":"aWs="}}');
    expect(sent("mistral")).toContain(
      '{"type":"document_url","document_url":"data:application/pdf;base64,aWs=","document_name":"a b.pdf"}',
    );
    expect(sent("bedrock")).toContain('{"document":{"format":"pdf","name":"a b-pdf","source":{"bytes":"aWs="}}}');
  });

  it("are sent under the type that their bytes show, on one line and padded, whoever wrote them", () => {
    const bytes = (hex: string, length: number): string =>
      Buffer.concat([Buffer.from(hex, "hex"), Buffer.alloc(length, 7)]).toString("base64");
    const png = bytes("89504e470d0a1a0a", 90);
    const written = (data: string, mimeType: string): unknown => {
      const [message] = render("anthropic", [user([{ type: "image", data, mimeType }])]) as [{ content: unknown[] }];
      return message.content[0];
    };
    const sent = (media_type: string, data: string): unknown => ({
      type: "image",
      source: { type: "base64", media_type, data },
    });
    const lines = png.replaceAll(/(.{76})/g, "$1\r\n");
    for (const [data, mimeType] of [
      [png, "image/jpeg"],
      [png, "IMAGE/PNG; charset=binary"],
      [png, ""],
      [lines, "image/png"],
      [png.replace(/=+$/, ""), "image/png"],
      [`data:image/png;base64,${png}`, "image/gif"],
    ] as const)
      expect(written(data, mimeType)).toEqual(sent("image/png", png));
    const others = { "image/jpeg": "ffd8ffe0", "image/gif": "474946383961", "image/webp": "524946460000000057454250" };
    for (const [type, hex] of Object.entries(others))
      expect(written(bytes(hex, 30), "image/png")).toEqual(sent(type, bytes(hex, 30)));
    expect(written("data:image/png;base64,aWs=", "")).toEqual(sent("image/png", "aWs="));
    // What is not known by its bytes is what it is said to be.
    expect(written("_-w", "image/jpg")).toEqual(sent("image/jpeg", "/+w="));
    expect(written("a", "image/png")).toEqual({ type: "text", text: "[image left out: image/png]" });
    expect(repairsOf("anthropic", [user([{ type: "image", data: png, mimeType: "image/jpg" }])])).toEqual([
      "image-rewritten r1",
    ]);
  });

  it("are left out by themselves where a provider would refuse one for its size", () => {
    const big = { type: "image", data: "iVBORw0KGgoA".padEnd(6 * 2 ** 20, "A"), mimeType: "image/png" };
    for (const name of ["anthropic", "bedrock"] as const) {
      const sent = JSON.stringify(render(name, [user([text("see"), big, image])]));
      expect(sent).toContain("[image left out: image/png, 6.0 MB of at most 5.0]");
      expect(sent).toContain("aWs=");
    }
    expect(JSON.stringify(render("openai", [user([big])]))).toContain(big.data);
  });

  it("become a line that says so where they are not wanted", () => {
    for (const name of historyTargets.keys()) {
      const sent = JSON.stringify(render(name, [user([text("see"), image, pdf])], { media: "marker" }));
      expect(sent).toContain("[image left out: image/png]");
      expect(sent).toContain("[file left out: a b.pdf, application/pdf]");
      expect(sent).not.toContain("aWs=");
    }
  });

  it("follow the results of a provider that takes words only in results", () => {
    const log = [user("hi"), assistant([call("a")]), result("a", [text("see"), image])];
    expect(render("openai", log).slice(2)).toEqual([
      { role: "tool", tool_call_id: "a", content: "see" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,aWs=" } }] },
    ]);
    expect(repairsOf("openai", log)).toEqual(["image-moved r3"]);
  });

  it("a block nobody knows is carried where it is asked for, else replaced and named", () => {
    const block = { type: "compaction", content: "so far", signature: "s" };
    const log = [user("hi"), assistant([block, text("a")]), user("b")];
    const context = buildContext(storedRecords(log));
    const carryBlocks = new Set(["compaction"]);
    const carried = renderAnthropic(context, { carryBlocks });
    expect(carried.messages[1]?.content[0]).toEqual(block);
    expect([carried.repairs, validateAnthropic(carried.messages, { blockTypes: carryBlocks })]).toEqual([[], []]);
    for (const name of historyTargets.keys()) expect(repairsOf(name, log)).toContain("unknown-block-replaced r2");
  });

  it("a search of the provider's own goes back with its result, half of one does not", () => {
    const use = { type: "server_tool_use", id: "s", name: "web_search", input: {} };
    const found = { type: "web_search_tool_result", tool_use_id: "s", content: [] };
    const whole = [user("hi"), assistant([use, found, text("a")]), user("b")];
    expect(repairsOf("anthropic", whole)).toEqual([]);
    expect(repairsOf("openai", whole)).toEqual(["unknown-block-replaced r2", "unknown-block-replaced r2"]);
    expect(repairsOf("anthropic", [user("hi"), assistant([use, text("a")]), user("b")])).toEqual([
      "unknown-block-replaced r2",
    ]);
  });
});

describe("a system message inside the list", () => {
  const log: readonly RecordSketch[] = [
    user("hi"),
    { type: "message", message: { role: "system", content: "Be brief." } },
    assistant([text("a")]),
    user("b"),
  ];

  it("stands where it was said, as such or as the user's words in tags", () => {
    expect(render("openai", log)[1]).toEqual({ role: "system", content: "Be brief." });
    expect(JSON.stringify(render("anthropic", log))).toContain("<system>\\nBe brief.\\n</system>");
    expect(repairsOf("anthropic", log)).toEqual(["system-message-shown r2", "user-merged r2"]);
    const inline = renderAnthropic(buildContext(storedRecords(log)), { systemMessages: "inline" });
    expect(inline.messages[1]).toEqual({ role: "system", content: [{ type: "text", text: "Be brief." }] });
    expect([inline.repairs, validateAnthropic(inline.messages, { allowsSystem: true })]).toEqual([[], []]);
    expect(validateAnthropic(inline.messages).map(({ rule }) => rule)).toEqual(["role"]);
  });

  it("stays when nothing was said yet, as the system prompt does", () => {
    for (const name of ["openai", "ollama", "mistral"] as const) {
      const target = historyTargets.get(name);
      const system = [{ role: "system", content: "Be brief." }];
      expect(target?.render(buildContext([]), { system: "Be brief." })).toMatchObject({
        system: null,
        messages: system,
      });
      const history = createHistory(target as HistoryTarget, { system: "Be brief." });
      expect(history.render()).toMatchObject({ system: null, messages: system });
      history.append(storedRecords([user("hi")]));
      expect(history.render().messages).toEqual([...system, { role: "user", content: "hi" }]);
    }
    for (const name of ["anthropic", "openai-responses", "gemini", "bedrock"] as const)
      expect(historyTargets.get(name)?.render(buildContext([]), { system: "Be brief." })).toMatchObject({
        system: "Be brief.",
        messages: [],
      });
  });

  it("never comes between a call and its result", () => {
    const between = [
      user("hi"),
      assistant([call("a")]),
      { type: "message", message: { role: "system", content: "Hm." } },
      result("a"),
    ];
    expect(render("openai", between).map((message) => (message as { role: string }).role)).toEqual([
      "user",
      "assistant",
      "tool",
      "system",
    ]);
  });
});

describe("what only one provider asks for", () => {
  it("Mistral hears a reply between results and the user, and an end it can answer", () => {
    const log = [user("hi"), assistant([call("abcdefghi")]), result("abcdefghi"), user("and?"), assistant([text("a")])];
    const roles = render("mistral", log).map((message) => (message as { role: string }).role);
    expect(roles).toEqual(["user", "assistant", "tool", "assistant", "user", "assistant", "user"]);
    expect(repairsOf("mistral", log)).toEqual(["reply-added r4", "continuation-added r5"]);
  });

  it("the summary needs an acknowledgement only where roles alternate [C29]", () => {
    const log = [
      user("one"),
      user("two"),
      { type: "compaction", summary: "s", firstKeptEntryId: "r2", tokensBefore: 1 },
    ];
    expect(repairsOf("anthropic", log)).toEqual(["acknowledgement-added r3"]);
    expect(repairsOf("openai", log)).toEqual([]);
    expect(render("openai", log)).toEqual([
      { role: "user", content: "[Previous conversation summary]\ns" },
      { role: "user", content: "two" },
    ]);
  });

  it("Gemini and Ollama tell results by their order", () => {
    const log = [
      user("hi"),
      assistant([call("a"), { ...call("b"), name: "write" }]),
      result("b", "second", { toolName: "write" }),
      result("a", "first"),
    ];
    expect(render("ollama", log).slice(2)).toMatchObject([
      { tool_name: "read", content: "first" },
      { tool_name: "write", content: "second" },
    ]);
    expect(JSON.stringify(render("gemini", log)[2])).toMatch(/first.*second/);
  });
});
