export type Fields = Readonly<Record<string, unknown>>;

export const sessionId = "019e03b2-11a2-7320-9098-5d831813e66c";

let clock = 0;

/** A line of a rollout file. */
export function line(type: string, payload: Fields): Fields {
  clock += 1;
  return { timestamp: new Date(Date.UTC(2026, 4, 7, 18, 0, clock)).toISOString(), type, payload };
}

export function header(fields: Fields = {}): Fields {
  const own = {
    id: sessionId,
    cwd: "/w",
    originator: "codex_cli_rs",
    cli_version: "0.128.0",
    model_provider: "openai",
  };
  return line("session_meta", { ...own, ...fields });
}

export function settings(model: string, effort: string = "medium"): Fields {
  return line("turn_context", { cwd: "/w", model, effort, summary: "auto" });
}

export function event(type: string, fields: Fields = {}): Fields {
  return line("event_msg", { type, ...fields });
}

export function item(payload: Fields): Fields {
  return line("response_item", payload);
}

function message(role: string, type: string, text: string): Fields {
  return { type: "message", role, content: [{ type, text }] };
}

export function userItem(text: string): Fields {
  return message("user", "input_text", text);
}

/** What a person typed: the item, and the event that says so. */
export function typed(text: string): readonly Fields[] {
  return [item(userItem(text)), event("user_message", { message: text, images: [] })];
}

export function said(text: string): Fields {
  return item(message("assistant", "output_text", text));
}

export function instructions(text: string): Fields {
  return item(message("developer", "input_text", text));
}

export function thought(): Fields {
  return item({ type: "reasoning", summary: [], content: null, encrypted_content: "gAAAA" });
}

export function call(id: string): Fields {
  return item({ type: "function_call", name: "exec_command", arguments: '{"cmd": "ls"}', call_id: id });
}

export function output(id: string, given: unknown = `of ${id}`): Fields {
  return item({ type: "function_call_output", call_id: id, output: given });
}

export function tokens(input: number, cached: number, out: number, reasoning: number): Fields {
  const total = {
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: out,
    reasoning_output_tokens: reasoning,
  };
  return event("token_count", {
    info: { total_token_usage: { ...total, total_tokens: input + out } },
    rate_limits: null,
  });
}
