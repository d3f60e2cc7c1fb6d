import type { AppendDraft, SessionRef } from "@throughline/core";

export function refOf(name: string): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:${name}` };
}

export function say(text: string, fields: Readonly<Record<string, unknown>> = {}): AppendDraft {
  return { type: "message", message: { role: "user", content: text }, ...fields };
}
