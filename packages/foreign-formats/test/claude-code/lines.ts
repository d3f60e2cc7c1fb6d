/** The id of a line, made of a short name. */
export function uuid(name: string): string {
  return `00000000-0000-4000-8000-${Buffer.from(name).toString("hex").padStart(12, "0").slice(-12)}`;
}

export const sessionId = "5e551011-0000-4000-8000-000000000001";

export type Fields = Readonly<Record<string, unknown>>;

let clock = 0;

/** A line of the tree. */
export function line(name: string, parent: string | null, fields: Fields): Fields {
  clock += 1;
  return {
    parentUuid: parent === null ? null : uuid(parent),
    isSidechain: false,
    userType: "external",
    cwd: "/home/u/project",
    sessionId,
    version: "2.1.132",
    gitBranch: "",
    uuid: uuid(name),
    timestamp: new Date(Date.UTC(2026, 4, 7, 18, 0, clock)).toISOString(),
    ...fields,
  };
}

export function prompt(name: string, parent: string | null, content: unknown, fields: Fields = {}): Fields {
  return line(name, parent, { type: "user", message: { role: "user", content }, ...fields });
}

/** One block of a reply: the program writes a line for each, with the usage of the whole. */
export function part(name: string, parent: string | null, reply: string, block: Fields, output: number = 20): Fields {
  const usage = { input_tokens: 3, cache_creation_input_tokens: 5, cache_read_input_tokens: 7, output_tokens: output };
  const message = {
    model: "claude-opus-4-7",
    id: `msg_${reply}`,
    type: "message",
    role: "assistant",
    content: [block],
    stop_reason: block["type"] === "tool_use" ? "tool_use" : null,
    usage,
  };
  return line(name, parent, { type: "assistant", message });
}

export function text(value: string): Fields {
  return { type: "text", text: value };
}

export function call(id: string): Fields {
  return { type: "tool_use", id, name: "Read", input: { file_path: id } };
}

export const thought: Fields = { type: "thinking", thinking: "", signature: "c2ln" };

/** What a tool gave; the line names the one with its call as parent. */
export function result(name: string, parent: string, callId: string, content: unknown = `of ${callId}`): Fields {
  return prompt(name, parent, [{ type: "tool_result", tool_use_id: callId, content }], {
    toolUseResult: { stdout: `all of ${callId}` },
    sourceToolAssistantUUID: uuid(parent),
  });
}
