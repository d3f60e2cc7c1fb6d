export const said: readonly object[] = [{ role: "user", content: "Hi" }];
export const claude: Readonly<Record<string, unknown>> = { model: "m", max_tokens: 9, messages: said };
export const item = (...items: object[]): object => ({
  model: "m",
  input: [{ role: "user", content: "Hi" }, ...items],
});
const content = (...blocks: object[]): object => item({ role: "user", content: blocks });
const tools = (...list: object[]): object => ({ model: "m", input: "Hi", tools: list });
export const block = (...blocks: object[]): object => ({ ...claude, messages: [{ role: "user", content: blocks }] });

/** What names something that the account of the key has stored, by every member that the types of the SDKs have for it. */
export const naming: readonly (readonly [path: string, body: object | string])[] = [
  ["openai/v1/responses", item({ type: "item_reference", id: "msg_1" })],
  ["openai/v1/responses", item({ id: "msg_1" })],
  ["openai/v1/responses", item({ type: null, id: "msg_1" })],
  ["openai/v1/responses", item({ id: "msg_1", role: "assistant" })],
  ["openai/v1/responses", item({ type: "message", id: "msg_1", role: "assistant", content: [] })],
  ["openai/v1/responses", item({ type: "reasoning", id: "rs_1", summary: [] })],
  ["openai/v1/responses", item({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "" })],
  ["openai/v1/responses", item({ type: "image_generation_call", id: "ig_1" })],
  ["openai/v1/responses", item({ type: "web_search_call", id: "ws_1", status: "completed" })],
  ["openai/v1/responses", item({ type: "file_search_call", id: "fs_1", queries: ["q"] })],
  ["openai/v1/responses", item({ type: "code_interpreter_call", id: "ci_1", container_id: "cntr_1", code: "1" })],
  ["openai/v1/responses", item({ type: "of_next_year", id: "x_1", content: "y" })],
  [
    "openai/v1/responses",
    '{"model":"m","input":[{"type":"message","type":"item_reference","id":"msg_1","content":"x"}]}',
  ],
  ["openai/v1/responses", '{"model":"m","input":[{"type":"item_reference","\\u0069d":"msg_1"}]}'],
  ["openai/v1/responses", '{"model":"m","input":[{"type":"item_reference","ID":"msg_1"}]}'],
  ["openai/v1/responses", '{"model":"m","input":[],"input":[{"id":"msg_1"}]}'],
  ["openai/v1/responses", content({ type: "input_file", file_id: "file_1" })],
  ["openai/v1/responses", content({ type: "input_image", file_id: "file_1" })],
  [
    "openai/v1/responses",
    item({ type: "function_call_output", call_id: "c", output: [{ type: "input_file", file_id: "file_1" }] }),
  ],
  [
    "openai/v1/responses",
    item({ type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot", file_id: "file_1" } }),
  ],
  ["openai/v1/responses", tools({ type: "file_search", vector_store_ids: ["vs_1"] })],
  ["openai/v1/responses", tools({ type: "code_interpreter", container: "cntr_1" })],
  ["openai/v1/responses", tools({ type: "code_interpreter", container: { type: "auto", file_ids: ["file_1"] } })],
  ["openai/v1/responses", tools({ type: "image_generation", input_image_mask: { file_id: "file_1" } })],
  [
    "openai/v1/responses",
    tools({ type: "shell", environment: { type: "container_reference", container_id: "cntr_1" } }),
  ],
  [
    "openai/v1/responses",
    tools({ type: "shell", environment: { type: "container_auto", file_ids: ["file_1"], skills: [] } }),
  ],
  [
    "openai/v1/responses",
    tools({ type: "shell", environment: { skills: [{ type: "skill_reference", skill_id: "s_1" }] } }),
  ],
  ["openai/v1/responses", tools({ type: "mcp", server_label: "x", tunnel_id: "t_1" })],
  ["openai/v1/responses", { model: "m", input: "Hi", prompt: { id: "pmpt_1", variables: {} } }],
  ["openai/v1/responses", { model: "m", input: "Hi", conversation: "conv_1" }],
  ["openai/v1/responses", { model: "m", input: "Hi", prompt_cache_options: { comparison_response_id: "resp_1" } }],
  ["openai/v1/responses", { model: "m", input: "Hi", assistant_id: "a_1" }],
  ["openai/v1/responses", { model: "m", input: "Hi", some: { deep: [[{ thing_ids: [["x_1"]] }]] } }],
  ["openai/v1/responses", { model: "m", input: "Hi", file_ids: [{ id: "file_1" }] }],
  ["openai/v1/responses", { model: "m", input: "Hi", dataset_id: 7 }],
  [
    "openai/v1/responses",
    item({ type: "message", role: "user", content: [{ type: "input_file", file_id: "file_1" }], input: [] }),
  ],
  ["openai/v1/responses/compact", { model: "m", previous_response_id: "resp_1" }],
  ["openai/v1/responses/input_tokens", item({ type: "item_reference", id: "msg_1" })],
  ["openai/v1/responses/input_tokens", { model: "m", conversation: { id: "conv_1" } }],
  [
    "openai/v1/chat/completions",
    { model: "m", messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file_1" } }] }] },
  ],
  ["openai/v1/chat/completions", { model: "m", messages: [...said, { role: "assistant", audio: { id: "audio_1" } }] }],
  ["openai/v1/chat/completions", { model: "m", messages: said, audio: { format: "wav", voice: { id: "voice_1" } } }],
  ["openai/v1/embeddings", { model: "m", input: "x", file_id: "file_1" }],
  ["anthropic/v1/messages", { ...claude, container: "container_1" }],
  ["anthropic/v1/messages", { ...claude, container: { id: "container_1", skills: [] } }],
  [
    "anthropic/v1/messages",
    { ...claude, container: { skills: [{ type: "custom", skill_id: "skill_1", version: "1" }] } },
  ],
  ["anthropic/v1/messages", { ...claude, workspace_id: "w_1" }],
  ["anthropic/v1/messages", { ...claude, user_profile_id: "p_1" }],
  ["anthropic/v1/messages", { ...claude, diagnostics: { previous_message_id: "msg_1" } }],
  ["anthropic/v1/messages", { ...claude, thread: { type: "continue", previous_message_id: "msg_1" } }],
  ["anthropic/v1/messages", block({ type: "document", source: { type: "file", file_id: "file_1" } })],
  ["anthropic/v1/messages", block({ type: "image", source: { type: "file", file_id: "file_1" } })],
  ["anthropic/v1/messages", block({ type: "container_upload", file_id: "file_1" })],
  [
    "anthropic/v1/messages",
    block({
      type: "tool_result",
      tool_use_id: "t",
      content: [{ type: "document", source: { type: "file", file_id: "file_1" } }],
    }),
  ],
  ["anthropic/v1/messages", block({ type: "tool_result", tool_use_id: "t", input: { file_id: "file_1" } })],
  [
    "anthropic/v1/messages",
    '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_use","type":"document","input":{"file_id":"file_1"}}]}]}',
  ],
  ["anthropic/v1/messages", { ...claude, system: [{ type: "document", source: { type: "file", file_id: "file_1" } }] }],
  ["anthropic/v1/messages/count_tokens", block({ type: "document", source: { type: "file", file_id: "file_1" } })],
];

/** Requests with ids that name nothing stored, as the SDKs and agents send them. */
export const plain: readonly (readonly [path: string, body: object])[] = [
  [
    "openai/v1/responses",
    item(
      { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "x" },
    ),
  ],
  ["openai/v1/responses", item({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "abc" })],
  [
    "openai/v1/responses",
    item({ type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "x" }] }),
  ],
  [
    "openai/v1/responses",
    item({
      type: "computer_call",
      id: "cu_1",
      call_id: "c",
      action: { type: "wait" },
      pending_safety_checks: [{ id: "sc_1" }],
    }),
  ],
  [
    "openai/v1/responses",
    { model: "m", input: "Hi", metadata: { ticket_id: "7" }, prompt_cache_key: "k", safety_identifier: "s" },
  ],
  [
    "openai/v1/responses",
    tools({
      type: "function",
      name: "f",
      parameters: {
        type: "object",
        properties: { file_id: { type: "string", const: "file_1" }, id: { default: "x" } },
      },
    }),
  ],
  ["openai/v1/responses", tools({ type: "code_interpreter", container: { type: "auto" } })],
  [
    "openai/v1/responses",
    tools({
      type: "mcp",
      server_label: "x",
      connector_id: "connector_gmail",
      authorization: "t",
      headers: { x_id: "1" },
    }),
  ],
  [
    "openai/v1/responses",
    {
      model: "m",
      input: "Hi",
      text: { format: { type: "json_schema", name: "n", schema: { properties: { user_id: { enum: ["a"] } } } } },
    },
  ],
  [
    "openai/v1/chat/completions",
    {
      model: "m",
      messages: [
        ...said,
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"file_id":"x"}' } }],
        },
        { role: "tool", tool_call_id: "c", content: "file_id: file_1" },
      ],
    },
  ],
  ["openai/v1/chat/completions", { model: "m", messages: said, logit_bias: { "50256": -100 }, user: "u" }],
  [
    "anthropic/v1/messages",
    {
      ...claude,
      messages: [
        ...said,
        {
          role: "assistant",
          content: [
            {
              type: "tool_use",
              id: "t",
              name: "n",
              input: { file_id: "file_1", id: "7", file_ids: ["x"], deep: { id: "y" } },
            },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: '{"file_id":"file_1"}' }] },
      ],
    },
  ],
  [
    "anthropic/v1/messages",
    {
      ...claude,
      metadata: { user_id: "u_1" },
      tools: [
        { name: "n", input_schema: { properties: { file_id: { const: "x" } } }, input_examples: [{ file_id: "x" }] },
      ],
    },
  ],
  [
    "anthropic/v1/messages",
    { ...claude, container: { skills: [{ type: "anthropic", skill_id: "pdf", version: "latest" }] } },
  ],
  ["anthropic/v1/messages", block({ type: "text", text: '{"previous_response_id":"x","file_id":"y"}' })],
];
