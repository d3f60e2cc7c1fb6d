export type Fields = Readonly<Record<string, unknown>>;

export const sessionId = "9534b902-4b8a-437e-ba2e-2e4db4b82fec";

const at = (second: number): string => new Date(Date.UTC(2026, 4, 7, 18, 0, second)).toISOString();

export function header(fields: Fields = {}): Fields {
  const times = { startTime: at(0), lastUpdated: at(0) };
  return { sessionId, projectHash: "743e79", ...times, kind: "main", ...fields };
}

export function set(fields: Fields): Fields {
  return { $set: fields };
}

export function typed(id: string, content: unknown): Fields {
  return { id, timestamp: at(1), type: "user", content };
}

export function reply(id: string, content: unknown, fields: Fields = {}): Fields {
  const tokens = { input: 100, output: 20, cached: 60, thoughts: 5, tool: 1, total: 126 };
  return { id, timestamp: at(2), type: "gemini", content, thoughts: [], tokens, model: "gemini-3-pro", ...fields };
}

export function thought(subject: string, description: string): Fields {
  return { subject, description, timestamp: at(2) };
}

export function toolCall(id: string, result: unknown, status: string = "success"): Fields {
  const response = typeof result === "object" ? result : { output: result };
  const parts = [{ functionResponse: { id, name: "read_file", response } }];
  const answered = result === undefined ? {} : { result: parts };
  return { id, name: "read_file", args: { file_path: `${id}.txt` }, ...answered, status, timestamp: at(3) };
}

export function callPart(id: string | null, thoughtSignature?: string): Fields {
  const call = { ...(id === null ? {} : { id }), name: "read_file", args: { file_path: `${id}.txt` } };
  return { functionCall: call, ...(thoughtSignature === undefined ? {} : { thoughtSignature }) };
}

export function responsePart(id: string, output: string): Fields {
  return { functionResponse: { id, name: "read_file", response: { output } } };
}
